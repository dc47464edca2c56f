//! Java `.properties` text: reading, and editing that leaves comments and order alone.
//!
//! The grammar is that of `java.util.Properties`: `#` and `!` comments, `=`, `:` or blanks between key and value, a
//! trailing odd backslash continues the line, `\t \n \r \f \uXXXX` are escapes, any other escaped character stands for
//! itself, and the last of several equal keys wins. One difference: a file that is valid UTF-8 is read as UTF-8 (Java
//! reads ISO-8859-1). Everything written here is ASCII, so Java reads it the same way.

use std::fmt::Write as _;

/// A `\u` escape without four hexadecimal digits: the only way properties text can be malformed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: malformed \\uxxxx escape")]
pub struct Malformed {
    /// Number of the first line of the entry, from 1.
    pub line: usize,
}

/// One `key = value` of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub key: String,
    pub value: String,
    /// Number of the first line of the entry, from 1.
    pub line: usize,
    start: usize,
    end: usize,
}

/// The text of a properties file with its entries. Setting a key touches the lines of that key only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    text: Vec<u8>,
    entries: Vec<Entry>,
}

impl Document {
    /// Reads a whole file. Any bytes are accepted; see the module for how they are decoded.
    pub fn parse(text: &[u8]) -> Result<Document, Malformed> {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let latin1 = std::str::from_utf8(text).is_err();
        let mut lines = LogicalLines { text, position: 0, line: 1 };
        let mut entries = Vec::new();
        while let Some(line) = lines.next_line() {
            let (key, value) = split(&line.content);
            let decode = |bytes| unescape(bytes, latin1).ok_or(Malformed { line: line.number });
            let (key, value) = (decode(key)?, decode(value)?);
            entries.push(Entry { key, value, line: line.number, start: line.start, end: line.end });
        }
        Ok(Document { text: text.to_vec(), entries })
    }

    /// All entries in file order, duplicates included.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry that counts for `key`: the last one.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().rev().find(|entry| entry.key == key)
    }

    /// Replaces the entry that counts for `key`, or appends one at the end.
    pub fn set(&mut self, key: &str, value: &str) {
        let line = format!("{}={}", escape(key, true), escape(value, false));
        if let Some(entry) = self.get(key) {
            let edited = [&self.text[..entry.start], line.as_bytes(), &self.text[entry.end..]].concat();
            self.replace(edited, self.entries.len(), key, value);
            return;
        }
        // the last line may lack its end, or continue into what is appended: take the first separator that works
        for separator in ["", "\n", "\n\n"] {
            let edited = [&self.text, separator.as_bytes(), line.as_bytes(), b"\n"].concat();
            if self.replace(edited, self.entries.len() + 1, key, value) {
                return;
            }
        }
    }

    /// Takes over an edited text if it reads as it should.
    fn replace(&mut self, edited: Vec<u8>, entries: usize, key: &str, value: &str) -> bool {
        match Document::parse(&edited) {
            Ok(document)
                if document.entries.len() == entries && document.get(key).is_some_and(|entry| entry.value == value) =>
            {
                *self = document;
                true
            }
            _ => false,
        }
    }

    /// The text to write to the file.
    pub fn text(&self) -> &[u8] {
        &self.text
    }
}

/// Writes `key=value` lines that both this reader and Java read back to the same strings.
pub fn write<'a>(entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = String::new();
    for (key, value) in entries {
        let _ = writeln!(text, "{}={}", escape(key, true), escape(value, false));
    }
    text
}

struct LogicalLine {
    content: Vec<u8>,
    number: usize,
    start: usize,
    end: usize,
}

/// Cuts text into logical lines: comments and blank lines dropped, continued lines joined.
struct LogicalLines<'a> {
    text: &'a [u8],
    position: usize,
    line: usize,
}

impl<'a> LogicalLines<'a> {
    fn next_line(&mut self) -> Option<LogicalLine> {
        loop {
            let (number, start) = (self.line, self.position);
            let (mut part, mut end) = self.natural_line()?;
            if matches!(part.first(), None | Some(b'#' | b'!')) {
                continue;
            }
            let mut content = Vec::new();
            loop {
                let continued = part.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1;
                content.extend_from_slice(&part[..part.len() - usize::from(continued)]);
                // lines of a lone backslash continue nothing: what follows may be a comment
                if !continued || content.is_empty() {
                    break;
                }
                match self.natural_line() {
                    Some(next) => (part, end) = next,
                    None => break,
                }
            }
            if !content.is_empty() {
                return Some(LogicalLine { content, number, start, end });
            }
        }
    }

