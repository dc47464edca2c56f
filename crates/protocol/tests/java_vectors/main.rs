//! Vectors written by RocketMQ's own Java classes: each is decoded, its content compared with what Java says it holds,
//! and encoded again to the same bytes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bodies;
mod frames;
mod primitives;
mod records;

use std::path::Path;

use serde_json::Value;

/// One line of a vector file.
struct Vector {
    name: String,
    line: Value,
}

impl Vector {
    fn kind(&self) -> &str {
        self.line["kind"].as_str().unwrap()
    }

    fn bytes(&self) -> Vec<u8> {
        hex(self.line["hex"].as_str().unwrap())
    }

    fn expect(&self) -> &Value {
        &self.line["expect"]
    }
}

fn vectors(file: &str) -> Vec<Vector> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|line| Vector { name: line["name"].as_str().unwrap().to_owned(), line }).collect()
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn show(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).escape_debug().to_string()
}
