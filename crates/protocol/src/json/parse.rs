//! Text into a tree.

use std::borrow::Cow;

use super::{DEEPEST, JsonError, Node};
use crate::json_header::unescape;

pub(super) fn parse(text: &[u8]) -> Result<Node<'_>, JsonError> {
    let text = std::str::from_utf8(text).map_err(|_| JsonError::NotUtf8)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut parser = Parser { text, at: 0 };
    let node = parser.value(0)?;
    match parser.peek()? {
        None => Ok(node),
        Some(_) => parser.fail("text behind the value"),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn fail<T>(&self, what: &'static str) -> Result<T, JsonError> {
        Err(JsonError::Syntax { what, at: self.at })
    }

    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes().get(self.at..).unwrap_or_default()
    }

    /// The next byte that is neither blank nor part of a comment.
    fn peek(&mut self) -> Result<Option<u8>, JsonError> {
        loop {
            match self.bytes().get(self.at) {
                Some(b' ' | b'\t' | b'\r' | b'\n' | 0x0C | 0x08) => self.at += 1,
                Some(b'/') => self.comment()?,
                other => return Ok(other.copied()),
            }
        }
    }

    /// Stands on a slash.
    fn comment(&mut self) -> Result<(), JsonError> {
        let rest = self.rest();
        let length = match rest.get(1) {
            Some(b'/') => memchr::memchr(b'\n', rest),
            Some(b'*') => memchr::memmem::find(rest, b"*/").filter(|at| *at > 1).map(|at| at + 2),
            _ => return self.fail("a lone slash"),
        };
        match length {
            Some(length) => self.at += length,
            None if rest.get(1) == Some(&b'/') => self.at = self.text.len(),
            None => return self.fail("a comment that does not end"),
        }
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<Node<'a>, JsonError> {
        match self.peek()? {
            Some(b'{') => self.map(depth),
            Some(b'[') => self.list(depth),
            Some(quote @ (b'"' | b'\'')) => self.quoted(quote).map(Node::Text),
            Some(_) => self.word(),
            None => self.fail("no value"),
        }
    }

    fn enter(&mut self, depth: usize) -> Result<(), JsonError> {
        if depth >= DEEPEST {
            return self.fail("nesting too deep");
        }
        self.at += 1;
        Ok(())
    }

    fn map(&mut self, depth: usize) -> Result<Node<'a>, JsonError> {
        self.enter(depth)?;
        let mut members = Vec::new();
        while self.more(b'}')? {
            let key = match self.value(depth + 1)? {
                // A bare word is a name, whatever value it would be elsewhere.
                Node::Bool(word) => Node::Text(Cow::Borrowed(if word { "true" } else { "false" })),
                Node::Null => Node::Text(Cow::Borrowed("null")),
                key => key,
            };
            if self.peek()? != Some(b':') {
                return self.fail("no colon behind a name");
            }
            self.at += 1;
            members.push((key, self.value(depth + 1)?));
        }
        Ok(Node::Map(members))
    }

    fn list(&mut self, depth: usize) -> Result<Node<'a>, JsonError> {
        self.enter(depth)?;
        let mut items = Vec::new();
        while self.more(b']')? {
            items.push(self.value(depth + 1)?);
        }
        Ok(Node::List(items))
    }

    /// Whether another member comes before `end`, which is passed over. Commas may be missing, repeated or trailing
    /// only where fastjson lets them: this reader lets them everywhere but demands one between two members.
    fn more(&mut self, end: u8) -> Result<bool, JsonError> {
        let before = self.bytes().get(self.at.wrapping_sub(1)).copied();
        let mut comma = matches!(before, Some(b'{' | b'['));
        loop {
            match self.peek()? {
                Some(b',') => {
                    comma = true;
                    self.at += 1;
                }
                Some(byte) if byte == end => {
                    self.at += 1;
                    return Ok(false);
                }
                Some(_) if comma => return Ok(true),
                Some(_) => return self.fail("no comma between members"),
                None => return self.fail("an object or array that does not end"),
            }
        }
    }

    /// Stands on the opening quote.
    fn quoted(&mut self, quote: u8) -> Result<Cow<'a, str>, JsonError> {
        let start = self.at + 1;
        let mut at = start;
        let mut escaped = false;
        loop {
            let rest = self.bytes().get(at..).unwrap_or_default();
            match memchr::memchr2(quote, b'\\', rest) {
                Some(found) if rest[found] == quote => {
                    at += found;
                    break;
                }
                Some(found) => {
                    escaped = true;
                    at += found + 2;
                }
                None => return self.fail("a string that does not end"),
            }
        }
        self.at = at + 1;
        // Both quotes are ASCII, so the borders are character borders.
        let inside = self.text.get(start..at).unwrap_or_default();
        Ok(if escaped { Cow::Owned(unescape(inside)) } else { Cow::Borrowed(inside) })
    }

    /// A number, a literal, or a bare name.
    fn word(&mut self) -> Result<Node<'a>, JsonError> {
        let start = self.at;
        let ends =
            |byte: &u8| !(byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.' | b'_' | b'$' | 0x80..));
        let length = self.rest().iter().position(ends).unwrap_or(self.rest().len());
        let word = self.text.get(start..start + length).unwrap_or_default();
        if word.is_empty() {
            return self.fail("no value");
        }
        self.at += length;
        Ok(match word {
            "true" => Node::Bool(true),
            "false" => Node::Bool(false),
            "null" | "undefined" | "NaN" => Node::Null,
            _ if !word.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '-' | '+' | '.')) => {
                Node::Text(Cow::Borrowed(word))
            }
            _ => match number(word) {
                Some(number) => number,
                None => {
                    self.at = start;
                    return self.fail("a malformed number");
                }
            },
        })
    }
}

/// Also reads Java's type suffixes, which fastjson knows.
fn number(word: &str) -> Option<Node<'static>> {
    if let Ok(whole) = word.parse() {
        return Some(Node::Int(whole));
    }
    if let Ok(whole) = word.trim_end_matches(['L', 'S', 'B']).parse() {
        return Some(Node::Int(whole));
    }
    word.trim_end_matches(['F', 'D']).parse().ok().filter(|number: &f64| number.is_finite()).map(Node::Float)
}
