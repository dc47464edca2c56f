//! Whole frames in both serialisations, and the typed header of every request and answer.

use std::collections::{BTreeMap, BTreeSet};

use bytes::BytesMut;
use protocol::frame::{self, MAX_FRAME_LENGTH};
use protocol::headers::*;
use protocol::{Command, ExtFields, Header, SerializeType};
use serde_json::Value;

use crate::{hex, show, vectors};

#[test]
fn frames_read_and_write_back() {
    let all = vectors("frames.jsonl");
    assert!(all.len() > 400);
    for vector in all {
        let name = &vector.name;
        let wire = vector.bytes();
        let mut input = BytesMut::from(&wire[..]);
        let command = frame::decode(&mut input, MAX_FRAME_LENGTH).unwrap().unwrap();
        assert!(input.is_empty(), "{name}");
        let expect = vector.expect();
        let serialize = if expect["serialize"] == "JSON" { SerializeType::Json } else { SerializeType::Binary };
        assert_eq!(command.serialize, serialize, "{name}");
        for (what, found) in
            [("code", command.code), ("version", command.version), ("opaque", command.opaque), ("flag", command.flag)]
        {
            assert_eq!(expect[what], found, "{name}: {what}");
        }
        assert_eq!(expect["language"], command.language.name(), "{name}");
        assert_eq!(expect["remark"].as_str(), command.remark.as_deref(), "{name}");
        assert_eq!(command.body, hex(expect["body"].as_str().unwrap()), "{name}");
        let fields: Vec<_> = command.fields.iter().map(|(k, v)| (k.into_owned(), v.into_owned())).collect();
        let expected: Vec<_> = expect["extFields"].as_object().into_iter().flatten().collect();
        // An empty text is no field in the binary form.
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
            .filter(|(_, value)| serialize == SerializeType::Json || !value.is_empty())
            .collect();
        assert_eq!(fields, expected, "{name}");

        let mut again = BytesMut::new();
        command.encode(&mut again);
        if expect["extFields"].as_object().is_some_and(|fields| fields.len() > expected.len()) {
            continue;
        }
        // For a header without a single value Java writes an empty object where we write nothing.
        if !String::from_utf8_lossy(&wire).contains(r#""extFields":{},"#) {
            assert_eq!(show(&again), show(&wire), "{name}");
        }
    }
}

/// What a header reads out of a frame, written as fields again.
type Reader = fn(&Command) -> Result<ExtFields, String>;

fn reader<H: Header>(command: &Command) -> Result<ExtFields, String> {
    let mut fields = ExtFields::default();
    command.header::<H>().map_err(|error| error.to_string())?.write(&mut fields);
    Ok(fields)
}

macro_rules! readers {
    ($($java:literal $name:ident),* $(,)?) => {
        BTreeMap::from([$(($java, reader::<$name> as Reader)),*])
    };
}

