//! Quotes the values that break their frontmatter: above all, texts with a colon and a blank in them.

use std::ops::Range;

use crate::yaml::{self, Problem, YamlError};

const MAX_REPAIRS: usize = 32;
/// Lines that may own the broken value: its own, and those that it may continue.
const MAX_OWNERS: usize = 4;
const MAX_SHOWN_CHARS: usize = 160;

/// A text that can be read, and what was done to it.
pub(super) struct Repaired {
    pub text: String,
    /// Offsets in `text` of the characters that were added, in order.
    pub inserted: Vec<usize>,
    pub repairs: Vec<Repair>,
}

/// One value that was quoted.
#[derive(Clone)]
pub(super) struct Repair {
    pub key: String,
    /// Where the value stands in the original text.
    pub offset: usize,
    /// The line as it should be written.
    pub shown: String,
}

/// Quotes values until the text can be read; otherwise gives the first error that quotes do not help.
///
/// Only a value at the place of the error is touched, and only if the next error stands behind it. So no value is
/// quoted twice, and the text at most doubles.
pub(super) fn repair(text: &str, error: YamlError) -> Result<Repaired, YamlError> {
    let mut state = Repaired {
        text: text.to_owned(),
        inserted: Vec::new(),
        repairs: Vec::new(),
    };
    let mut error = error;
    for _ in 0..MAX_REPAIRS {
        let attempt = owners(&state.text, error.offset).iter().find_map(|value| {
            let (next, end) = state.with_quotes(value)?;
            match yaml::read(&next.text).map(drop) {
                Ok(()) => Some((next, None)),
                Err(later) if later.offset >= end => Some((next, Some(later))),
                Err(_) => None,
            }
        });
        match attempt {
            Some((repaired, None)) => return Ok(repaired),
            Some((repaired, Some(later))) if matches!(later.problem, Problem::Syntax { .. }) => {
                state = repaired;
                error = later;
            }
            Some((repaired, Some(later))) => return Err(repaired.in_original(later)),
            None => break,
        }
    }
    Err(state.in_original(error))
}

/// A value that may have to be quoted.
struct Value {
    key: String,
    range: Range<usize>,
}

/// The values that may be broken at an offset: that of the line itself, then those of the lines it may belong to.
fn owners(text: &str, offset: usize) -> Vec<Value> {
    let lines = lines(text);
    let at = lines.partition_point(|line| line.start <= offset).saturating_sub(1);
    let mut owners = Vec::new();
    let mut indent = usize::MAX;
    for index in (0..=at).rev() {
        let line = &text[lines[index].clone()];
        let own_indent = line.len() - line.trim_start_matches(' ').len();
        if line.trim().is_empty() || own_indent >= indent {
            continue;
        }
        indent = own_indent;
        owners.extend(value_at(text, &lines, index));
        if indent == 0 || owners.len() == MAX_OWNERS {
            break;
        }
    }
    owners
}

/// The value that follows a key on its line, with the deeper lines that continue it.
fn value_at(text: &str, lines: &[Range<usize>], index: usize) -> Option<Value> {
    let line = &text[lines[index].clone()];
    let mut key_column = line.len() - line.trim_start_matches(' ').len();
    while line[key_column..].starts_with("- ") {
        key_column += 2;
        key_column += line[key_column..].len() - line[key_column..].trim_start_matches(' ').len();
    }
    let colon = key_column + line[key_column..].find(": ")?;
    let key = line[key_column..colon].trim();
    let value = line[colon + 1..].trim();
    if key.is_empty() || key.starts_with('#') || value.is_empty() {
        return None;
    }
    let start = lines[index].start + line.len() - line[colon + 1..].trim_start().len();
    let continues = |line: &Range<usize>| {
        let line = &text[line.clone()];
        line.trim().is_empty() || line.len() - line.trim_start_matches(' ').len() > key_column
    };
    let last = lines[index + 1..].iter().take_while(|line| continues(line)).last();
    let end = last.map_or(lines[index].end, |line| line.end);
    let end = start + text[start..end].trim_end().len();
    Some(Value {
        key: key.to_owned(),
        range: start..end,
    })
}

