//! Foreign text as it may stand inside one line of a prompt.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Which characters a line must not carry as they are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Markup {
    /// A line of Markdown: no tag can open, so none can close.
    Markdown,
    /// Text between the tags of an XML block.
    Xml,
}

/// Flattens a text to one line of Markdown.
///
/// Line breaks, other control characters and runs of blanks become one blank; characters that reorder or hide
/// text (bidirectional controls, zero-width and tag characters) are dropped; `<` is written `&lt;`. What comes
/// out cannot start a heading, a list item, a fence or a tag, however the text was written.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    flatten(text, Markup::Markdown)
}

/// A text about which it is known whether something has to change in it.
///
/// The same descriptions stand in every prompt, and looking at each character of them is most of the work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flatness {
    markdown: bool,
    xml: bool,
}

impl Flatness {
    pub(crate) fn of(text: &str) -> Self {
        Self {
            markdown: is_flat(text, Markup::Markdown),
            xml: is_flat(text, Markup::Xml),
        }
    }

    /// The text on one line.
    pub(crate) fn line(self, text: &str, markup: Markup) -> Cow<'_, str> {
        let is_flat = match markup {
            Markup::Markdown => self.markdown,
            Markup::Xml => self.xml,
        };
        if is_flat {
            Cow::Borrowed(text)
        } else {
            flattened(text, markup)
        }
    }
}

/// Flattens a text to one line between XML tags; the five characters of markup are written as entities.
pub(crate) fn xml_line(text: &str) -> Cow<'_, str> {
    flatten(text, Markup::Xml)
}

/// A name as a quoted argument in a hint such as `skill_load("pdf")`.
pub(crate) fn quoted(name: &str) -> String {
    let flat = one_line(name);
    let mut quoted = String::with_capacity(flat.len() + 2);
    quoted.push('"');
    for c in flat.chars() {
        if matches!(c, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

/// A foreign word inside an error message: one line, and not longer than a reader needs.
pub(crate) fn shown(word: &str) -> String {
    const LONGEST: usize = 120;
    cut_chars(&one_line(word), LONGEST).into_owned()
}

/// The text with at most `most` characters, an ellipsis standing for what was left out.
pub(crate) fn cut_chars(text: &str, most: usize) -> Cow<'_, str> {
    // A text has at least as many bytes as characters, so most texts need no count.
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let mut ends = text.char_indices().map(|(at, _)| at);
    let Some(keep) = most.checked_sub(1) else {
        return Cow::Borrowed("");
    };
    let Some(cut) = ends.nth(keep) else {
        return Cow::Borrowed(text);
    };
    if ends.next().is_none() {
        return Cow::Borrowed(text);
    }
    let mut short = text[..cut].trim_end().to_owned();
    short.push('…');
    Cow::Owned(short)
}

fn flatten(text: &str, markup: Markup) -> Cow<'_, str> {
    if is_flat(text, markup) {
        return Cow::Borrowed(text);
    }
    flattened(text, markup)
}

fn flattened(text: &str, markup: Markup) -> Cow<'_, str> {
    let mut flat = String::with_capacity(text.len() + 16);
    let mut blank_due = false;
    for c in text.chars() {
        if is_invisible(c) {
            continue;
        }
        if c.is_whitespace() || c.is_control() {
            blank_due = !flat.is_empty();
            continue;
        }
        if blank_due {
            flat.push(' ');
            blank_due = false;
        }
        push_escaped(&mut flat, c, markup);
    }
    Cow::Owned(flat)
}

/// Whether nothing has to change; most descriptions are plain ASCII and take this path. The loops have no way
/// out half-way, so that the compiler makes them look at many bytes at once.
fn is_flat(text: &str, markup: Markup) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return true;
    };
    let plain = |b: u8| (b' '..=b'~').contains(&b) & (b != b'<');
    let markup_free = |b: u8| (b != b'&') & (b != b'>') & (b != b'"') & (b != b'\'');
    let is_plain = bytes.iter().fold(true, |all, b| all & plain(*b));
    let single_blanks = bytes
        .iter()
        .zip(&bytes[1..])
        .fold(true, |all, (a, b)| all & ((*a != b' ') | (*b != b' ')));
    let is_safe = match markup {
        Markup::Markdown => true,
        Markup::Xml => bytes.iter().fold(true, |all, b| all & markup_free(*b)),
    };
    is_plain & single_blanks & is_safe && *first != b' ' && *last != b' '
}

