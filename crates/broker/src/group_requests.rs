//! Consumer groups as operators see them: 200, 201, 207, 225, 352, 353.

use std::sync::Arc;

use protocol::body::{GroupForbidden, SubscriptionGroupConfig, SubscriptionGroupList, SubscriptionGroupWrapper};
use protocol::headers::{
    DeleteSubscriptionGroupRequest, GetAllSubscriptionGroupResponse, GetSubscriptionGroupConfigRequest,
    UpdateGroupForbiddenRequest,
};
use protocol::{Command, json, response_code};

use crate::broker::Broker;
use crate::context::{Answer, Context, Refusal, body, ok};
use crate::groups::{FORBIDDEN_READ, GroupError};
use crate::names;

impl From<GroupError> for Refusal {
    fn from(error: GroupError) -> Self {
        Self::system(error.to_string())
    }
}

fn check(group: &str) -> Result<(), Refusal> {
    names::check_group(group).map_err(|remark| Refusal::new(response_code::INVALID_PARAMETER, remark))
}

/// UPDATE_AND_CREATE_SUBSCRIPTIONGROUP.
pub fn update_group(broker: &Arc<Broker>, context: &Context<'_>, request: &Command) -> Answer {
    if request.body.is_empty() {
        return ok();
    }
    let wanted: SubscriptionGroupConfig =
        json::from_slice(&request.body).map_err(|e| Refusal::system(e.to_string()))?;
    check(&wanted.group_name)?;
    broker.groups.update(wanted, context.now)?;
    ok()
}

/// UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST.
pub fn update_group_list(broker: &Arc<Broker>, context: &Context<'_>, request: &Command) -> Answer {
    let list: SubscriptionGroupList = json::from_slice(&request.body).map_err(|e| Refusal::system(e.to_string()))?;
    for wanted in &list.group_config_list {
        check(&wanted.group_name)?;
    }
    broker.groups.update_all(list.group_config_list, context.now)?;
    ok()
}

/// DELETE_SUBSCRIPTIONGROUP.
pub fn delete_group(broker: &Arc<Broker>, context: &Context<'_>, request: &Command) -> Answer {
    let header: DeleteSubscriptionGroupRequest = request.header()?;
    broker.groups.delete(&header.group_name, context.now)?;
    if header.clean_offset {
        broker.offsets.forget_group(&header.group_name);
    }
    if broker.config().auto_delete_unused_stats {
        broker.stats.forget_group(&header.group_name);
    }
    ok()
}

/// GET_ALL_SUBSCRIPTIONGROUP_CONFIG. Askers that ask for a slice take the whole as well.
pub fn all_groups(broker: &Arc<Broker>, _: &Context<'_>, _: &Command) -> Answer {
    let (data_version, groups, forbidden_table) = broker.groups.snapshot();
    let header = GetAllSubscriptionGroupResponse { total_group_num: i32::try_from(groups.len()).unwrap_or(i32::MAX) };
    let subscription_group_table = groups.into_iter().map(|(name, group)| (name, (*group).clone())).collect();
    let wrapper = SubscriptionGroupWrapper { data_version, forbidden_table, subscription_group_table };
    Ok(Command::response(response_code::SUCCESS).with_header(&header).with_body(json::to_legacy(&wrapper)))
}

/// GET_SUBSCRIPTIONGROUP_CONFIG.
pub fn group_config(broker: &Arc<Broker>, context: &Context<'_>, request: &Command) -> Answer {
    let header: GetSubscriptionGroupConfigRequest = request.header()?;
    match broker.groups.find(&header.group, broker.config().auto_create_subscription_group, context.now) {
        Some(group) => body(json::to_legacy(&*group)),
        None => Err(Refusal::new(response_code::SUBSCRIPTION_GROUP_NOT_EXIST, "No group in this broker")),
    }
}

/// UPDATE_AND_GET_GROUP_FORBIDDEN: may the group read the topic?
pub fn group_forbidden(broker: &Arc<Broker>, context: &Context<'_>, request: &Command) -> Answer {
    let header: UpdateGroupForbiddenRequest = request.header()?;
    if let Some(readable) = header.readable {
        broker.groups.set_forbidden(&header.group, &header.topic, FORBIDDEN_READ, !readable, context.now)?;
    }
    let readable = !broker.groups.is_forbidden(&header.group, &header.topic, FORBIDDEN_READ);
    body(json::to_legacy(&GroupForbidden { group: header.group, topic: header.topic, readable }))
}
