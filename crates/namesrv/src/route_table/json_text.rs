//! Writes JSON text in the two dialects of the name server's answers, without a tree in between.

/// How the keys of integer maps are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Every key quoted: for clients from 4.9.4 on, and those that ask for it.
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

    /// Java 5.4.0 writes letters past ASCII as they are, in both dialects.
    pub(crate) fn text(&mut self, text: &str) {
        self.out.push(b'"');
        let special = |byte: u8| byte < 0x20 || matches!(byte, b'"' | b'\\');
        let mut rest = text.as_bytes();
        while let Some(at) = rest.iter().position(|byte| special(*byte)) {
            let (plain, after) = rest.split_at(at);
            self.out.extend_from_slice(plain);
            if let Some((byte, after)) = after.split_first() {
                self.escaped(*byte);
                rest = after;
            }
        }
        self.out.extend_from_slice(rest);
        self.out.push(b'"');
    }

    fn escaped(&mut self, byte: u8) {
        use std::io::Write;
        let short = match byte {
            b'"' | b'\\' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0C => b'f',
            _ => {
                let _ = write!(self.out, "\\u{byte:04X}");
                return;
            }
        };
        self.out.extend_from_slice(&[b'\\', short]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dialects_differ_in_integer_keys() {
        let write = |dialect| {
            let mut text = JsonText::new(dialect, 0);
            text.open(b'{');
            text.int_key(0);
            text.text("a/b");
            text.key("k\"");
            text.text("\u{e9}\u{2028}\n\u{1}");
            text.close(b'}');
            String::from_utf8(text.finish()).unwrap()
        };
        let rest = "\"a/b\",\"k\\\"\":\"\u{e9}\u{2028}\\n\\u0001\"}";
        assert_eq!(write(Dialect::Standard), format!("{{\"0\":{rest}"));
        assert_eq!(write(Dialect::Legacy), format!("{{0:{rest}"));
    }
}