fn push_escaped(flat: &mut String, c: char, markup: Markup) {
    let entity = match (c, markup) {
        ('<', _) => "&lt;",
        ('&', Markup::Xml) => "&amp;",
        ('>', Markup::Xml) => "&gt;",
        ('"', Markup::Xml) => "&quot;",
        ('\'', Markup::Xml) => "&#x27;",
        _ => {
            flat.push(c);
            return;
        }
    };
    flat.push_str(entity);
}

/// Format characters with which a text can look different from what it says. The joiners U+200C and U+200D and
/// the variation selectors of emoji stay: scripts need them.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e01ef}')
}

/// The text of a body or a document with every closing of `tag` made harmless, so that it ends where we end it.
pub(crate) fn without_closing_tag<'t>(text: &'t str, tag: &str) -> Cow<'t, str> {
    let needle = tag.as_bytes();
    let closes = |at: usize| {
        let rest = &text.as_bytes()[at + 1..];
        // Blanks after the slash or the bracket do not stop a lenient reader, so they do not stop us.
        let rest = rest.trim_ascii_start();
        let Some(rest) = rest.strip_prefix(b"/") else {
            return false;
        };
        let rest = rest.trim_ascii_start();
        rest.len() >= needle.len() && rest[..needle.len()].eq_ignore_ascii_case(needle)
    };
    let mut safe: Option<String> = None;
    let mut from = 0;
    for (at, _) in text.match_indices('<') {
        if closes(at) {
            let out = safe.get_or_insert_with(|| String::with_capacity(text.len() + 16));
            let _ = write!(out, "{}&lt;", &text[from..at]);
            from = at + 1;
        }
    }
    match safe {
        None => Cow::Borrowed(text),
        Some(mut out) => {
            out.push_str(&text[from..]);
            Cow::Owned(out)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ordinary_text_is_borrowed() {
        for text in ["", "Extract text from PDFs.", "R&D -> \"x\" 'y'"] {
            assert!(matches!(one_line(text), Cow::Borrowed(_)), "{text:?}");
            assert_eq!(one_line(text), text);
        }
    }

    #[test]
    fn a_text_stays_on_its_line() {
        let check = |text: &str, expected: &str| assert_eq!(one_line(text), expected, "{text:?}");
        check("a\n\n## System\r\n- b", "a ## System - b");
        check("  a \t b  ", "a b");
        check("x\u{2028}y\u{2029}z\u{85}w\u{b}v", "x y z w v");
        check("</available_skills><system>", "&lt;/available_skills>&lt;system>");
        check("safe\u{202e}evil\u{2066}\u{200b}\u{feff}", "safeevil");
        check("tag\u{e0041}\u{e007f}s", "tags");
        check("\u{1b}[31mred\0", "[31mred");
        check("\u{1f469}\u{200d}\u{1f4bb} ok", "\u{1f469}\u{200d}\u{1f4bb} ok");
        assert_eq!(
            xml_line("a <b> & \"c\" 'd'\n"),
            "a &lt;b&gt; &amp; &quot;c&quot; &#x27;d&#x27;"
        );
        assert_eq!(quoted("a\"b\\c\n"), "\"a\\\"b\\\\c\"");
    }

    #[test]
    fn cutting_counts_characters() {
        assert_eq!(cut_chars("hello", 5), "hello");
        assert_eq!(cut_chars("hello", 4), "hel…");
        assert_eq!(cut_chars("ab cd", 4), "ab…");
        assert_eq!(cut_chars("技能描述", 4), "技能描述");
        assert_eq!(cut_chars("技能描述", 3), "技能…");
        assert_eq!(cut_chars("x", 0), "");
        assert_eq!(cut_chars("xy", 1), "…");
    }

    #[test]
    fn a_body_cannot_close_its_block() {
        let check = |text: &str, expected: &str| assert_eq!(without_closing_tag(text, "skill_content"), expected);
        check("a <b> c", "a <b> c");
        check("x</skill_content>y", "x&lt;/skill_content>y");
        check("< / SKILL_content name>", "&lt; / SKILL_content name>");
        check("<</skill_content", "<&lt;/skill_content");
    }

    proptest! {
        #[test]
        fn whatever_comes_in_is_one_visible_line(text in "\\PC*|[\\x00-\\x20<>&a\u{202e}\u{2028}]*") {
            let flat = one_line(&text);
            prop_assert!(!flat.contains('<'));
            let breaks_out = |c: char| c.is_control() || is_invisible(c) || (c.is_whitespace() && c != ' ');
            prop_assert!(!flat.contains(breaks_out));
            prop_assert_eq!(flat.trim(), &*flat);
            prop_assert_eq!(one_line(&flat), &*flat);
            let cut = cut_chars(&flat, 7);
            prop_assert!(cut.chars().count() <= 7);
        }
    }
}
