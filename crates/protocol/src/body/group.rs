//! Subscription groups.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{DataVersion, SubscriptionData};

bodies! {
    /// How a broker treats a consumer group. Asks UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200), answers
    /// GET_SUBSCRIPTIONGROUP_CONFIG (352).
    pub struct SubscriptionGroupConfig {
        group_name: String,
        consume_enable: bool = true,
        consume_from_min_enable: bool = true,
        consume_broadcast_enable: bool = true,
        consume_message_orderly: bool,
        retry_queue_nums: i32 = 1,
        retry_max_times: i32 = 16,
        group_retry_policy: GroupRetryPolicy,
        broker_id: i64,
        which_broker_when_consume_slowly: i64 = 1,
        notify_consumer_ids_changed_enable: bool = true,
        group_sys_flag: i32,
        consume_timeout_minute: i32 = 15,
        subscription_data_set: Option<Vec<SimpleSubscriptionData>>,
        attributes: BTreeMap<String, String>,
    }

    /// When a message that failed comes again.
    pub struct GroupRetryPolicy {
        #[serde(rename = "type")]
        kind: GroupRetryPolicyType,
        exponential_retry_policy: Option<ExponentialRetryPolicy>,
        customized_retry_policy: Option<CustomizedRetryPolicy>,
    }

    /// Delays in milliseconds that grow by a factor.
    pub struct ExponentialRetryPolicy {
        initial: i64 = 5_000,
        max: i64 = 7_200_000,
        multiplier: i64 = 2,
    }

    /// Delays in milliseconds, one after another.
    pub struct CustomizedRetryPolicy {
        next: Vec<i64> = [1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200]
            .map(|seconds: i64| seconds * 1000)
            .to_vec(),
    }

    pub struct SimpleSubscriptionData {
        topic: String,
        expression_type: Option<String>,
        expression: Option<String>,
        version: i64,
    }

    /// `subscriptionGroup.json`; answers GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201).
    pub struct SubscriptionGroupWrapper {
        subscription_group_table: BTreeMap<String, SubscriptionGroupConfig>,
        /// Group, topic, bits that forbid.
        forbidden_table: BTreeMap<String, BTreeMap<String, i32>>,
        data_version: DataVersion,
    }

    /// Asks UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST (225).
    pub struct SubscriptionGroupList {
        group_config_list: Vec<SubscriptionGroupConfig>,
    }

    /// Answers UPDATE_AND_GET_GROUP_FORBIDDEN (353).
    pub struct GroupForbidden {
        group: String,
        topic: String,
        readable: bool,
    }

    /// Answers QUERY_TOPIC_CONSUME_BY_WHO (300).
    pub struct GroupList {
        group_list: Vec<String>,
    }

    /// Answers QUERY_SUBSCRIPTION_BY_CONSUMER (345).
    pub struct QuerySubscriptionResponseBody {
        subscription_data: Option<SubscriptionData>,
        group: String,
        topic: String,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum GroupRetryPolicyType {
    Exponential,
    #[default]
    Customized,
}