    /// The next physical line without leading blanks and line end, and the position of that end.
    fn natural_line(&mut self) -> Option<(&'a [u8], usize)> {
        let rest = self.text.get(self.position..).filter(|rest| !rest.is_empty())?;
        let length = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len());
        let end = self.position + length;
        let terminator = match &rest[length..] {
            [b'\r', b'\n', ..] => 2,
            [] => 0,
            _ => 1,
        };
        self.position = end + terminator;
        self.line += 1;
        let blanks = rest[..length].iter().take_while(|byte| is_blank(**byte)).count();
        Some((&rest[blanks..length], end))
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\x0c')
}

/// Key and value of a logical line, both still escaped.
fn split(content: &[u8]) -> (&[u8], &[u8]) {
    let mut escaped = false;
    let key_end = content
        .iter()
        .position(|byte| {
            let ends = !escaped && (is_blank(*byte) || matches!(byte, b'=' | b':'));
            escaped = *byte == b'\\' && !escaped;
            ends
        })
        .unwrap_or(content.len());
    let skip_blanks = |mut at: usize| {
        while content.get(at).is_some_and(|byte| is_blank(*byte)) {
            at += 1;
        }
        at
    };
    let mut value_start = skip_blanks(key_end);
    if matches!(content.get(value_start), Some(b'=' | b':')) {
        value_start = skip_blanks(value_start + 1);
    }
    (&content[..key_end], &content[value_start..])
}

fn unescape(bytes: &[u8], latin1: bool) -> Option<String> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut units = Vec::new();
    let mut rest = bytes.iter().copied();
    while let Some(byte) = rest.next() {
        let escape = if byte == b'\\' { rest.next() } else { None };
        if escape == Some(b'u') {
            let mut unit = 0;
            for _ in 0..4 {
                unit = unit << 4 | char::from(rest.next()?).to_digit(16)?;
            }
            units.push(unit as u16);
            continue;
        }
        push_units(&mut units, &mut out);
        match escape {
            Some(b't') => out.push(b'\t'),
            Some(b'n') => out.push(b'\n'),
            Some(b'r') => out.push(b'\r'),
            Some(b'f') => out.push(b'\x0c'),
            Some(other) => push_byte(other, latin1, &mut out),
            None if byte == b'\\' => {}
            None => push_byte(byte, latin1, &mut out),
        }
    }
    push_units(&mut units, &mut out);
    Some(String::from_utf8_lossy(&out).into_owned())
}

fn push_byte(byte: u8, latin1: bool, out: &mut Vec<u8>) {
    if latin1 && !byte.is_ascii() {
        out.extend_from_slice(char::from(byte).encode_utf8(&mut [0; 2]).as_bytes());
    } else {
        out.push(byte);
    }
}

/// Adjacent `\u` escapes are UTF-16 and may be surrogate pairs.
fn push_units(units: &mut Vec<u16>, out: &mut Vec<u8>) {
    if !units.is_empty() {
        out.extend_from_slice(String::from_utf16_lossy(units).as_bytes());
        units.clear();
    }
}

