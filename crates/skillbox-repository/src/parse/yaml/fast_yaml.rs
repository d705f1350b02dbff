//! Reads the common subset of frontmatter many times faster than the YAML library.
//!
//! Nearly every skill has top-level keys with one-line values, and at most one nested level of keys or list entries. A
//! catalog of tens of thousands of skills should not pay for the rest of YAML. Every other text is left to the library,
//! and a property test checks that both return the same nodes.

use std::borrow::Cow;
use std::ops::Range;

use super::node::{Content, Node, ScalarStyle};

/// The maximum size of a text for the fast reader. Smaller texts cannot exceed the limits on nodes and depth, which are
/// therefore not checked here.
const MAX_FAST_BYTES: usize = 8 << 10;
const MAX_KEY_BYTES: usize = 128;

/// Reads a text in the common subset; `None` for any other text.
pub(super) fn read_fast(text: &str) -> Option<Node<'_>> {
    if text.len() > MAX_FAST_BYTES || !text.chars().all(is_supported) {
        return None;
    }
    let mut lines = Lines { text, at: 0 };
    let mut pairs: Vec<(Node<'_>, Node<'_>)> = Vec::with_capacity(8);
    while let Some(line) = lines.next_non_empty()? {
        let (key, rest) = read_key(text, line)?;
        let value = read_value(text, key.span().end, rest, 0, &mut lines)?;
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

/// Whether a character has no special meaning in YAML, or one that the functions below check.
fn is_supported(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a1}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{e000}'..='\u{fdcf}')
        || matches!(c, '\u{fdf0}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{1f000}'..='\u{1faff}')
}

struct Lines<'a> {
    text: &'a str,
    at: usize,
}

impl Lines<'_> {
    /// Returns the next line that is not empty, without its line break. A line of blanks is left to the library.
    #[expect(
        clippy::option_option,
        reason = "the end of the text differs from an unsupported text"
    )]
    fn next_non_empty(&mut self) -> Option<Option<Range<usize>>> {
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

/// Returns the key at the start of a range, and the range after its colon without surrounding blanks.
fn read_key(text: &str, line: Range<usize>) -> Option<(Node<'_>, Range<usize>)> {
    let written = &text.as_bytes()[line.clone()];
    let is_key = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let length = written.iter().take_while(|byte| is_key(byte)).count();
    let has_valid_start = written
        .first()
        .is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    if !has_valid_start || length > MAX_KEY_BYTES || written.get(length) != Some(&b':') {
        return None;
    }
    if !matches!(written.get(length + 1), None | Some(b' ')) {
        return None;
    }
    let key = line.start..line.start + length;
    Some((
        new_scalar(text, key.clone(), ScalarStyle::Plain),
        trim_range(text, key.end + 1..line.end),
    ))
}

fn trim_range(text: &str, range: Range<usize>) -> Range<usize> {
    let written = &text[range.clone()];
    let start = range.start + written.len() - written.trim_start_matches(' ').len();
    start..start.max(range.start + written.trim_end_matches(' ').len())
}

fn new_scalar<'a>(text: &'a str, range: Range<usize>, style: ScalarStyle) -> Node<'a> {
    Node::new(Content::Scalar(Cow::Borrowed(&text[range.clone()]), style), range)
}

/// Reads the value of a key: on its line, or on the more indented lines that follow.
fn read_value<'a>(
    text: &'a str,
    colon: usize,
    rest: Range<usize>,
    indent: usize,
    lines: &mut Lines<'a>,
) -> Option<Node<'a>> {
    match &text[rest.clone()] {
        "" if indent == 0 => read_nested_value(text, colon, lines),
        "" => Some(new_null(colon)),
        "|" | "|-" | ">" | ">-" => read_block_scalar(text, &text[rest], indent, lines),
        written if written.starts_with('[') => read_flow_list(text, rest),
        _ => read_one_line_scalar(text, rest, Context::Block),
    }
}

fn new_null<'a>(at: usize) -> Node<'a> {
    Node::new(Content::Scalar("".into(), ScalarStyle::Plain), at..at)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    Block,
    FlowList,
}

/// Reads a scalar that begins and ends on one line.
fn read_one_line_scalar(text: &str, range: Range<usize>, context: Context) -> Option<Node<'_>> {
    let written = &text[range.clone()];
    let first = written.chars().next()?;
    if matches!(first, '"' | '\'') {
        let inner = written.strip_prefix(first)?.strip_suffix(first)?;
        let is_simple = !inner.contains(['\\', first]);
        let content = Content::Scalar(Cow::Borrowed(inner), ScalarStyle::Quoted);
        return is_simple.then(|| Node::new(content, range));
    }
    let has_valid_start = first.is_ascii_alphanumeric() || first > '~' || matches!(first, '_' | '.' | '/' | '(' | '~');
    let has_valid_rest = match context {
        Context::Block => !written.contains(": ") && !written.ends_with(':') && !written.contains(" #"),
        Context::FlowList => written
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/')),
    };
    let is_marker = written.starts_with("...");
    (has_valid_start && has_valid_rest && !is_marker).then(|| new_scalar(text, range, ScalarStyle::Plain))
}

/// Reads a list in brackets on one line.
fn read_flow_list(text: &str, range: Range<usize>) -> Option<Node<'_>> {
    let inner = range.start + 1..range.end.checked_sub(1)?;
    if !text[range.clone()].ends_with(']') || inner.start > inner.end {
        return None;
    }
    let mut items = Vec::new();
    if !text[inner.clone()].trim_matches(' ').is_empty() {
        let mut at = inner.start;
        for written in text[inner.clone()].split(',') {
            let item = trim_range(text, at..at + written.len());
            at += written.len() + 1;
            items.push(read_one_line_scalar(text, item, Context::FlowList)?);
        }
    }
    Some(Node::new(Content::Sequence(items), range))
}

/// Reads the lines below a key without a value on its line: a mapping, a list or null.
fn read_nested_value<'a>(text: &'a str, colon: usize, lines: &mut Lines<'a>) -> Option<Node<'a>> {
    if lines.is_at_end() {
        return Some(new_null(colon));
    }
    let first = lines.peek();
    let indent = indent_of(&text[first.clone()]);
    if text[first.start + indent..first.end].starts_with("- ") {
        return read_block_list(text, indent, lines);
    }
    if first.is_empty() {
        return None;
    }
    if indent == 0 {
        return Some(new_null(colon));
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
        let (key, rest) = read_key(text, line.start + indent..line.end)?;
        let value = read_value(text, key.span().end, rest, indent, lines)?;
        if pairs.iter().any(|(other, _)| other.as_text() == key.as_text()) {
            return None;
        }
        pairs.push((key, value));
    }
    let span = pairs.first()?.0.start()..pairs.last()?.1.span().end;
    Some(Node::new(Content::Mapping(pairs), span))
}

fn read_block_list<'a>(text: &'a str, indent: usize, lines: &mut Lines<'a>) -> Option<Node<'a>> {
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
        items.push(read_one_line_scalar(
            text,
            trim_range(text, line.start + indent + 2..line.end),
            Context::Block,
        )?);
    }
    let span = items.first()?.start()..items.last()?.span().end;
    Some(Node::new(Content::Sequence(items), span))
}

/// Reads a literal or folded text whose lines have the same indentation; empty lines are allowed between them.
fn read_block_scalar<'a>(text: &'a str, header: &str, indent: usize, lines: &mut Lines<'a>) -> Option<Node<'a>> {
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
        // A missing last line break and lines of blanks are left to the library.
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
