//! Escapes untrusted text for a terminal.
//!
//! Names, descriptions and file names come from untrusted files. A terminal executes escape sequences and reorders text
//! at bidirectional marks, so such characters are escaped.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Replaces control and invisible characters by escapes such as `\u{1b}`.
pub fn escape_controls(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| !is_control_or_invisible(c)) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    let mut before = None;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if is_control_or_invisible(c) && !(is_joiner(c) && is_between_joinable(before, rest.peek().copied())) {
            match c {
                '\n' => escaped.push_str("\\n"),
                '\r' => escaped.push_str("\\r"),
                '\t' => escaped.push_str("\\t"),
                _ => escaped.extend(c.escape_unicode()),
            }
        } else {
            escaped.push(c);
        }
        before = Some(c);
    }
    Cow::Owned(escaped)
}

/// Joins the text into one line: white space becomes single blanks, and control characters are escaped.
pub fn to_one_line(text: &str) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    escape_controls(&joined).into_owned()
}

/// A path as escaped text; bytes that are not UTF-8 become `\xNN`.
pub fn escape_path(path: &Path) -> String {
    let mut escaped = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        escaped.push_str(&escape_controls(chunk.valid()));
        for byte in chunk.invalid() {
            escaped.push_str(&format!("\\x{byte:02x}"));
        }
    }
    escaped
}

/// Whether a terminal interprets the character or shows nothing for it.
pub(super) fn is_control_or_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether this is a zero-width joiner or non-joiner: normal in Persian, Indic scripts and emoji, misleading elsewhere.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

fn is_between_joinable(before: Option<char>, after: Option<char>) -> bool {
    let joinable = |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && !is_control_or_invisible(c));
    joinable(before) && joinable(after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn control_characters_are_escaped() {
        for (text, expected) in [
            ("plain – Ünïcödé 技能", "plain – Ünïcödé 技能"),
            ("\u{1b}[2Jgone", "\\u{1b}[2Jgone"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("a\u{202e}fdp.exe", "a\\u{202e}fdp.exe"),
            ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
            ("bell\u{7}, del\u{7f}", "bell\\u{7}, del\\u{7f}"),
            ("tag\u{e0041}", "tag\\u{e0041}"),
        ] {
            assert_eq!(escape_controls(text), expected);
        }
    }

    #[test]
    fn joiners_are_kept_only_between_letters_that_use_them() {
        assert_eq!(escape_controls("می\u{200c}خواهم"), "می\u{200c}خواهم");
        assert_eq!(escape_controls("👩\u{200d}💻"), "👩\u{200d}💻");
        assert_eq!(escape_controls("pdf\u{200d}"), "pdf\\u{200d}");
        assert_eq!(escape_controls("p\u{200c}df"), "p\\u{200c}df");
    }

    #[test]
    fn joined_text_has_no_line_breaks() {
        assert_eq!(to_one_line(" a\n\n# b\u{2028}c\t d "), "a # b c d");
    }

    #[test]
    fn invalid_bytes_of_paths_are_escaped() {
        assert_eq!(
            escape_path(Path::new(OsStr::from_bytes(b"a\xff/b\x1b"))),
            "a\\xff/b\\u{1b}"
        );
    }
}
