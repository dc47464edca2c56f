//! Users and access control lists.

bodies! {
    /// Asks AUTH_CREATE_USER (3001) and AUTH_UPDATE_USER (3002), answers AUTH_GET_USER (3004).
    pub struct UserInfo {
        username: Option<String>,
        password: Option<String>,
        user_type: Option<String>,
        user_status: Option<String>,
    }

    /// Asks AUTH_CREATE_ACL (3006) and AUTH_UPDATE_ACL (3007), answers AUTH_GET_ACL (3009).
    pub struct AclInfo {
        subject: Option<String>,
        policies: Option<Vec<PolicyInfo>>,
    }

    pub struct PolicyInfo {
        policy_type: Option<String>,
        entries: Option<Vec<PolicyEntryInfo>>,
    }

    pub struct PolicyEntryInfo {
        resource: Option<String>,
        actions: Option<Vec<String>>,
        source_ips: Option<Vec<String>>,
        decision: Option<String>,
    }
}