fn readers() -> BTreeMap<&'static str, Reader> {
    readers! {
        "AckMessageRequestHeader" AckMessageRequest,
        "AddBrokerRequestHeader" AddBrokerRequest,
        "AddWritePermOfBrokerRequestHeader" AddWritePermOfBrokerRequest,
        "AddWritePermOfBrokerResponseHeader" AddWritePermOfBrokerResponse,
        "AlterSyncStateSetRequestHeader" AlterSyncStateSetRequest,
        "AlterSyncStateSetResponseHeader" AlterSyncStateSetResponse,
        "ApplyBrokerIdRequestHeader" ApplyBrokerIdRequest,
        "ApplyBrokerIdResponseHeader" ApplyBrokerIdResponse,
        "BrokerHeartbeatRequestHeader" BrokerHeartbeatRequest,
        "ChangeInvisibleTimeRequestHeader" ChangeInvisibleTimeRequest,
        "ChangeInvisibleTimeResponseHeader" ChangeInvisibleTimeResponse,
        "CheckRocksdbCqWriteProgressRequestHeader" CheckRocksdbCqWriteProgressRequest,
        "CheckTransactionStateRequestHeader" CheckTransactionStateRequest,
        "CheckTransactionStateResponseHeader" CheckTransactionStateResponse,
        "CleanControllerBrokerDataRequestHeader" CleanControllerBrokerDataRequest,
        "CloneGroupOffsetRequestHeader" CloneGroupOffsetRequest,
        "ConsumeMessageDirectlyResultRequestHeader" ConsumeMessageDirectlyResultRequest,
        "ConsumerSendMsgBackRequestHeader" ConsumerSendMsgBackRequest,
        "CreateAclRequestHeader" CreateAclRequest,
        "CreateTopicRequestHeader" CreateTopicRequest,
        "CreateUserRequestHeader" CreateUserRequest,
        "DeleteAclRequestHeader" DeleteAclRequest,
        "DeleteKVConfigRequestHeader" DeleteKVConfigRequest,
        "DeleteSubscriptionGroupRequestHeader" DeleteSubscriptionGroupRequest,
        "DeleteTopicFromNamesrvRequestHeader" DeleteTopicFromNamesrvRequest,
        "DeleteTopicRequestHeader" DeleteTopicRequest,
        "DeleteUserRequestHeader" DeleteUserRequest,
        "ElectMasterRequestHeader" ElectMasterRequest,
        "ElectMasterResponseHeader" ElectMasterResponse,
        "EndTransactionRequestHeader" EndTransactionRequest,
        "ExchangeHAInfoRequestHeader" ExchangeHAInfoRequest,
        "ExchangeHAInfoResponseHeader" ExchangeHAInfoResponse,
        "ExportRocksDBConfigToJsonRequestHeader" ExportRocksDBConfigToJsonRequest,
        "GetAclRequestHeader" GetAclRequest,
        "GetAllSubscriptionGroupRequestHeader" GetAllSubscriptionGroupRequest,
        "GetAllSubscriptionGroupResponseHeader" GetAllSubscriptionGroupResponse,
        "GetAllTopicConfigRequestHeader" GetAllTopicConfigRequest,
        "GetAllTopicConfigResponseHeader" GetAllTopicConfigResponse,
        "GetBrokerConfigResponseHeader" GetBrokerConfigResponse,
        "GetBrokerMemberGroupRequestHeader" GetBrokerMemberGroupRequest,
        "GetConsumeStatsInBrokerHeader" GetConsumeStatsInBroker,
        "GetConsumeStatsRequestHeader" GetConsumeStatsRequest,
        "GetConsumerConnectionListRequestHeader" GetConsumerConnectionListRequest,
        "GetConsumerListByGroupRequestHeader" GetConsumerListByGroupRequest,
        "GetConsumerRunningInfoRequestHeader" GetConsumerRunningInfoRequest,
        "GetConsumerStatusRequestHeader" GetConsumerStatusRequest,
        "GetEarliestMsgStoretimeRequestHeader" GetEarliestMsgStoretimeRequest,
        "GetEarliestMsgStoretimeResponseHeader" GetEarliestMsgStoretimeResponse,
        "GetKVConfigRequestHeader" GetKVConfigRequest,
        "GetKVConfigResponseHeader" GetKVConfigResponse,
        "GetKVListByNamespaceRequestHeader" GetKVListByNamespaceRequest,
        "GetMaxOffsetRequestHeader" GetMaxOffsetRequest,
        "GetMaxOffsetResponseHeader" GetMaxOffsetResponse,
        "GetMetaDataResponseHeader" GetMetaDataResponse,
        "GetMinOffsetRequestHeader" GetMinOffsetRequest,
        "GetMinOffsetResponseHeader" GetMinOffsetResponse,
        "GetNextBrokerIdRequestHeader" GetNextBrokerIdRequest,
        "GetNextBrokerIdResponseHeader" GetNextBrokerIdResponse,
        "GetProducerConnectionListRequestHeader" GetProducerConnectionListRequest,
        "GetReplicaInfoRequestHeader" GetReplicaInfoRequest,
        "GetReplicaInfoResponseHeader" GetReplicaInfoResponse,
        "GetRouteInfoRequestHeader" GetRouteInfoRequest,
        "GetSubscriptionGroupConfigRequestHeader" GetSubscriptionGroupConfigRequest,
        "GetTopicConfigRequestHeader" GetTopicConfigRequest,
        "GetTopicStatsInfoRequestHeader" GetTopicStatsInfoRequest,
        "GetTopicsByClusterRequestHeader" GetTopicsByClusterRequest,
        "GetUserRequestHeader" GetUserRequest,
        "InitConsumerOffsetRequestHeader" InitConsumerOffsetRequest,
        "ListAclsRequestHeader" ListAclsRequest,
        "ListUsersRequestHeader" ListUsersRequest,
        "NotificationRequestHeader" NotificationRequest,
        "NotificationResponseHeader" NotificationResponse,
        "NotifyBrokerRoleChangedRequestHeader" NotifyBrokerRoleChangedRequest,
        "NotifyConsumerIdsChangedRequestHeader" NotifyConsumerIdsChangedRequest,
        "NotifyMinBrokerIdChangeRequestHeader" NotifyMinBrokerIdChangeRequest,
        "PeekMessageRequestHeader" PeekMessageRequest,
        "PollingInfoRequestHeader" PollingInfoRequest,
        "PollingInfoResponseHeader" PollingInfoResponse,
        "PopMessageRequestHeader" PopMessageRequest,
        "PopMessageResponseHeader" PopMessageResponse,
        "PullMessageRequestHeader" PullMessageRequest,
        "PullMessageResponseHeader" PullMessageResponse,
        "PutKVConfigRequestHeader" PutKVConfigRequest,
        "QueryConsumeQueueRequestHeader" QueryConsumeQueueRequest,
        "QueryConsumeTimeSpanRequestHeader" QueryConsumeTimeSpanRequest,
        "QueryConsumerOffsetRequestHeader" QueryConsumerOffsetRequest,
        "QueryConsumerOffsetResponseHeader" QueryConsumerOffsetResponse,
        "QueryCorrectionOffsetHeader" QueryCorrectionOffset,
        "QueryDataVersionRequestHeader" QueryDataVersionRequest,
        "QueryDataVersionResponseHeader" QueryDataVersionResponse,
        "QueryMessageRequestHeader" QueryMessageRequest,
        "QueryMessageResponseHeader" QueryMessageResponse,
        "QuerySubscriptionByConsumerRequestHeader" QuerySubscriptionByConsumerRequest,
        "QueryTopicConsumeByWhoRequestHeader" QueryTopicConsumeByWhoRequest,
        "QueryTopicsByConsumerRequestHeader" QueryTopicsByConsumerRequest,
        "RecallMessageRequestHeader" RecallMessageRequest,
        "RecallMessageResponseHeader" RecallMessageResponse,
        "RegisterBrokerRequestHeader" RegisterBrokerRequest,
        "RegisterBrokerResponseHeader" RegisterBrokerResponse,
        "RegisterBrokerToControllerRequestHeader" RegisterBrokerToControllerRequest,
        "RegisterBrokerToControllerResponseHeader" RegisterBrokerToControllerResponse,
        "RegisterTopicRequestHeader" RegisterTopicRequest,
        "RemoveBrokerRequestHeader" RemoveBrokerRequest,
        "ReplyMessageRequestHeader" ReplyMessageRequest,
        "ResetMasterFlushOffsetHeader" ResetMasterFlushOffset,
        "ResetOffsetRequestHeader" ResetOffsetRequest,
        "ResumeCheckHalfMessageRequestHeader" ResumeCheckHalfMessageRequest,
        "SearchOffsetRequestHeader" SearchOffsetRequest,
        "SearchOffsetResponseHeader" SearchOffsetResponse,
        "SendMessageRequestHeader" SendMessageRequest,
        "SendMessageRequestHeaderV2" SendMessageRequestV2,
        "SendMessageResponseHeader" SendMessageResponse,
        "StatisticsMessagesRequestHeader" StatisticsMessagesRequest,
        "UnRegisterBrokerRequestHeader" UnRegisterBrokerRequest,
        "UnregisterClientRequestHeader" UnregisterClientRequest,
        "UpdateAclRequestHeader" UpdateAclRequest,
        "UpdateConsumerOffsetRequestHeader" UpdateConsumerOffsetRequest,
        "UpdateGroupForbiddenRequestHeader" UpdateGroupForbiddenRequest,
        "UpdateUserRequestHeader" UpdateUserRequest,
        "ViewBrokerStatsDataRequestHeader" ViewBrokerStatsDataRequest,
        "ViewMessageRequestHeader" ViewMessageRequest,
        "WipeWritePermOfBrokerRequestHeader" WipeWritePermOfBrokerRequest,
        "WipeWritePermOfBrokerResponseHeader" WipeWritePermOfBrokerResponse,
    }
}

