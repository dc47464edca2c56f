//! The fuzz targets' checks over the saved corpus and over the vectors, and over what proptest makes up.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../fuzz/checks.rs"]
mod checks;

use std::path::Path;

use proptest::prelude::*;

type Check = fn(&[u8]);

const CHECKS: [(&str, Check); 5] = [
    ("frame", checks::frame),
    ("headers", checks::headers),
    ("bodies", checks::bodies),
    ("record", checks::record),
    ("properties", checks::properties),
];

#[test]
fn saved_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    for (name, check) in CHECKS {
        let files = std::fs::read_dir(corpus.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut count = 0;
        for file in files {
            check(&std::fs::read(file.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count > 0, "no inputs for {name}");
    }
}

/// Every vector of Java's, whole and damaged in one place, against every check.
#[test]
fn vectors_damaged() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let hex = |text: &str| -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    };
    for file in ["frames.jsonl", "bodies.jsonl", "records.jsonl", "primitives.jsonl"] {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        for (at, line) in text.lines().enumerate() {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            let mut bytes = hex(value["hex"].as_str().unwrap());
            for (_, check) in CHECKS {
                check(&bytes);
                check(bytes.get(8..).unwrap_or_default());
                if !bytes.is_empty() {
                    let place = at * 7 % bytes.len();
                    bytes[place] ^= 1 << (at % 8);
                }
            }
        }
    }
}

/// Text that looks like what the readers look for.
fn almost_json() -> impl Strategy<Value = Vec<u8>> {
    const PARTS: [&str; 30] = [
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "'",
        "\\",
        "\\u0041",
        "\\ud83d\\ude80",
        "\\u",
        "1",
        "-2.5e3",
        "true",
        "null",
        "name",
        "\"topicName\"",
        "\"dataVersion\"",
        "\"offsetTable\"",
        "{\"brokerName\":\"b\"}",
        "/*",
        "*/",
        "//",
        "\n",
        " ",
        "\"$ref\":\"$.a\"",
        "é",
        "0",
        "99999999999999999999",
    ];
    prop::collection::vec(prop::sample::select(&PARTS[..]), 0..40).prop_map(|parts| parts.concat().into_bytes())
}

proptest! {
    #[test]
    fn any_bytes(data in prop::collection::vec(any::<u8>(), 0..300)) {
        for (_, check) in CHECKS {
            check(&data);
        }
    }

    #[test]
    fn any_almost_json(data in almost_json()) {
        checks::bodies(&data);
        checks::headers(&data);
    }

    #[test]
    fn any_properties(pairs in prop::collection::vec(("[A-Z\u{1}]{0,3}", "[a-z\u{1}é]{0,3}"), 0..8), open in any::<bool>()) {
        let mut all: Vec<u8> = pairs.iter().flat_map(|(k, v)| format!("{k}\u{1}{v}\u{2}").into_bytes()).collect();
        if open {
            all.pop();
        }
        checks::properties(&all);
    }
}
