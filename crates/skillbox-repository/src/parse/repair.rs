//! Repairs frontmatter by quoting the values that break it, mostly texts that contain a colon and a blank.

use std::ops::Range;

use super::yaml::{YamlError, YamlErrorKind, read_yaml};

const MAX_REPAIRS: usize = 32;
/// The maximum number of values to try for one error. The broken value may begin on the line of the error, or on an
/// earlier line that this line continues.
const MAX_CANDIDATES: usize = 4;
const MAX_HINT_CHARS: usize = 160;

/// A repaired text, and the repairs.
pub(super) struct RepairedText {
    pub text: String,
    /// Offsets in `text` of the characters that were added, in order.
    pub inserted: Vec<usize>,
    pub repairs: Vec<Repair>,
}

/// One value that was quoted.
#[derive(Clone)]
pub(super) struct Repair {
    pub key: String,
    /// Where the value begins in the original text.
    pub offset: usize,
    /// The line as the author should write it.
    pub corrected_line: String,
}

/// Quotes values until the text can be read, or returns the first error that quotes do not fix.
///
/// Only a value at the position of the error is quoted, and only if the next error is after that value. Therefore no
/// value is quoted twice, and the text at most doubles in size.
pub(super) fn repair(text: &str, error: YamlError) -> Result<RepairedText, YamlError> {
    let mut state = RepairedText {
        text: text.to_owned(),
        inserted: Vec::new(),
        repairs: Vec::new(),
    };
    let mut error = error;
    for _ in 0..MAX_REPAIRS {
        let attempt = find_candidates(&state.text, error.offset).iter().find_map(|value| {
            let (next, end) = state.quote_value(value)?;
            match read_yaml(&next.text).map(drop) {
                Ok(()) => Some((next, None)),
                Err(later) if later.offset >= end => Some((next, Some(later))),
                Err(_) => None,
            }
        });
        match attempt {
            Some((repaired, None)) => return Ok(repaired),
            Some((repaired, Some(later))) if matches!(later.kind, YamlErrorKind::Syntax { .. }) => {
                state = repaired;
                error = later;
            }
            Some((repaired, Some(later))) => return Err(repaired.with_original_offset(later)),
            None => break,
        }
    }
    Err(state.with_original_offset(error))
}

/// A value that may need quotes.
struct Candidate {
    key: String,
    range: Range<usize>,
}

/// Returns the values that may cause an error at an offset: the value on that line, then values on earlier lines that
/// the line may continue.
fn find_candidates(text: &str, offset: usize) -> Vec<Candidate> {
    let lines = line_ranges(text);
    let at = lines.partition_point(|line| line.start <= offset).saturating_sub(1);
    let mut candidates = Vec::new();
    let mut indent = usize::MAX;
    for index in (0..=at).rev() {
        let line = &text[lines[index].clone()];
        let own_indent = line.len() - line.trim_start_matches(' ').len();
        if line.trim().is_empty() || own_indent >= indent {
            continue;
        }
        indent = own_indent;
        candidates.extend(find_value(text, &lines, index));
        if indent == 0 || candidates.len() == MAX_CANDIDATES {
            break;
        }
    }
    candidates
}

/// Returns the value after the key of a line, including the more indented lines that continue it.
fn find_value(text: &str, lines: &[Range<usize>], index: usize) -> Option<Candidate> {
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
    Some(Candidate {
        key: key.to_owned(),
        range: start..end,
    })
}

/// Returns the lines of a text, without their line breaks.
fn line_ranges(text: &str) -> Vec<Range<usize>> {
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

impl RepairedText {
    /// Returns the text with one value in single quotes, and the new end of the value; `None` if quotes would hide a
    /// mistake of another kind.
    fn quote_value(&self, value: &Candidate) -> Option<(Self, usize)> {
        let Range { start, end } = value.range;
        let written = &self.text[start..end];
        let has_quotes = is_quoted(written);
        if !has_quotes && !is_meant_as_text(written) {
            return None;
        }
        let inner = if has_quotes {
            &written[1..written.len() - 1]
        } else {
            written
        };
        let mut text = String::with_capacity(self.text.len() + 16);
        text.push_str(&self.text[..start]);
        let mut added = Vec::new();
        if !has_quotes {
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
        if !has_quotes {
            added.push(text.len());
        }
        text.push('\'');
        let value_end = text.len();
        text.push_str(&self.text[end..]);
        let mut repairs = self.repairs.clone();
        repairs.push(self.describe_repair(value, &text[start..value_end]));
        let inserted = merge_inserted(&self.inserted, &added, start);
        Some((
            Self {
                text,
                inserted,
                repairs,
            },
            value_end,
        ))
    }

    /// Converts the offset of an error to one in the original text.
    fn with_original_offset(&self, error: YamlError) -> YamlError {
        let offset = self.original_offset(error.offset);
        YamlError { offset, ..error }
    }

    fn original_offset(&self, offset: usize) -> usize {
        offset - self.inserted.partition_point(|at| *at < offset)
    }

    fn describe_repair(&self, value: &Candidate, quoted: &str) -> Repair {
        let words: Vec<&str> = quoted.split_whitespace().collect();
        let mut corrected_line: String = format!("{}: {}", value.key, words.join(" "));
        if let Some((cut, _)) = corrected_line.char_indices().nth(MAX_HINT_CHARS) {
            corrected_line.truncate(cut);
            corrected_line.push('…');
        }
        Repair {
            key: value.key.clone(),
            offset: self.original_offset(value.range.start),
            corrected_line,
        }
    }
}

/// Adds the offsets of newly added characters, all at or after `start`, to the earlier offsets.
fn merge_inserted(before: &[usize], added: &[usize], start: usize) -> Vec<usize> {
    let moved = before.iter().map(|at| if *at < start { *at } else { at + added.len() });
    let mut merged: Vec<usize> = moved.chain(added.iter().copied()).collect();
    merged.sort_unstable();
    merged
}

/// Whether a text begins and ends with the same quote, so that the error is inside the quotes.
fn is_quoted(written: &str) -> bool {
    let mut characters = written.chars();
    match (characters.next(), characters.next_back()) {
        (Some(first @ ('"' | '\'')), Some(last)) => first == last && !written.contains('\\'),
        _ => false,
    }
}

/// Whether the author meant the value as text. Unclosed brackets and quotes, tags, block headers and comments are
/// mistakes that quotes would hide.
fn is_meant_as_text(written: &str) -> bool {
    match written.chars().next() {
        None | Some('!' | '&' | '|' | '>' | '#') => false,
        Some(quote @ ('"' | '\'')) => written[1..].contains(quote),
        Some('[') => has_text_after(written, ']'),
        Some('{') => has_text_after(written, '}'),
        Some(_) => true,
    }
}

/// Whether text follows the last closing bracket of a value that begins with an opening bracket.
fn has_text_after(written: &str, close: char) -> bool {
    let after = written.rfind(close).map(|at| written[at + 1..].trim());
    after.is_some_and(|after| !after.is_empty() && !after.starts_with('#'))
}
