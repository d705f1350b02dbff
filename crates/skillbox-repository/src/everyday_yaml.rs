//! Reads the everyday shape of frontmatter many times faster than the YAML library.
//!
//! Nearly every skill has keys at the left margin with one-line values, and perhaps one level of keys or entries
//! below one of them. A catalogue of tens of thousands of skills should not pay for the rest of YAML. Whatever is
//! not plainly of this shape is left to the library, and a property test holds both to the same nodes.

use std::borrow::Cow;
use std::ops::Range;

use crate::node::{Content, Node, ScalarStyle};

/// Keeps every budget of the full reader out of reach.
const MAX_BYTES: usize = 8 << 10;
const MAX_KEY_BYTES: usize = 128;

/// Reads a text of the everyday shape; nothing for any other.
pub(crate) fn read(text: &str) -> Option<Node<'_>> {
    if text.len() > MAX_BYTES || !text.chars().all(is_harmless) {
        return None;
    }
    let mut lines = Lines { text, at: 0 };
    let mut pairs: Vec<(Node<'_>, Node<'_>)> = Vec::with_capacity(8);
    while let Some(line) = lines.next_filled()? {
        let (key, rest) = key_and_rest(text, line)?;
        let value = value(text, key.span().end, rest, 0, &mut lines)?;
        pairs.push((key, value));
    }
    let span = pairs.first()?.0.start()..pairs.last()?.1.span().end;
    let is_repeated = |at: usize| {
        pairs[..at]
            .iter()
            .any(|(key, _)| key.as_text() == pairs[at].0.as_text())
    };
    if (1..pairs.len()).any(is_repeated) {
        return None;
    }
    Some(Node::new(Content::Mapping(pairs), span))
}

/// Characters that mean nothing by themselves in YAML, wherever they stand.
fn is_harmless(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a1}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{e000}'..='\u{fdcf}')
        || matches!(c, '\u{fdf0}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{1f000}'..='\u{1faff}')
}

struct Lines<'a> {
    text: &'a str,
    at: usize,
}

impl Lines<'_> {
    /// The next line, without its break, that is not empty. A line of blanks is left to the library.
    #[expect(clippy::option_option, reason = "the end of the text is not a text of another shape")]
    fn next_filled(&mut self) -> Option<Option<Range<usize>>> {
        while self.at < self.text.len() {
            let line = self.peek();
            self.at = line.end + 1;
            if !line.is_empty() {
                let is_blank = self.text[line.clone()].trim_start().is_empty();
                return if is_blank { None } else { Some(Some(line)) };
            }
        }
        Some(None)
    }

    fn peek(&self) -> Range<usize> {
        let end = memchr::memchr(b'\n', &self.text.as_bytes()[self.at..]);
        self.at..end.map_or(self.text.len(), |end| self.at + end)
    }

    fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }
}

/// A key at the start of a range, and the range after its colon without blanks around it.
fn key_and_rest(text: &str, line: Range<usize>) -> Option<(Node<'_>, Range<usize>)> {
    let written = &text.as_bytes()[line.clone()];
    let is_key = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let length = written.iter().take_while(|byte| is_key(byte)).count();
    let starts_well = written
        .first()
        .is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    if !starts_well || length > MAX_KEY_BYTES || written.get(length) != Some(&b':') {
        return None;
    }
    if !matches!(written.get(length + 1), None | Some(b' ')) {
        return None;
    }
    let key = line.start..line.start + length;
    Some((
        scalar(text, key.clone(), ScalarStyle::Plain),
        trimmed(text, key.end + 1..line.end),
    ))
}

fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let written = &text[range.clone()];
    let start = range.start + written.len() - written.trim_start_matches(' ').len();
    start..start.max(range.start + written.trim_end_matches(' ').len())
}

fn scalar<'a>(text: &'a str, range: Range<usize>, style: ScalarStyle) -> Node<'a> {
    Node::new(Content::Scalar(Cow::Borrowed(&text[range.clone()]), style), range)
}

/// The value of a key: on its line, or on the deeper lines that follow.
fn value<'a>(
    text: &'a str,
    colon: usize,
    rest: Range<usize>,
    indent: usize,
    lines: &mut Lines<'a>,
) -> Option<Node<'a>> {
    match &text[rest.clone()] {
        "" if indent == 0 => nested(text, colon, lines),
        "" => Some(nothing(colon)),
        "|" | "|-" | ">" | ">-" => block(text, &text[rest], indent, lines),
        written if written.starts_with('[') => list(text, rest),
        _ => one_line(text, rest, Place::Block),
    }
}

fn nothing<'a>(at: usize) -> Node<'a> {
    Node::new(Content::Scalar("".into(), ScalarStyle::Plain), at..at)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Block,
    List,
}

