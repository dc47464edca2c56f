//! Users and access control lists.

crate::headers! {
    /// Asks AUTH_CREATE_USER (3001).
    pub struct CreateUserRequest {
        username: Option<String> => "username",
    }

    /// Asks AUTH_UPDATE_USER (3002).
    pub struct UpdateUserRequest {
        username: Option<String> => "username",
    }

    /// Asks AUTH_DELETE_USER (3003).
    pub struct DeleteUserRequest {
        username: Option<String> => "username",
    }

    /// Asks AUTH_GET_USER (3004).
    pub struct GetUserRequest {
        username: Option<String> => "username",
    }

    /// Asks AUTH_LIST_USER (3005).
    pub struct ListUsersRequest {
        filter: Option<String> => "filter",
    }

    /// Asks AUTH_CREATE_ACL (3006).
    pub struct CreateAclRequest {
        subject: Option<String> => "subject",
    }

    /// Asks AUTH_UPDATE_ACL (3007).
    pub struct UpdateAclRequest {
        subject: Option<String> => "subject",
    }

    /// Asks AUTH_DELETE_ACL (3008).
    pub struct DeleteAclRequest {
        subject: Option<String> => "subject",
        policy_type: Option<String> => "policyType",
        resource: Option<String> => "resource",
    }

    /// Asks AUTH_GET_ACL (3009).
    pub struct GetAclRequest {
        subject: Option<String> => "subject",
    }

    /// Asks AUTH_LIST_ACL (3010).
    pub struct ListAclsRequest {
        subject_filter: Option<String> => "subjectFilter",
        resource_filter: Option<String> => "resourceFilter",
    }
}