fn escape(text: &str, is_key: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, character) in text.char_indices() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\x0c' => out.push_str("\\f"),
            ' ' if at == 0 || is_key => out.push_str("\\ "),
            '=' | ':' if is_key || at == 0 => {
                out.push('\\');
                out.push(character);
            }
            '#' | '!' if is_key && at == 0 => {
                out.push('\\');
                out.push(character);
            }
            ' '..='~' => out.push(character),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04X}");
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &[u8]) -> Vec<(String, String)> {
        let document = Document::parse(text).unwrap();
        document.entries().iter().map(|entry| (entry.key.clone(), entry.value.clone())).collect()
    }

    fn one(text: &str, key: &str, value: &str) {
        assert_eq!(pairs(text.as_bytes()), [(key.to_string(), value.to_string())], "{text:?}");
    }

    #[test]
    fn separators() {
        for text in ["a=b", "a:b", "a b", "a = b", "  a\t:\tb", "a\x0cb", "a =b\r\n", "a= b\r", "\u{feff}a=b"] {
            one(text, "a", "b");
        }
        one("a==b", "a", "=b");
        one("a = = b", "a", "= b");
        one("a", "a", "");
        one("a=", "a", "");
        one("=b", "", "b");
        one("a=b  ", "a", "b  ");
        one("a\\=b=c", "a=b", "c");
        one("a\\ b c", "a b", "c");
        one("a\\:\\\\ c:d", "a:\\", "c:d");
    }

    #[test]
    fn comments_and_blank_lines_are_dropped() {
        let text = b"# a=1\n! b=2\n\n   # c=3\n\t\n d=4 # not a comment\n#e=5\\\nf=6";
        assert_eq!(pairs(text), [("d".into(), "4 # not a comment".into()), ("f".into(), "6".into())]);
    }

    #[test]
    fn continuation() {
        one("a=b,\\\n   c", "a", "b,c");
        one("a=b\\\r\n# c", "a", "b# c");
        one("a\\\n  b=c", "ab", "c");
        one("a=b\\", "a", "b");
        one("\\\na=b", "a", "b");
        // an even number of backslashes is an escaped backslash
        assert_eq!(pairs(b"a=b\\\\\nc=d"), [("a".into(), "b\\".into()), ("c".into(), "d".into())]);
        // an empty continuation line ends the entry
        assert_eq!(pairs(b"a=b\\\n\nc=d"), [("a".into(), "b".into()), ("c".into(), "d".into())]);
    }

    #[test]
    fn escapes() {
        one("a=\\t\\n\\r\\f\\q\\u0041\\ud83d\\ude00", "a", "\t\n\r\x0cqA\u{1f600}");
        one("a=\\ud83dx", "a", "\u{fffd}x");
        assert_eq!(Document::parse(b"x=1\na=\\u12g4"), Err(Malformed { line: 2 }));
        assert_eq!(Document::parse(b"a=\\u12"), Err(Malformed { line: 1 }));
    }

    #[test]
    fn utf8_else_latin1() {
        one("a=\u{4e2d}", "a", "\u{4e2d}");
        assert_eq!(pairs(b"a=\xe9\\u4e2d"), [("a".into(), "\u{e9}\u{4e2d}".into())]);
    }

    #[test]
    fn the_last_duplicate_counts_and_lines_are_numbered() {
        let document = Document::parse(b"\n#\na=1\r\nb=\\\n 2\ra=3\n").unwrap();
        assert_eq!(document.get("a").map(|entry| (entry.value.as_str(), entry.line)), Some(("3", 6)));
        assert_eq!(document.get("b").map(|entry| (entry.value.as_str(), entry.line)), Some(("2", 4)));
        assert_eq!(document.entries().len(), 3);
    }

    #[test]
    fn setting_a_key_leaves_the_rest_alone() {
        let mut document = Document::parse(b"# head\na=1\n  b = x,\\\n    y\n# tail\xe9\nc=3").unwrap();
        document.set("b", " z:\\");
        document.set("d", "\u{4e2d}");
        assert_eq!(document.text(), b"# head\na=1\nb=\\ z:\\\\\n# tail\xe9\nc=3\nd=\\u4E2D\n");
        assert_eq!(document.get("b").unwrap().value, " z:\\");
        assert_eq!(document.get("d").unwrap().value, "\u{4e2d}");
        let mut dangling = Document::parse(b"a=1\\").unwrap();
        dangling.set("b", "2");
        assert_eq!(dangling.text(), b"a=1\\\n\nb=2\n");
    }

    #[test]
    fn written_text_reads_back() {
        let odd = [("a b", " lead"), ("#k:=", "=x"), ("!", "tab\tnl\nback\\"), ("\u{1f600}", "\u{e9}"), ("e", "")];
        let text = write(odd);
        assert!(text.is_ascii());
        let expected: Vec<_> = odd.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        assert_eq!(pairs(text.as_bytes()), expected);
    }
}
