//! Tag expressions: `*`, or tags joined by `||`.

use crate::java_hash;

/// Why a text is not a tag expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the tag expression {0:?} names no tag")]
pub struct BadTagExpression(pub String);

/// A parsed tag expression.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TagExpression {
    /// Every message, tagged or not.
    #[default]
    All,
    /// Messages whose whole TAGS text equals one of these.
    AnyOf { tags: Vec<Box<str>>, codes: Vec<i32> },
}

impl TagExpression {
    /// Parses what a client sent. Nothing, an empty text and `*` mean everything.
    ///
    /// An expression of blanks between bars is accepted and matches nothing, one of bars alone is an error: both as
    /// Java has it, where clients depend on neither being read as `*`.
    pub fn parse(expression: &str) -> Result<Self, BadTagExpression> {
        if expression.is_empty() || expression == "*" {
            return Ok(Self::All);
        }
        if expression.split("||").all(str::is_empty) {
            return Err(BadTagExpression(expression.to_owned()));
        }
        let mut tags: Vec<Box<str>> = Vec::new();
        for tag in expression.split("||").map(|tag| tag.trim_matches(|c| c <= ' ')).filter(|tag| !tag.is_empty()) {
            if !tags.iter().any(|known| **known == *tag) {
                tags.push(tag.into());
            }
        }
        Ok(Self::of_tags(tags))
    }

    /// The expression that wants exactly these tags.
    pub fn of_tags(tags: Vec<Box<str>>) -> Self {
        let mut codes: Vec<i32> = tags.iter().map(|tag| java_hash(tag)).collect();
        codes.sort_unstable();
        codes.dedup();
        Self::AnyOf { tags, codes }
    }

    /// What the consume queue can decide: by hash, so colliding tags pass too.
    pub fn matches_code(&self, tags_code: i64) -> bool {
        match self {
            Self::All => true,
            // The low half only, as the queue keeps the sign-extended hash.
            Self::AnyOf { codes, .. } => codes.contains(&(tags_code as i32)),
        }
    }

    /// What a consumer decides, by the TAGS property itself.
    pub fn matches_tags(&self, message_tags: Option<&str>) -> bool {
        match self {
            Self::All => true,
            Self::AnyOf { tags, .. } => message_tags.is_some_and(|text| tags.iter().any(|tag| **tag == *text)),
        }
    }

    /// The wanted tags; empty for everything.
    pub fn tags(&self) -> &[Box<str>] {
        match self {
            Self::All => &[],
            Self::AnyOf { tags, .. } => tags,
        }
    }

    /// The hashes of the wanted tags, ascending; empty for everything.
    pub fn codes(&self) -> &[i32] {
        match self {
            Self::All => &[],
            Self::AnyOf { codes, .. } => codes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> TagExpression {
        TagExpression::parse(text).unwrap()
    }

    #[test]
    fn everything() {
        for text in ["", "*"] {
            assert_eq!(parse(text), TagExpression::All);
            assert!(parse(text).matches_code(0) && parse(text).matches_tags(None));
        }
    }

    #[test]
    fn tags_are_split_trimmed_and_matched_by_hash() {
        let expression = parse(" TagA||TagB || TagA ||");
        assert_eq!(expression.tags(), &["TagA".into(), "TagB".into()]);
        assert!(expression.matches_code(2_598_919));
        assert!(expression.matches_code(i64::from(java_hash("TagB"))));
        assert!(!expression.matches_code(0));
        assert!(!expression.matches_code(i64::from(java_hash("TagA || TagB"))));
        assert!(expression.matches_tags(Some("TagB")) && !expression.matches_tags(Some("TagC")));
        assert!(!expression.matches_tags(None));
    }

    #[test]
    fn colliding_tags_pass_the_queue_and_not_the_consumer() {
        let expression = parse("Aa");
        assert!(expression.matches_code(i64::from(java_hash("BB"))));
        assert!(!expression.matches_tags(Some("BB")));
    }

    #[test]
    fn negative_codes_match_sign_extended() {
        let expression = parse("polygenelubricants");
        assert!(expression.matches_code(-2_147_483_648));
    }

    #[test]
    fn bars_alone_are_an_error_and_blanks_match_nothing() {
        assert!(TagExpression::parse("||").is_err());
        assert!(TagExpression::parse("||||").is_err());
        let nothing = parse(" || ");
        assert!(!nothing.matches_code(0) && nothing.tags().is_empty());
        assert!(parse("|||").matches_tags(Some("|")));
    }
}
