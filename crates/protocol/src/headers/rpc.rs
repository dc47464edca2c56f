//! Fields that ride along with typed headers, or stand alone without one.

crate::headers! {
    /// What every Java request header may carry besides its own fields; the servers may ignore all of it.
    pub struct RpcFields {
        /// The queue id is a static topic's logical one.
        logical: Option<bool> => "lo",
        namespace: Option<String> => "ns",
        namespaced: Option<bool> => "nsd",
        /// The broker a static topic's request is meant for.
        broker_name: Option<String> => "bname",
        oneway: Option<bool> => "oway",
    }

    /// Answers HEART_BEAT (34).
    pub struct HeartbeatResponse {
        support_heartbeat_v2: Option<bool> => "IS_SUPPORT_HEART_BEAT_V2",
        subscription_changed: Option<bool> => "IS_SUB_CHANGE",
    }
}

/// Set to `true`, QUERY_MESSAGE (12) looks for the client's message id instead of a key.
pub const UNIQUE_KEY_QUERY: &str = "_UNIQUE_KEY_QUERY";
/// The zone a registering broker or an asking client is in.
pub const ZONE_NAME: &str = "__ZONE_NAME";
/// Set to `true`, GET_ROUTEINFO_BY_TOPIC (105) leaves out the brokers of other zones.
pub const ZONE_MODE: &str = "__ZONE_MODE";
/// The mode of SET_COMMITLOG_READ_MODE (2004): 0 normal, 1 random.
pub const READ_AHEAD_MODE: &str = "READ_AHEAD_MODE";

/// The bits of a pull request's sysFlag.
pub mod pull_sys_flag {
    pub const COMMIT_OFFSET: i32 = 1;
    pub const SUSPEND: i32 = 2;
    /// The request carries its subscription.
    pub const SUBSCRIPTION: i32 = 4;
    pub const CLASS_FILTER: i32 = 8;
    pub const LITE_PULL: i32 = 16;
}
