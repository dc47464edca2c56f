//! Which messages a subscription wants: tag expressions today, SQL92 later.
//!
//! The broker compares hashes only, as the consume queue keeps nothing else; consumers compare the text again.

mod tag;

pub use protocol::record::java_hash;
pub use tag::{BadTagExpression, TagExpression};

/// The tag code of a consume queue unit for a message with these tags: 0 without tags, else the sign-extended hash.
pub fn tags_code(tags: Option<&str>) -> i64 {
    tags.map_or(0, |tags| i64::from(java_hash(tags)))
}

/// How an expression is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExpressionType {
    /// `*` or `a || b`.
    #[default]
    Tag,
    Sql92,
}

impl ExpressionType {
    /// Reads the name that clients send; none and the empty name mean tags. `None` for an unknown name.
    pub fn from_name(name: Option<&str>) -> Option<Self> {
        match name {
            None | Some("" | "TAG") => Some(Self::Tag),
            Some("SQL92") => Some(Self::Sql92),
            Some(_) => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Tag => "TAG",
            Self::Sql92 => "SQL92",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_javas() {
        assert_eq!(java_hash(""), 0);
        assert_eq!(java_hash("TagA"), 2_598_919);
        assert_eq!(java_hash("TagA || TagB"), 1_359_775_119);
        assert_eq!(java_hash("标签"), 857_175);
        assert_eq!(java_hash("😀"), 1_772_899);
        assert_eq!(java_hash("polygenelubricants"), i32::MIN);
        assert_eq!(java_hash("TopicTest#KEY1"), -1_656_969_516);
        assert_eq!(tags_code(Some("polygenelubricants")), -2_147_483_648);
        assert_eq!(tags_code(None), 0);
    }

    #[test]
    fn types_by_name() {
        assert_eq!(ExpressionType::from_name(None), Some(ExpressionType::Tag));
        assert_eq!(ExpressionType::from_name(Some("SQL92")), Some(ExpressionType::Sql92));
        assert_eq!(ExpressionType::from_name(Some("REGEX")), None);
    }
}
