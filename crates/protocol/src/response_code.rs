//! Response codes of every RocketMQ server, by the names the field uses.

/// A code a server puts into a response frame.
pub type ResponseCode = i32;

/// Internal RPC helper: timeout.
pub const RPC_TIME_OUT: ResponseCode = -1006;
/// Internal RPC helper: send failed.
pub const RPC_SEND_TO_CHANNEL_FAILED: ResponseCode = -1004;
/// Internal RPC helper: no address.
pub const RPC_ADDR_IS_NULL: ResponseCode = -1002;
/// Internal RPC helper: unclassified failure.
pub const RPC_UNKNOWN: ResponseCode = -1000;
/// Request handled.
pub const SUCCESS: ResponseCode = 0;
/// General failure; also default of new responses.
pub const SYSTEM_ERROR: ResponseCode = 1;
/// Executor full, request too old in queue, or page cache busy.
pub const SYSTEM_BUSY: ResponseCode = 2;
/// No processor knows the code.
pub const REQUEST_CODE_NOT_SUPPORTED: ResponseCode = 3;
/// Reserved for failed transaction step.
pub const TRANSACTION_FAILED: ResponseCode = 4;
/// Message stored but sync flush timed out.
pub const FLUSH_DISK_TIMEOUT: ResponseCode = 10;
/// Message stored but replicas lag or are missing; slave refuses write.
pub const SLAVE_NOT_AVAILABLE: ResponseCode = 11;
/// Message stored but replication ack timed out.
pub const FLUSH_SLAVE_TIMEOUT: ResponseCode = 12;
/// Message too large, bad properties, bad offset or batch.
pub const MESSAGE_ILLEGAL: ResponseCode = 13;
/// Store not writable: shutdown, disk full, slave.
pub const SERVICE_NOT_AVAILABLE: ResponseCode = 14;
/// Proxy: request lacks the broker name field.
pub const VERSION_NOT_SUPPORTED: ResponseCode = 15;
/// Topic, group, broker permission or auth denies; config key blacklisted.
pub const NO_PERMISSION: ResponseCode = 16;
/// Topic unknown on broker or no route on namesrv.
pub const TOPIC_NOT_EXIST: ResponseCode = 17;
/// Reserved for duplicate topic.
pub const TOPIC_EXIST_ALREADY: ResponseCode = 18;
/// No new message; long poll may have expired.
pub const PULL_NOT_FOUND: ResponseCode = 19;
/// Offset scan found nothing matching, pull again.
pub const PULL_RETRY_IMMEDIATELY: ResponseCode = 20;
/// Requested offset illegal; header carries correction.
pub const PULL_OFFSET_MOVED: ResponseCode = 21;
/// No offset, key match or KV value.
pub const QUERY_NOT_FOUND: ResponseCode = 22;
/// Filter expression does not compile.
pub const SUBSCRIPTION_PARSE_FAILED: ResponseCode = 23;
/// Group online but topic not subscribed.
pub const SUBSCRIPTION_NOT_EXIST: ResponseCode = 24;
/// Broker subscription version older than request.
pub const SUBSCRIPTION_NOT_LATEST: ResponseCode = 25;
/// Consumer group config missing.
pub const SUBSCRIPTION_GROUP_NOT_EXIST: ResponseCode = 26;
/// SQL filter data not registered.
pub const FILTER_DATA_NOT_EXIST: ResponseCode = 27;
/// SQL filter data older than request.
pub const FILTER_DATA_NOT_LATEST: ResponseCode = 28;
/// Argument rejected by validation.
pub const INVALID_PARAMETER: ResponseCode = 29;
/// Legacy check-back reply: commit.
pub const TRANSACTION_SHOULD_COMMIT: ResponseCode = 200;
/// Legacy check-back reply: rollback.
pub const TRANSACTION_SHOULD_ROLLBACK: ResponseCode = 201;
/// Legacy check-back reply: unknown.
pub const TRANSACTION_STATE_UNKNOW: ResponseCode = 202;
/// Legacy check-back reply: wrong group.
pub const TRANSACTION_STATE_GROUP_WRONG: ResponseCode = 203;
/// Legacy, unit routing.
pub const NO_BUYER_ID: ResponseCode = 204;
/// Legacy, unit routing.
pub const NOT_IN_CURRENT_UNIT: ResponseCode = 205;
/// No connected member in consumer group.
pub const CONSUMER_NOT_ONLINE: ResponseCode = 206;
/// Consumer did not answer forwarded call in time.
pub const CONSUME_MSG_TIMEOUT: ResponseCode = 207;
/// Offset of ack or invisible-change outside queue.
pub const NO_MESSAGE: ResponseCode = 208;
/// Too many waiting pop polls.
pub const POLLING_FULL: ResponseCode = 209;
/// Pop poll already expired on arrival.
pub const POLLING_TIMEOUT: ResponseCode = 210;
/// Container does not host that broker.
pub const BROKER_NOT_EXIST: ResponseCode = 211;
/// Reserved: dispatch lag.
pub const BROKER_DISPATCH_NOT_COMPLETE: ResponseCode = 212;
/// Admin tool code: group is broadcasting.
pub const BROADCAST_CONSUMPTION: ResponseCode = 213;
/// Clients back off on it; this server never sends it.
pub const FLOW_CONTROL: ResponseCode = 215;
/// Static topic queue not led here.
pub const NOT_LEADER_FOR_QUEUE: ResponseCode = 501;
/// Transaction or recall operation refused.
pub const ILLEGAL_OPERATION: ResponseCode = 604;
/// Server draining; client should reconnect elsewhere.
pub const GO_AWAY: ResponseCode = 1500;
/// Master epoch in request differs.
pub const CONTROLLER_FENCED_MASTER_EPOCH: ResponseCode = 2000;
/// Sync state set epoch in request differs.
pub const CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH: ResponseCode = 2001;
/// Sender is not the recorded master.
pub const CONTROLLER_INVALID_MASTER: ResponseCode = 2002;
/// New set contains unknown replica.
pub const CONTROLLER_INVALID_REPLICAS: ResponseCode = 2003;
/// No electable master now.
pub const CONTROLLER_MASTER_NOT_AVAILABLE: ResponseCode = 2004;
/// Request malformed.
pub const CONTROLLER_INVALID_REQUEST: ResponseCode = 2005;
/// New set contains dead replica.
pub const CONTROLLER_BROKER_NOT_ALIVE: ResponseCode = 2006;
/// Node is not raft leader.
pub const CONTROLLER_NOT_LEADER: ResponseCode = 2007;
/// Broker set never registered.
pub const CONTROLLER_BROKER_METADATA_NOT_EXIST: ResponseCode = 2008;
/// Clean request unsafe or malformed.
pub const CONTROLLER_INVALID_CLEAN_BROKER_METADATA: ResponseCode = 2009;
/// Broker must register first.
pub const CONTROLLER_BROKER_NEED_TO_BE_REGISTERED: ResponseCode = 2010;
/// Current master kept.
pub const CONTROLLER_MASTER_STILL_EXIST: ResponseCode = 2011;
/// Election produced no master.
pub const CONTROLLER_ELECT_MASTER_FAILED: ResponseCode = 2012;
/// Set change rejected.
pub const CONTROLLER_ALTER_SYNC_STATE_SET_FAILED: ResponseCode = 2013;
/// Requested id already taken or not next.
pub const CONTROLLER_BROKER_ID_INVALID: ResponseCode = 2014;
/// Raft apply failed.
pub const CONTROLLER_JRAFT_INTERNAL_ERROR: ResponseCode = 2015;
/// No heartbeat record for broker.
pub const CONTROLLER_BROKER_LIVE_INFO_NOT_EXISTS: ResponseCode = 2016;
/// Declared, not sent by this source.
pub const USER_NOT_EXIST: ResponseCode = 3001;
/// Declared, not sent by this source.
pub const POLICY_NOT_EXIST: ResponseCode = 3002;
