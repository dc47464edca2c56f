//! Random properties texts, with what `java.util.Properties` makes of them.
//!
//! A line of the table: the text, a tab, and `malformed` or the pairs `key=value` with spaces between; all in hexadecimal.

#![allow(clippy::unwrap_used)] // a broken table fails the test

use std::collections::BTreeMap;

use service::properties::{Document, write};

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn text(hex: &str) -> String {
    String::from_utf8(bytes(hex)).unwrap()
}

/// Without the empty key: Java also finds one where a text ends in a line of a lone backslash.
fn pairs(document: &Document) -> BTreeMap<String, String> {
    let entries = document.entries().iter().filter(|entry| !entry.key.is_empty());
    entries.map(|entry| (entry.key.clone(), entry.value.clone())).collect()
}

#[test]
fn texts_are_read_as_java_reads_them() {
    for line in include_str!("java-properties.tsv").lines() {
        let (input, expected) = line.split_once('\t').unwrap();
        let input = bytes(input);
        let shown = String::from_utf8_lossy(&input);
        let read = Document::parse(&input);
        if expected == "malformed" {
            assert!(read.is_err(), "{shown:?}");
            continue;
        }
        let expected: BTreeMap<String, String> = expected
            .split(' ')
            .filter(|pair| !pair.is_empty())
            .map(|pair| pair.split_once('=').unwrap())
            .map(|(key, value)| (text(key), text(value)))
            .filter(|(key, _)| !key.is_empty())
            .collect();
        let mut read = read.unwrap();
        assert_eq!(pairs(&read), expected, "{shown:?}");

        let written = write(expected.iter().map(|(key, value)| (key.as_str(), value.as_str())));
        assert_eq!(pairs(&Document::parse(written.as_bytes()).unwrap()), expected, "{written:?}");

        // setting a key changes that key and no other
        let mut edited = expected.clone();
        for key in ["a", "new key"] {
            read.set(key, " v\\");
            edited.insert(key.to_string(), " v\\".to_string());
        }
        assert_eq!(pairs(&read), edited, "{shown:?} became {:?}", String::from_utf8_lossy(read.text()));
    }
}
