//! The specification's rules for the name of a skill.

use std::borrow::Cow;
use std::fmt;

use unicode_normalization::UnicodeNormalization;

use crate::strict::python::is_alphanumeric;

/// Code points that a name may have at most.
pub const MAX_NAME_CHARS: usize = 64;

/// One way in which a name breaks the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameFault {
    /// It has so many code points, more than 64.
    TooLong(usize),
    /// It is not its own lower-case form.
    NotLowercase,
    /// It starts or ends with a hyphen.
    EdgeHyphen,
    /// It has two hyphens in a row.
    DoubleHyphen,
    /// It has this character, which is neither a letter nor a digit nor a hyphen.
    InvalidCharacter(char),
}

/// What is wrong with a name, in the order of the reference tool; nothing for a good one.
///
/// The name is judged in its compatibility-normalised form (NFKC), without blanks around it.
pub fn name_faults(name: &str) -> Vec<NameFault> {
    let name = normalise(name);
    let mut faults = Vec::new();
    let length = name.chars().count();
    if length > MAX_NAME_CHARS {
        faults.push(NameFault::TooLong(length));
    }
    // The whole text is compared: some characters change only in company, some grow.
    if name.to_lowercase() != *name {
        faults.push(NameFault::NotLowercase);
    }
    if name.starts_with('-') || name.ends_with('-') {
        faults.push(NameFault::EdgeHyphen);
    }
    if name.contains("--") {
        faults.push(NameFault::DoubleHyphen);
    }
    if let Some(c) = name.chars().find(|c| *c != '-' && !is_alphanumeric(*c)) {
        faults.push(NameFault::InvalidCharacter(c));
    }
    faults
}

/// The form in which names are judged and compared.
pub(crate) fn normalise(name: &str) -> Cow<'_, str> {
    if name.is_ascii() {
        return Cow::Borrowed(name);
    }
    Cow::Owned(name.nfkc().collect())
}

impl fmt::Display for NameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(length) => write!(f, "it has {length} characters, more than {MAX_NAME_CHARS}"),
            Self::NotLowercase => f.write_str("it is not lower-case"),
            Self::EdgeHyphen => f.write_str("it starts or ends with a hyphen"),
            Self::DoubleHyphen => f.write_str("it has two hyphens in a row"),
            Self::InvalidCharacter(c) => {
                write!(
                    f,
                    "it contains {c:?}, which is neither a letter nor a digit nor a hyphen"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged() {
        use NameFault::{DoubleHyphen, EdgeHyphen, InvalidCharacter, NotLowercase, TooLong};
        let long = "a".repeat(65);
        let cases: [(&str, &[NameFault]); 18] = [
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
            // One code point that becomes eighteen.
            ("\u{fdfa}", &[InvalidCharacter(' ')]),
        ];
        for (name, faults) in cases {
            assert_eq!(name_faults(name), faults, "{name}");
        }
        // Vowel signs are marks, not letters; Rust's own notion of alphanumeric has them.
        assert_eq!(name_faults("हिन्दी"), [InvalidCharacter('\u{93f}')]);
    }
}
