//! Heartbeats of clients.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer, Serialize};

bodies! {
    /// Asks HEART_BEAT (34). Every part may be missing; C++ clients send their enums as numbers.
    pub struct HeartbeatData {
        #[serde(rename = "clientID")]
        client_id: String,
        producer_data_set: Vec<ProducerData>,
        consumer_data_set: Vec<ConsumerData>,
        /// Not 0: the client may leave out its subscriptions while this number stays the same.
        heartbeat_fingerprint: i32,
        #[serde(rename = "withoutSub")]
        is_without_sub: bool,
    }

    pub struct ProducerData {
        group_name: String,
    }

    pub struct ConsumerData {
        group_name: String,
        consume_type: ConsumeType,
        message_model: MessageModel,
        consume_from_where: ConsumeFromWhere,
        subscription_data_set: Vec<SubscriptionData>,
        unit_mode: bool,
    }

    /// What a group reads of a topic.
    pub struct SubscriptionData {
        class_filter_mode: bool,
        topic: String,
        sub_string: String,
        tags_set: BTreeSet<String>,
        /// The hashes of the tags, as the client computed them.
        #[serde(deserialize_with = "codes")]
        code_set: BTreeSet<i32>,
        /// Milliseconds since the epoch; the later one counts.
        sub_version: i64,
        expression_type: String = String::from("TAG"),
    }
}

/// Hashes from clients that write them without a sign.
fn codes<'de, D: Deserializer<'de>>(input: D) -> Result<BTreeSet<i32>, D::Error> {
    let wide = BTreeSet::<i64>::deserialize(input)?;
    Ok(wide.into_iter().map(|code| code as i32).collect())
}

/// Who starts the transfer of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ConsumeType {
    ConsumeActively,
    #[default]
    ConsumePassively,
    ConsumePop,
}

/// Whether the members of a group share messages or each get all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum MessageModel {
    Broadcasting,
    #[default]
    Clustering,
}

/// Where a group without offsets starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ConsumeFromWhere {
    #[default]
    ConsumeFromLastOffset,
    ConsumeFromLastOffsetAndFromMinWhenBootFirst,
    ConsumeFromMinOffset,
    ConsumeFromMaxOffset,
    ConsumeFromFirstOffset,
    ConsumeFromTimestamp,
}
