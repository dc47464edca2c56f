//! The keys that Java's servers know, so that a file which names one that is not built here gets a clear word, and a
//! misspelt one a suggestion.

/// Keys a Java 5.4.0 name server reads from its file or its system properties; sorted, one a line.
pub const NAMESRV_KEYS: &str = include_str!("../known/namesrv.txt");
/// The same for a broker.
pub const BROKER_KEYS: &str = include_str!("../known/broker.txt");

/// The name most like `word`, if one is alike enough to be what was meant.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_ascii_lowercase();
    let allowed = (word.chars().count() / 4).clamp(1, 4);
    names
        .into_iter()
        .map(|name| (distance(&word, &name.to_ascii_lowercase()), name))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= allowed)
        .map(|(_, name)| name)
}

/// Edits between two words: insert, delete, replace, swap of neighbours.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for i in 1..=left.len() {
        let mut row = vec![i];
        for j in 1..=right.len() {
            let replace = above[j - 1] + usize::from(left[i - 1] != right[j - 1]);
            let mut best = replace.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (left, right, edits) in [
            ("", "", 0),
            ("abc", "abc", 0),
            ("abc", "acb", 1),
            ("abc", "abd", 1),
            ("abc", "ab", 1),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(left, right), edits, "{left} {right}");
            assert_eq!(distance(right, left), edits, "{right} {left}");
        }
    }

    #[test]
    fn a_typing_slip_finds_the_key_and_a_foreign_word_does_not() {
        let names = || BROKER_KEYS.lines();
        assert_eq!(nearest("lisenPort", names()), Some("listenPort"));
        assert_eq!(nearest("flushdisktype", names()), Some("flushDiskType"));
        assert_eq!(nearest("fileReservedTimes", names()), Some("fileReservedTime"));
        assert_eq!(nearest("brokerNmae", names()), Some("brokerName"));
        assert_eq!(nearest("com.example.unrelated", names()), None);
        assert_eq!(nearest("x", names()), None);
    }

    #[test]
    fn the_tables_are_sorted_and_hold_what_java_knows() {
        for table in [NAMESRV_KEYS, BROKER_KEYS] {
            assert!(table.lines().is_sorted());
            assert!(table.lines().any(|name| name == "listenPort"));
        }
        assert!(BROKER_KEYS.lines().any(|name| name == "popReviveConcurrency"), "new in 5.4.0");
    }
}