/// A scalar that begins and ends on one line.
fn one_line(text: &str, range: Range<usize>, place: Place) -> Option<Node<'_>> {
    let written = &text[range.clone()];
    let first = written.chars().next()?;
    if matches!(first, '"' | '\'') {
        let inner = written.strip_prefix(first)?.strip_suffix(first)?;
        let is_simple = !inner.contains(['\\', first]);
        let content = Content::Scalar(Cow::Borrowed(inner), ScalarStyle::Quoted);
        return is_simple.then(|| Node::new(content, range));
    }
    let starts_well = first.is_ascii_alphanumeric() || first > '~' || matches!(first, '_' | '.' | '/' | '(' | '~');
    let ends_well = match place {
        Place::Block => !written.contains(": ") && !written.ends_with(':') && !written.contains(" #"),
        Place::List => written
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/')),
    };
    let is_marker = written.starts_with("...");
    (starts_well && ends_well && !is_marker).then(|| scalar(text, range, ScalarStyle::Plain))
}

/// A list in brackets on one line.
fn list(text: &str, range: Range<usize>) -> Option<Node<'_>> {
    let inner = range.start + 1..range.end.checked_sub(1)?;
    if !text[range.clone()].ends_with(']') || inner.start > inner.end {
        return None;
    }
    let mut items = Vec::new();
    if !text[inner.clone()].trim_matches(' ').is_empty() {
        let mut at = inner.start;
        for written in text[inner.clone()].split(',') {
            let item = trimmed(text, at..at + written.len());
            at += written.len() + 1;
            items.push(one_line(text, item, Place::List)?);
        }
    }
    Some(Node::new(Content::Sequence(items), range))
}

/// What stands on the lines below a key without a value: keys, entries or nothing.
fn nested<'a>(text: &'a str, colon: usize, lines: &mut Lines<'a>) -> Option<Node<'a>> {
    if lines.is_at_end() {
        return Some(nothing(colon));
    }
    let first = lines.peek();
    let indent = indent_of(&text[first.clone()]);
    if text[first.start + indent..first.end].starts_with("- ") {
        return entries(text, indent, lines);
    }
    if first.is_empty() {
        return None;
    }
    if indent == 0 {
        return Some(nothing(colon));
    }
    let mut pairs: Vec<(Node<'_>, Node<'_>)> = Vec::new();
    while !lines.is_at_end() {
        let line = lines.peek();
        let own_indent = indent_of(&text[line.clone()]);
        if own_indent != indent {
            if own_indent == 0 && !line.is_empty() {
                break;
            }
            return None;
        }
        lines.at = line.end + 1;
        let (key, rest) = key_and_rest(text, line.start + indent..line.end)?;
        let value = value(text, key.span().end, rest, indent, lines)?;
        if pairs.iter().any(|(other, _)| other.as_text() == key.as_text()) {
            return None;
        }
        pairs.push((key, value));
    }
    let span = pairs.first()?.0.start()..pairs.last()?.1.span().end;
    Some(Node::new(Content::Mapping(pairs), span))
}

fn entries<'a>(text: &'a str, indent: usize, lines: &mut Lines<'a>) -> Option<Node<'a>> {
    let mut items = Vec::new();
    while !lines.is_at_end() {
        let line = lines.peek();
        let written = &text[line.clone()];
        let own_indent = indent_of(written);
        if own_indent != indent || !written[indent..].starts_with("- ") {
            if own_indent == 0 && !line.is_empty() && !written.starts_with('-') {
                break;
            }
            return None;
        }
        lines.at = line.end + 1;
        items.push(one_line(
            text,
            trimmed(text, line.start + indent + 2..line.end),
            Place::Block,
        )?);
    }
    let span = items.first()?.start()..items.last()?.span().end;
    Some(Node::new(Content::Sequence(items), span))
}

/// A literal or folded text whose lines all have the same indentation; empty lines may stand between them.
fn block<'a>(text: &'a str, header: &str, indent: usize, lines: &mut Lines<'a>) -> Option<Node<'a>> {
    let first = lines.peek();
    let own_indent = indent_of(&text[first.clone()]);
    if own_indent <= indent {
        return None;
    }
    let mut value = String::new();
    let mut empty_lines = 0;
    while !lines.is_at_end() {
        let line = lines.peek();
        let written = &text[line.clone()];
        // A break that the text lacks cannot be kept, and a line of blanks may mean anything.
        if line.end == text.len() || written.trim_start().is_empty() && !line.is_empty() {
            return None;
        }
        if line.is_empty() {
            empty_lines += 1;
        } else if indent_of(written) == own_indent {
            let breaks = match (header.as_bytes()[0], value.is_empty()) {
                (_, true) => 0,
                (b'>', _) => empty_lines,
                _ => empty_lines + 1,
            };
            if breaks == 0 && !value.is_empty() {
                value.push(' ');
            }
            value.extend(std::iter::repeat_n('\n', breaks));
            value.push_str(&written[own_indent..]);
            empty_lines = 0;
        } else if indent_of(written) <= indent {
            break;
        } else {
            return None;
        }
        lines.at = line.end + 1;
    }
    if !header.ends_with('-') {
        value.push('\n');
    }
    let span = first.start + own_indent..lines.at;
    Some(Node::new(Content::Scalar(value.into(), ScalarStyle::Block), span))
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}
