//! Text of strangers, made harmless for a terminal.
//!
//! Names, descriptions and file names come from files that anybody may have written. A terminal obeys escape
//! sequences and reorders text at bidirectional marks, so such characters are shown, never sent.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The text with everything that a terminal would obey or hide written as an escape, such as `\u{1b}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| !acts_or_hides(c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut before = None;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if acts_or_hides(c) && !(is_joiner(c) && joins(before, rest.peek().copied())) {
            match c {
                '\n' => shown.push_str("\\n"),
                '\r' => shown.push_str("\\r"),
                '\t' => shown.push_str("\\t"),
                _ => shown.extend(c.escape_unicode()),
            }
        } else {
            shown.push(c);
        }
        before = Some(c);
    }
    Cow::Owned(shown)
}

/// The text on one line: runs of white space become one blank, then as [`visible`].
pub fn one_line(text: &str) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    visible(&flat).into_owned()
}

/// A path as text; bytes that are not UTF-8 become `\xNN`.
pub fn visible_path(path: &Path) -> String {
    let mut shown = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        shown.push_str(&visible(chunk.valid()));
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\x{byte:02x}"));
        }
    }
    shown
}

/// Whether a terminal acts on the character or shows nothing for it.
pub(super) fn acts_or_hides(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Zero-width joiner and non-joiner: ordinary spelling in Persian, Indic scripts and emoji, a disguise elsewhere.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

fn joins(before: Option<char>, after: Option<char>) -> bool {
    let joinable = |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && !acts_or_hides(c));
    joinable(before) && joinable(after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        for (text, expected) in [
            ("plain – Ünïcödé 技能", "plain – Ünïcödé 技能"),
            ("\u{1b}[2Jgone", "\\u{1b}[2Jgone"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("a\u{202e}fdp.exe", "a\\u{202e}fdp.exe"),
            ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
            ("bell\u{7}, del\u{7f}", "bell\\u{7}, del\\u{7f}"),
            ("tag\u{e0041}", "tag\\u{e0041}"),
        ] {
            assert_eq!(visible(text), expected);
        }
    }

    #[test]
    fn joiners_stay_where_they_spell_and_show_where_they_disguise() {
        assert_eq!(visible("می\u{200c}خواهم"), "می\u{200c}خواهم");
        assert_eq!(visible("👩\u{200d}💻"), "👩\u{200d}💻");
        assert_eq!(visible("pdf\u{200d}"), "pdf\\u{200d}");
        assert_eq!(visible("p\u{200c}df"), "p\\u{200c}df");
    }

    #[test]
    fn one_line_has_no_line_breaks() {
        assert_eq!(one_line(" a\n\n# b\u{2028}c\t d "), "a # b c d");
    }

    #[test]
    fn path_bytes_are_shown() {
        assert_eq!(
            visible_path(Path::new(OsStr::from_bytes(b"a\xff/b\x1b"))),
            "a\\xff/b\\u{1b}"
        );
    }
}
