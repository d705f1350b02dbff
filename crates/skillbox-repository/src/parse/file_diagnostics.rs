//! Collects the diagnostics about one file and turns offsets into lines and columns.

use std::path::Path;

use skillbox_model::Diagnostic;

use crate::diagnostics::{Hint, ParseCode, Position, new_diagnostic};

/// The diagnostics about one file so far.
pub(super) struct FileDiagnostics<'a> {
    path: &'a Path,
    text: &'a str,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> FileDiagnostics<'a> {
    pub(super) fn new(path: &'a Path, text: &'a str) -> Self {
        Self {
            path,
            text,
            diagnostics: Vec::new(),
        }
    }

    /// Adds a diagnostic at a byte offset of the file.
    pub(super) fn add(&mut self, code: ParseCode, offset: usize, message: impl Into<String>, hint: impl Into<Hint>) {
        let position = position_of(self.text, offset);
        self.diagnostics
            .push(new_diagnostic(code, self.path, position, message, hint));
    }

    pub(super) fn into_vec(self) -> Vec<Diagnostic> {
        self.diagnostics
    }
}

/// Line and column of a byte offset. Lines end with LF, CR LF or CR.
fn position_of(text: &str, offset: usize) -> Position {
    let before = &text[..text.floor_char_boundary(offset)];
    let bytes = before.as_bytes();
    let mut line = 1_u32;
    let mut start = 0;
    for (at, byte) in bytes.iter().enumerate() {
        // In CR LF, only the LF ends the line.
        let ends_line = *byte == b'\n' || *byte == b'\r' && text.as_bytes().get(at + 1) != Some(&b'\n');
        if ends_line {
            line = line.saturating_add(1);
            start = at + 1;
        }
    }
    let line_text = before[start..].strip_prefix('\u{feff}').unwrap_or(&before[start..]);
    let column = u32::try_from(line_text.chars().count()).unwrap_or(u32::MAX);
    Position::At {
        line,
        column: column.saturating_add(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_of_every_kind_and_characters() {
        let text = "a\r\nbé€x\rc\n\nd";
        let at = |line, column| Position::At { line, column };
        assert_eq!(position_of(text, 0), at(1, 1));
        assert_eq!(position_of(text, text.find('x').unwrap()), at(2, 4));
        assert_eq!(position_of(text, text.find('c').unwrap()), at(3, 1));
        assert_eq!(position_of(text, text.len()), at(5, 2));
        assert_eq!(position_of("\u{feff}---", 3), at(1, 1));
        // An offset inside a character refers to that character.
        assert_eq!(position_of(text, text.find('€').unwrap() + 1), at(2, 3));
    }
}
