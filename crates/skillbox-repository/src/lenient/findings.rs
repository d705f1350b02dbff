//! Collects findings and gives each its place in the file.

use std::path::Path;

use skillbox_model::Diagnostic;

use crate::parse_code::ParseCode;

/// The findings about one file so far.
pub(crate) struct Findings<'a> {
    path: &'a Path,
    text: &'a str,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Findings<'a> {
    /// None yet about this text.
    pub(crate) fn new(path: &'a Path, text: &'a str) -> Self {
        Self {
            path,
            text,
            diagnostics: Vec::new(),
        }
    }

    /// Adds a finding at a byte offset of the file.
    pub(crate) fn add(&mut self, code: ParseCode, offset: usize, message: impl Into<String>, hint: impl Into<Hint>) {
        let (line, column) = place(self.text, offset);
        self.diagnostics.push(Diagnostic {
            code: code.as_str(),
            severity: code.severity(),
            path: self.path.to_owned(),
            line: Some(line),
            column: Some(column),
            message: message.into(),
            hint: hint.into().0,
        });
    }

    /// All of them.
    pub(crate) fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.diagnostics
    }
}

/// What to do about a finding; `()` where the message says it all.
pub(crate) struct Hint(Option<String>);

impl From<()> for Hint {
    fn from((): ()) -> Self {
        Self(None)
    }
}

impl From<&str> for Hint {
    fn from(text: &str) -> Self {
        Self(Some(text.to_owned()))
    }
}

impl From<String> for Hint {
    fn from(text: String) -> Self {
        Self(Some(text))
    }
}

impl From<Option<&str>> for Hint {
    fn from(text: Option<&str>) -> Self {
        Self(text.map(str::to_owned))
    }
}

/// Line and column of a byte offset, both from 1, the column in characters. Lines end with LF, CR LF or CR.
fn place(text: &str, offset: usize) -> (u32, u32) {
    let before = &text[..text.floor_char_boundary(offset)];
    let bytes = before.as_bytes();
    let mut line = 1_u32;
    let mut start = 0;
    for (at, byte) in bytes.iter().enumerate() {
        // The CR of CR LF ends nothing; the LF does.
        let ends_line = *byte == b'\n' || *byte == b'\r' && text.as_bytes().get(at + 1) != Some(&b'\n');
        if ends_line {
            line = line.saturating_add(1);
            start = at + 1;
        }
    }
    let line_text = before[start..].strip_prefix('\u{feff}').unwrap_or(&before[start..]);
    let column = u32::try_from(line_text.chars().count()).unwrap_or(u32::MAX);
    (line, column.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn places_count_lines_of_every_kind_and_characters() {
        let text = "a\r\nbé€x\rc\n\nd";
        assert_eq!(place(text, 0), (1, 1));
        assert_eq!(place(text, text.find('x').unwrap()), (2, 4));
        assert_eq!(place(text, text.find('c').unwrap()), (3, 1));
        assert_eq!(place(text, text.len()), (5, 2));
        assert_eq!(place("\u{feff}---", 3), (1, 1));
        // An offset inside a character means the character.
        assert_eq!(place(text, text.find('€').unwrap() + 1), (2, 3));
    }
}