/// Headers without fields of their own, and one that nobody sends.
const LEFT_OUT: [&str; 11] = [
    "CreateTopicListRequestHeader",
    "EndTransactionResponseHeader",
    "GetAllProducerInfoRequestHeader",
    "GetConsumerListByGroupResponseHeader",
    "HeartbeatRequestHeader",
    "LockBatchMqRequestHeader",
    "RegisterOrderTopicRequestHeader",
    "UnlockBatchMqRequestHeader",
    "UnregisterClientResponseHeader",
    "UpdateConsumerOffsetResponseHeader",
    "ViewMessageResponseHeader",
];

#[test]
fn typed_headers_hold_every_field() {
    let readers = readers();
    let mut unused: BTreeSet<_> = readers.keys().copied().collect();
    for vector in vectors("frames.jsonl") {
        let name = &vector.name;
        let Some(class) = vector.expect()["headerClass"].as_str() else { continue };
        if LEFT_OUT.contains(&class) {
            continue;
        }
        let read = readers.get(class).unwrap_or_else(|| panic!("no header for {class}"));
        unused.remove(class);
        let command = frame::decode(&mut BytesMut::from(&vector.bytes()[..]), MAX_FRAME_LENGTH).unwrap().unwrap();
        let ours = read(&command).unwrap_or_else(|error| panic!("{name}: {error}"));
        let rpc = reader::<RpcFields>(&command).unwrap();
        let members = vector.expect()["header"].as_object().unwrap();
        for (key, value) in command.fields.iter() {
            if !members.contains_key(key.as_ref()) {
                // Added beside the header, as the region and the trace switch are to send answers.
                continue;
            }
            let found = ours.get(&key).or_else(|| rpc.get(&key));
            assert_eq!(found.as_deref(), Some(value.as_ref()), "{name}: {key}");
        }
        for (key, value) in ours.iter() {
            // What Java left out may only come back as a default.
            let default = matches!(value.as_ref(), "" | "0" | "false" | "true" | "4" | "-1" | "SINGLE_TAG" | "LOWER");
            assert!(command.fields.get(&key).is_some() || default, "{name}: {key}={value}");
        }
        // Java's own numbers and flags, not only the texts.
        for (key, value) in members {
            let text = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let found = ours.get(key).or_else(|| rpc.get(key));
            // Java's fast binary codec leaves the inherited fields out.
            let unsent = found.is_none() && matches!(key.as_str(), "lo" | "ns" | "nsd" | "bname" | "oway");
            assert!(unsent || found.as_deref() == Some(&text), "{name}: {key}");
        }
    }
    assert!(unused.is_empty(), "no vectors for {unused:?}");
}

