//! Subscription groups.

crate::headers! {
    /// Asks DELETE_SUBSCRIPTIONGROUP (207).
    pub struct DeleteSubscriptionGroupRequest {
        group_name: String => "groupName",
        clean_offset: bool => "cleanOffset" = false,
    }

    /// Asks GET_SUBSCRIPTIONGROUP_CONFIG (352).
    pub struct GetSubscriptionGroupConfigRequest {
        group: String => "group",
    }

    /// Asks GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201).
    pub struct GetAllSubscriptionGroupRequest {
        group_seq: Option<i32> => "groupSeq",
        data_version: Option<String> => "dataVersion",
        max_group_num: Option<i32> => "maxGroupNum",
    }

    /// Answers GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201).
    pub struct GetAllSubscriptionGroupResponse {
        total_group_num: i32 => "totalGroupNum",
    }

    /// Asks UPDATE_AND_GET_GROUP_FORBIDDEN (353).
    pub struct UpdateGroupForbiddenRequest {
        group: String => "group",
        topic: String => "topic",
        readable: Option<bool> => "readable",
    }
}
