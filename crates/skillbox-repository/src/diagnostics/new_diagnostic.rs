//! Builds a diagnostic. All diagnostics of this crate are built here.

use std::path::Path;

use skillbox_model::{Diagnostic, Severity};

use super::codes::{ParseCode, ScanCode};

/// A stable code with the severity that belongs to it.
pub(crate) struct Code {
    text: &'static str,
    severity: Severity,
}

impl From<ParseCode> for Code {
    fn from(code: ParseCode) -> Self {
        Self {
            text: code.as_str(),
            severity: code.severity(),
        }
    }
}

impl From<ScanCode> for Code {
    fn from(code: ScanCode) -> Self {
        Self {
            text: code.as_str(),
            severity: code.severity(),
        }
    }
}

/// Where in a file a diagnostic applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    WholeFile,
    /// Both count from 1; the column counts characters.
    At {
        line: u32,
        column: u32,
    },
}

/// What to do about a diagnostic. `()` converts to no hint.
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

/// Builds a diagnostic about `path`.
pub(crate) fn new_diagnostic(
    code: impl Into<Code>,
    path: &Path,
    position: Position,
    message: impl Into<String>,
    hint: impl Into<Hint>,
) -> Diagnostic {
    let code = code.into();
    let (line, column) = match position {
        Position::WholeFile => (None, None),
        Position::At { line, column } => (Some(line), Some(column)),
    };
    Diagnostic {
        code: code.text,
        severity: code.severity,
        path: path.to_owned(),
        line,
        column,
        message: message.into(),
        hint: hint.into().0,
    }
}
