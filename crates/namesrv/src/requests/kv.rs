//! The KV configuration.

use std::borrow::Cow;

use protocol::headers::{GetKVConfigResponse, PutKVConfigRequest};
use protocol::{Command, response_code};
use remoting::Connection;

use super::Answer;
use crate::shared::Shared;

/// PUT_KV_CONFIG.
pub(super) fn put(shared: &Shared, _: &Connection, request: &Command) -> Result<Answer, Answer> {
    let header: PutKVConfigRequest = request.header()?;
    let (Some(namespace), Some(key)) = (header.namespace, header.key) else {
        return Err(Answer::refuse(response_code::SYSTEM_ERROR, "namespace or key is null"));
    };
    shared.kv.put(namespace, key, header.value);
    Ok(Answer::success())
}

/// GET_KV_CONFIG.
pub(super) fn get(shared: &Shared, _: &Connection, request: &Command) -> Result<Answer, Answer> {
    let (namespace, key) = (field(request, "namespace"), field(request, "key"));
    match shared.kv.get(&namespace, &key) {
        Some(value) => Ok(Answer::header(&GetKVConfigResponse { value: Some(value) })),
        None => Err(Answer::refuse(
            response_code::QUERY_NOT_FOUND,
            format!("No config item, Namespace: {namespace} Key: {key}"),
        )),
    }
}

/// DELETE_KV_CONFIG: success whether it was there or not.
pub(super) fn delete(shared: &Shared, _: &Connection, request: &Command) -> Result<Answer, Answer> {
    shared.kv.delete(&field(request, "namespace"), &field(request, "key"));
    Ok(Answer::success())
}

/// GET_KVLIST_BY_NAMESPACE.
pub(super) fn list(shared: &Shared, _: &Connection, request: &Command) -> Result<Answer, Answer> {
    let namespace = field(request, "namespace");
    match shared.kv.list(&namespace) {
        Some(list) => Ok(Answer::body(list)),
        None => Err(Answer::refuse(response_code::QUERY_NOT_FOUND, format!("No config item, Namespace: {namespace}"))),
    }
}

/// Java looks a missing field up as null, which no table holds, and shows it as this word.
fn field<'a>(request: &'a Command, name: &str) -> Cow<'a, str> {
    request.fields.get(name).unwrap_or(Cow::Borrowed("null"))
}
