//! Who is connected.

use std::collections::BTreeMap;

use super::{ConsumeFromWhere, ConsumeType, MessageModel, SubscriptionData};

bodies! {
    /// A client's connection (Java's `Connection`).
    pub struct ClientConnection {
        client_id: String,
        client_addr: String,
        /// The language's name in Java's spelling.
        language: String,
        version: i32,
    }

    /// Answers GET_CONSUMER_CONNECTION_LIST (203).
    pub struct ConsumerConnection {
        connection_set: Vec<ClientConnection>,
        subscription_table: BTreeMap<String, SubscriptionData>,
        consume_type: ConsumeType,
        message_model: MessageModel,
        consume_from_where: ConsumeFromWhere,
    }

    /// Answers GET_PRODUCER_CONNECTION_LIST (204).
    pub struct ProducerConnection {
        connection_set: Vec<ClientConnection>,
    }

    pub struct ProducerInfo {
        client_id: String,
        #[serde(rename = "remoteIP")]
        remote_ip: String,
        language: String,
        version: i32,
        /// Milliseconds since the epoch.
        last_update_timestamp: i64,
    }

    /// Answers GET_ALL_PRODUCER_INFO (328).
    pub struct ProducerTableInfo {
        data: BTreeMap<String, Vec<ProducerInfo>>,
    }

    /// Answers GET_CONSUMER_LIST_BY_GROUP (38).
    pub struct GetConsumerListByGroupResponseBody {
        consumer_id_list: Vec<String>,
    }

    /// Asks CHECK_CLIENT_CONFIG (46).
    pub struct CheckClientRequestBody {
        client_id: Option<String>,
        group: Option<String>,
        subscription_data: Option<SubscriptionData>,
        namespace: Option<String>,
    }
}
