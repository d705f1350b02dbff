//! Python's definitions of white space and letters, which the reference tool applies to names.

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// `str.strip`: removes Unicode white space and the four ASCII separators, which Rust does not count as white space.
pub(crate) fn python_strip(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '\x1c'..='\x1f'))
}

/// `str.isalnum` of one character: its general category is a letter or a number.
pub(crate) fn is_python_alphanumeric(c: char) -> bool {
    use GeneralCategory as G;
    matches!(
        c.general_category(),
        G::UppercaseLetter
            | G::LowercaseLetter
            | G::TitlecaseLetter
            | G::ModifierLetter
            | G::OtherLetter
            | G::DecimalNumber
            | G::LetterNumber
            | G::OtherNumber
    )
}
