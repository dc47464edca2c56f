//! References: fastjson 1 writes an object that it met before as `{"$ref":"$.path"}`.

use super::{JsonError, Node};

/// How many nodes references may add; a text of nested references could otherwise grow without bound.
const MOST_COPIED: usize = 100_000;

/// Puts copies in the places of references to absolute paths; others become null.
pub(super) fn resolve(root: Node<'_>) -> Result<Node<'_>, JsonError> {
    if !has_reference(&root) {
        return Ok(root);
    }
    let mut left = MOST_COPIED;
    copy(&root, &root, 0, &mut left).ok_or_else(|| JsonError::Content("references that grow too large".to_owned()))
}

fn reference<'n>(node: &'n Node<'_>) -> Option<&'n str> {
    let Node::Map(members) = node else { return None };
    match members.as_slice() {
        [(Node::Text(key), Node::Text(path))] if key == "$ref" => Some(path),
        _ => None,
    }
}

fn has_reference(node: &Node<'_>) -> bool {
    match node {
        Node::List(items) => items.iter().any(has_reference),
        Node::Map(members) => {
            reference(node).is_some() || members.iter().any(|(key, value)| has_reference(key) || has_reference(value))
        }
        _ => false,
    }
}

/// `None` when the budget or the depth is used up, which circles bring about.
fn copy<'a>(node: &Node<'a>, root: &Node<'a>, depth: usize, left: &mut usize) -> Option<Node<'a>> {
    *left = left.checked_sub(1)?;
    if depth > 2 * super::DEEPEST {
        return None;
    }
    if let Some(path) = reference(node) {
        return match find(root, path) {
            Some(target) => copy(target, root, depth + 1, left),
            None => Some(Node::Null),
        };
    }
    Some(match node {
        Node::List(items) => {
            Node::List(items.iter().map(|item| copy(item, root, depth + 1, left)).collect::<Option<_>>()?)
        }
        Node::Map(members) => {
            let copied = members
                .iter()
                .map(|(key, value)| Some((copy(key, root, depth + 1, left)?, copy(value, root, depth + 1, left)?)));
            Node::Map(copied.collect::<Option<_>>()?)
        }
        other => other.clone(),
    })
}

/// Follows a path like `$.brokerDatas[0].brokerAddrs`.
fn find<'n, 'a>(root: &'n Node<'a>, path: &str) -> Option<&'n Node<'a>> {
    let mut steps = path.split(['.', '[']);
    if steps.next() != Some("$") {
        return None;
    }
    steps.try_fold(root, |node, step| {
        let step = step.strip_suffix(']').unwrap_or(step);
        match node {
            Node::List(items) => items.get(step.parse::<usize>().ok()?),
            _ => node.member(step.trim_matches(['"', '\''])),
        }
    })
}