#[test]
fn borrowed_readers_agree() {
    for vector in vectors("frames.jsonl") {
        let class = vector.expect()["headerClass"].as_str().unwrap_or_default();
        let command = frame::decode(&mut BytesMut::from(&vector.bytes()[..]), MAX_FRAME_LENGTH).unwrap().unwrap();
        let mut fields = ExtFields::default();
        match class {
            "SendMessageRequestHeader" => {
                let hot = hot::SendMessage::read(&command.fields).unwrap();
                hot.write(&mut fields);
                let short = Command { fields, ..Command::request(310) }.header::<SendMessageRequestV2>().unwrap();
                assert_eq!(SendMessageRequest::from(short), command.header().unwrap(), "{}", vector.name);
                continue;
            }
            "SendMessageRequestHeaderV2" => hot::SendMessage::read(&command.fields).unwrap().write(&mut fields),
            "SendMessageResponseHeader" => hot::SendMessageAnswer::read(&command.fields).unwrap().write(&mut fields),
            "PullMessageRequestHeader" => hot::PullMessage::read(&command.fields).unwrap().write(&mut fields),
            "QueryConsumerOffsetRequestHeader" => {
                hot::QueryConsumerOffset::read(&command.fields).unwrap().write(&mut fields);
            }
            "UpdateConsumerOffsetRequestHeader" => {
                hot::UpdateConsumerOffset::read(&command.fields).unwrap().write(&mut fields);
            }
            _ => continue,
        }
        for (key, value) in fields.iter() {
            let sent = command.fields.get(&key);
            assert!(
                sent.as_deref() == Some(value.as_ref())
                    || (sent.is_none() && matches!(value.as_ref(), "false" | "true")),
                "{}: {key}",
                vector.name
            );
        }
    }
}
