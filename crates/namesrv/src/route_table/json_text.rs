//! Writes JSON text in the two dialects of the name server's answers, without a tree in between.

/// How the keys of integer maps and the characters past ASCII are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Every key quoted, everything past ASCII escaped: for clients from 4.9.4 on, and those that ask for it.
    Standard,
    /// Integer keys bare, as older clients expect them.
    Legacy,
}

/// Appends to a text. The caller sees to brackets and commas through [`Self::open`], [`Self::key`], [`Self::item`].
#[derive(Debug)]
pub(crate) struct JsonText {
    out: Vec<u8>,
    dialect: Dialect,
}

impl JsonText {
    pub(crate) fn new(dialect: Dialect, capacity: usize) -> Self {
        Self { out: Vec::with_capacity(capacity), dialect }
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.out.shrink_to_fit();
        self.out
    }

    pub(crate) fn open(&mut self, bracket: u8) {
        self.out.push(bracket);
    }

    pub(crate) fn close(&mut self, bracket: u8) {
        self.out.push(bracket);
    }

    /// A comma unless this is the first of its bracket.
    pub(crate) fn item(&mut self) {
        if !matches!(self.out.last(), Some(b'{' | b'[')) {
            self.out.push(b',');
        }
    }

    /// A field name known to need no escape.
    pub(crate) fn field(&mut self, name: &str) {
        self.item();
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    pub(crate) fn key(&mut self, key: &str) {
        self.item();
        self.text(key);
        self.out.push(b':');
    }

    pub(crate) fn int_key(&mut self, key: i64) {
        self.item();
        match self.dialect {
            Dialect::Standard => {
                self.out.push(b'"');
                self.int(key);
                self.out.extend_from_slice(b"\":");
            }
            Dialect::Legacy => {
                self.int(key);
                self.out.push(b':');
            }
        }
    }

    pub(crate) fn int(&mut self, value: i64) {
        use std::io::Write;
        // Writing into memory cannot fail.
        let _ = write!(self.out, "{value}");
    }

    pub(crate) fn flag(&mut self, value: bool) {
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.out.push(b'"');
        if text.bytes().all(|byte| (0x20..0x7F).contains(&byte) && !matches!(byte, b'"' | b'\\' | b'/')) {
            self.out.extend_from_slice(text.as_bytes());
        } else {
            text.chars().for_each(|letter| self.escaped(letter));
        }
        self.out.push(b'"');
    }

    fn escaped(&mut self, letter: char) {
        let short = match letter {
            '"' | '\\' => letter as u8,
            '\n' => b'n',
            '\r' => b'r',
            '\t' => b't',
            '\u{8}' => b'b',
            '\u{c}' => b'f',
            // Java's writer of the standard form escapes it, too.
            '/' if self.dialect == Dialect::Standard => b'/',
            _ => return self.long_escaped(letter),
        };
        self.out.extend_from_slice(&[b'\\', short]);
    }

    fn long_escaped(&mut self, letter: char) {
        use std::io::Write;
        let code = u32::from(letter);
        let plain = match self.dialect {
            Dialect::Standard => (0x20..0x7F).contains(&code),
            Dialect::Legacy => code >= 0x20 && !(0x7F..0xA0).contains(&code) && !matches!(code, 0x2028 | 0x2029),
        };
        let mut units = [0u16; 2];
        if plain {
            let mut bytes = [0u8; 4];
            self.out.extend_from_slice(letter.encode_utf8(&mut bytes).as_bytes());
        } else {
            for unit in letter.encode_utf16(&mut units) {
                let _ = write!(self.out, "\\u{unit:04X}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dialects_differ_in_integer_keys_and_in_letters() {
        let write = |dialect| {
            let mut text = JsonText::new(dialect, 0);
            text.open(b'{');
            text.int_key(0);
            text.text("a/b");
            text.key("k\"");
            text.text("\u{e9}\u{1F600}\n\u{1}");
            text.close(b'}');
            String::from_utf8(text.finish()).unwrap()
        };
        assert_eq!(write(Dialect::Standard), r#"{"0":"a\/b","k\"":"\u00E9\uD83D\uDE00\n\u0001"}"#);
        assert_eq!(write(Dialect::Legacy), "{0:\"a/b\",\"k\\\"\":\"\u{e9}\u{1F600}\\n\\u0001\"}");
    }
}
