//! The KV configuration.

use protocol::headers::{
    DeleteKVConfigRequest, GetKVConfigRequest, GetKVConfigResponse, GetKVListByNamespaceRequest, PutKVConfigRequest,
};
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
    let GetKVConfigRequest { namespace, key } = request.header()?;
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
    let header: DeleteKVConfigRequest = request.header()?;
    shared.kv.delete(&header.namespace, &header.key);
    Ok(Answer::success())
}

/// GET_KVLIST_BY_NAMESPACE.
pub(super) fn list(shared: &Shared, _: &Connection, request: &Command) -> Result<Answer, Answer> {
    let GetKVListByNamespaceRequest { namespace } = request.header()?;
    match shared.kv.list(&namespace) {
        Some(list) => Ok(Answer::body(list)),
        None => Err(Answer::refuse(response_code::QUERY_NOT_FOUND, format!("No config item, Namespace: {namespace}"))),
    }
}
