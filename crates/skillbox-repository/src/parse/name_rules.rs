//! The rules of the specification for the name of a skill.

use std::borrow::Cow;
use std::fmt;

use unicode_normalization::UnicodeNormalization;

use super::python_text::is_python_alphanumeric;

/// The maximum number of code points in a name.
pub const MAX_NAME_CHARS: usize = 64;

/// A rule that a name breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameViolation {
    /// The name has this many code points, more than 64.
    TooLong(usize),
    /// The name differs from its lower-case form.
    NotLowercase,
    /// The name starts or ends with a hyphen.
    EdgeHyphen,
    /// The name has two hyphens in a row.
    DoubleHyphen,
    /// The name contains this character, which is not a letter, a digit or a hyphen.
    InvalidCharacter(char),
}

/// Returns the rules that a name breaks, in the order of the reference tool.
///
/// The rules apply to the compatibility-normalized form (NFKC) of the name.
pub fn find_name_violations(name: &str) -> Vec<NameViolation> {
    let name = normalize_name(name);
    let mut violations = Vec::new();
    let length = name.chars().count();
    if length > MAX_NAME_CHARS {
        violations.push(NameViolation::TooLong(length));
    }
    // The whole text is compared, because the lower case of some characters depends on their neighbors.
    if name.to_lowercase() != *name {
        violations.push(NameViolation::NotLowercase);
    }
    if name.starts_with('-') || name.ends_with('-') {
        violations.push(NameViolation::EdgeHyphen);
    }
    if name.contains("--") {
        violations.push(NameViolation::DoubleHyphen);
    }
    if let Some(c) = name.chars().find(|c| *c != '-' && !is_python_alphanumeric(*c)) {
        violations.push(NameViolation::InvalidCharacter(c));
    }
    violations
}

/// Returns the form in which names are checked and compared.
pub(crate) fn normalize_name(name: &str) -> Cow<'_, str> {
    if name.is_ascii() {
        return Cow::Borrowed(name);
    }
    Cow::Owned(name.nfkc().collect())
}

impl fmt::Display for NameViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(length) => write!(f, "it has {length} characters, more than {MAX_NAME_CHARS}"),
            Self::NotLowercase => f.write_str("it is not lower-case"),
            Self::EdgeHyphen => f.write_str("it starts or ends with a hyphen"),
            Self::DoubleHyphen => f.write_str("it has two hyphens in a row"),
            Self::InvalidCharacter(c) => {
                write!(f, "it contains {c:?}, which is not a letter, a digit or a hyphen")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_checked() {
        use NameViolation::{DoubleHyphen, EdgeHyphen, InvalidCharacter, NotLowercase, TooLong};
        let long = "a".repeat(65);
        let cases: [(&str, &[NameViolation]); 18] = [
            ("web-research", &[]),
            ("skill-v2", &[]),
            (&long[1..], &[]),
            (&long, &[TooLong(65)]),
            ("My-Skill", &[NotLowercase]),
            ("-skill", &[EdgeHyphen]),
            ("skill-", &[EdgeHyphen]),
            ("-", &[EdgeHyphen]),
            ("my--skill", &[DoubleHyphen]),
            ("my_skill", &[InvalidCharacter('_')]),
            ("café", &[]),
            ("über-tool", &[]),
            ("Café", &[NotLowercase]),
            ("技能", &[]),
            ("мой-навык", &[]),
            ("ｆｕｌｌ", &[]),
            ("a🎉", &[InvalidCharacter('🎉')]),
            // NFKC turns this code point into eighteen.
            ("\u{fdfa}", &[InvalidCharacter(' ')]),
        ];
        for (name, violations) in cases {
            assert_eq!(find_name_violations(name), violations, "{name}");
        }
        // Vowel signs are marks, not letters, although `char::is_alphanumeric` accepts them.
        assert_eq!(find_name_violations("हिन्दी"), [InvalidCharacter('\u{93f}')]);
    }
}
