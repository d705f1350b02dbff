//! The difference between two versions of a text file, for a reviewer.

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

/// Larger files are not compared line by line.
const MAX_FILE_BYTES: usize = 512 << 10;
/// More changed lines are counted.
pub const MAX_LINES: usize = 200;

/// One line of a difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DiffLine {
    /// `+`, `-` or a blank.
    pub sign: char,
    /// The text.
    pub text: String,
}

/// The changed lines with one line of context; `None` if the files cannot be compared as text.
pub fn diff_lines(old: &[u8], new: &[u8]) -> Option<Vec<DiffLine>> {
    if old.len().max(new.len()) > MAX_FILE_BYTES {
        return None;
    }
    let (old, new) = (std::str::from_utf8(old).ok()?, std::str::from_utf8(new).ok()?);
    let diff = TextDiff::configure()
        .timeout(std::time::Duration::from_secs(1))
        .diff_lines(old, new);
    let mut lines = Vec::new();
    for group in diff.grouped_ops(1) {
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            let text = change.value().trim_end_matches(['\n', '\r']).to_owned();
            lines.push(DiffLine { sign, text });
        }
    }
    let surplus = lines.len().saturating_sub(MAX_LINES);
    if surplus > 0 {
        lines.truncate(MAX_LINES);
        lines.push(DiffLine {
            sign: ' ',
            text: format!("… {surplus} more lines"),
        });
    }
    Some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_lines_and_their_neighbours_are_shown() {
        let text = |lines: Vec<DiffLine>| -> String {
            lines
                .iter()
                .map(|line| format!("{}{}\n", line.sign, line.text))
                .collect()
        };
        let old = "a\nb\nc\nd\ne\n";
        let diff = diff_lines(old.as_bytes(), b"a\nb\nX\nd\ne\n").unwrap();
        assert_eq!(text(diff), " b\n-c\n+X\n d\n");
        assert_eq!(diff_lines(b"a", b"\xff"), None);
        let long: String = (0..500).map(|number| format!("{number}\n")).collect();
        assert_eq!(diff_lines(b"", long.as_bytes()).unwrap().len(), MAX_LINES + 1);
    }
}
