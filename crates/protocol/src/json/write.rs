//! A tree into text.

use super::Node;

/// How keys that are no strings are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keys {
    Bare,
    Quoted,
}

pub(super) fn compact(node: &Node<'_>, keys: Keys) -> Vec<u8> {
    let mut writer = Writer { out: Vec::with_capacity(256), keys, pretty: false };
    writer.node(node, 0);
    writer.out
}

pub(super) fn pretty(node: &Node<'_>) -> Vec<u8> {
    let mut writer = Writer { out: Vec::with_capacity(1024), keys: Keys::Bare, pretty: true };
    writer.node(node, 0);
    writer.out
}

struct Writer {
    out: Vec<u8>,
    keys: Keys,
    pretty: bool,
}

impl Writer {
    fn node(&mut self, node: &Node<'_>, depth: usize) {
        match node {
            Node::Null => self.out.extend_from_slice(b"null"),
            Node::Bool(value) => self.out.extend_from_slice(if *value { b"true" } else { b"false" }),
            Node::Int(value) => self.out.extend_from_slice(value.to_string().as_bytes()),
            Node::Float(value) => float(&mut self.out, *value),
            Node::Text(text) => crate::json_header::write_string(&mut self.out, text),
            Node::List(items) => self.list(items, depth),
            Node::Map(members) => self.map(members, depth),
        }
    }

    fn list(&mut self, items: &[Node<'_>], depth: usize) {
        // Java writes its typed lists of numbers in one line, all others one item a line.
        let one_line = !items.is_empty() && items.iter().all(|item| matches!(item, Node::Int(_)));
        self.out.push(b'[');
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.out.push(b',');
            }
            if !one_line {
                self.line(depth + 1);
            }
            self.node(item, depth + 1);
        }
        if items.is_empty() {
            self.line(depth + 1);
        }
        if !one_line {
            self.line(depth);
        }
        self.out.push(b']');
    }

    fn map(&mut self, members: &[(Node<'_>, Node<'_>)], depth: usize) {
        self.out.push(b'{');
        let mut first = true;
        for (key, value) in members {
            if matches!(value, Node::Null) {
                continue;
            }
            if !first {
                self.out.push(b',');
            }
            first = false;
            self.line(depth + 1);
            self.key(key, depth + 1);
            self.out.push(b':');
            self.node(value, depth + 1);
        }
        if first {
            // Java leaves a line with nothing but tabs in an empty object.
            self.line(depth + 1);
        }
        self.line(depth);
        self.out.push(b'}');
    }

    fn key(&mut self, key: &Node<'_>, depth: usize) {
        match key {
            Node::Text(text) => crate::json_header::write_string(&mut self.out, text),
            other if self.keys == Keys::Quoted => crate::json_header::write_string(&mut self.out, &other.key_text()),
            other => self.node(other, depth),
        }
    }

    fn line(&mut self, depth: usize) {
        if self.pretty {
            self.out.push(b'\n');
            self.out.resize(self.out.len() + depth, b'\t');
        }
    }
}

/// Writes a number as Java's `Double.toString` does: plain between a thousandth and ten millions, else with an
/// exponent, and always with a digit behind the point.
fn float(out: &mut Vec<u8>, value: f64) {
    if !value.is_finite() {
        out.extend_from_slice(b"null");
        return;
    }
    let size = value.abs();
    let text = if size == 0.0 || (1e-3..1e7).contains(&size) {
        let mut plain = value.to_string();
        if !plain.contains('.') {
            plain.push_str(".0");
        }
        plain
    } else {
        let text = format!("{value:E}");
        match text.split_once('E') {
            Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
            _ => text,
        }
    };
    out.extend_from_slice(text.as_bytes());
}