/// The lines of a text without their breaks.
fn lines(text: &str) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    let mut start = 0;
    for (at, byte) in text.bytes().enumerate() {
        if matches!(byte, b'\n' | b'\r') {
            lines.push(start..at);
            start = at + 1;
        }
    }
    lines.push(start..text.len());
    lines
}

impl Repaired {
    /// The text with one value in single quotes, and where the value ends then; nothing where quotes would hide a
    /// mistake of another kind.
    fn with_quotes(&self, value: &Value) -> Option<(Self, usize)> {
        let Range { start, end } = value.range;
        let written = &self.text[start..end];
        let had_quotes = was_quoted(written);
        if !had_quotes && !may_be_text(written) {
            return None;
        }
        let inner = if had_quotes {
            &written[1..written.len() - 1]
        } else {
            written
        };
        let mut text = String::with_capacity(self.text.len() + 16);
        text.push_str(&self.text[..start]);
        let mut added = Vec::new();
        if !had_quotes {
            added.push(text.len());
        }
        text.push('\'');
        for c in inner.chars() {
            text.push(c);
            if c == '\'' {
                added.push(text.len());
                text.push(c);
            }
        }
        if !had_quotes {
            added.push(text.len());
        }
        text.push('\'');
        let quoted_end = text.len();
        text.push_str(&self.text[end..]);
        let mut repairs = self.repairs.clone();
        repairs.push(self.repair(value, &text[start..quoted_end]));
        let inserted = merged(&self.inserted, &added, start);
        Some((
            Self {
                text,
                inserted,
                repairs,
            },
            quoted_end,
        ))
    }

    /// The error at its place in the text before any repair.
    fn in_original(&self, error: YamlError) -> YamlError {
        let offset = self.original(error.offset);
        YamlError { offset, ..error }
    }

    fn original(&self, offset: usize) -> usize {
        offset - self.inserted.partition_point(|at| *at < offset)
    }

    fn repair(&self, value: &Value, quoted: &str) -> Repair {
        let words: Vec<&str> = quoted.split_whitespace().collect();
        let mut shown: String = format!("{}: {}", value.key, words.join(" "));
        if let Some((cut, _)) = shown.char_indices().nth(MAX_SHOWN_CHARS) {
            shown.truncate(cut);
            shown.push('…');
        }
        Repair {
            key: value.key.clone(),
            offset: self.original(value.range.start),
            shown,
        }
    }
}

/// All added offsets after more were added from `start` on.
fn merged(before: &[usize], added: &[usize], start: usize) -> Vec<usize> {
    let moved = before.iter().map(|at| if *at < start { *at } else { at + added.len() });
    let mut merged: Vec<usize> = moved.chain(added.iter().copied()).collect();
    merged.sort_unstable();
    merged
}

/// Whether a text begins and ends with the same quote, so that only what is inside breaks it.
fn was_quoted(written: &str) -> bool {
    let mut characters = written.chars();
    match (characters.next(), characters.next_back()) {
        (Some(first @ ('"' | '\'')), Some(last)) => first == last && !written.contains('\\'),
        _ => false,
    }
}

/// Whether a value can only be meant as text. Unclosed brackets and quotes, tags, block headers and comments are
/// other mistakes.
fn may_be_text(written: &str) -> bool {
    match written.chars().next() {
        None | Some('!' | '&' | '|' | '>' | '#') => false,
        Some(quote @ ('"' | '\'')) => written[1..].contains(quote),
        Some('[') => has_text_after(written, ']'),
        Some('{') => has_text_after(written, '}'),
        Some(_) => true,
    }
}

/// Whether text follows the last closing bracket of a value that begins with an opening one.
fn has_text_after(written: &str, close: char) -> bool {
    let after = written.rfind(close).map(|at| written[at + 1..].trim());
    after.is_some_and(|after| !after.is_empty() && !after.starts_with('#'))
}
