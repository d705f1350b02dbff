//! Collects the errors of a profile file, with their locations.

use std::path::{Path, PathBuf};

use skillbox_model::{Diagnostic, Severity};

use super::yaml::Location;

/// The errors of one profile file.
pub(super) struct Diagnostics {
    path: PathBuf,
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            list: Vec::new(),
        }
    }

    pub fn add(&mut self, location: Option<Location>, code: &'static str, message: String) {
        self.list
            .push(error_diagnostic(&self.path, location, code, message, None));
    }

    pub fn add_with_hint(&mut self, location: Option<Location>, code: &'static str, message: String, hint: String) {
        self.list
            .push(error_diagnostic(&self.path, location, code, message, Some(hint)));
    }

    pub fn into_list(self) -> Vec<Diagnostic> {
        self.list
    }

    /// Returns the reason of an entry. Adds an error and returns an empty text if the entry has none.
    pub fn require_reason(&mut self, reason: Option<&String>, location: Option<Location>, entry: &str) -> String {
        match reason.map(|reason| reason.trim()).filter(|reason| !reason.is_empty()) {
            Some(reason) => reason.to_owned(),
            None => {
                let message = format!("the entry for {entry} has no reason");
                let hint = "explain in one line why the script needs it".to_owned();
                self.add_with_hint(location, "profile_reason_missing", message, hint);
                String::new()
            }
        }
    }
}

/// Creates a diagnostic of severity `Error`: a profile is used as a whole or not at all, so it has no warnings.
pub(super) fn error_diagnostic(
    path: &Path,
    location: Option<Location>,
    code: &'static str,
    message: String,
    hint: Option<String>,
) -> Diagnostic {
    Diagnostic {
        code,
        severity: Severity::Error,
        path: path.to_owned(),
        line: location.map(|location| location.line),
        column: location.map(|location| location.column),
        message,
        hint,
    }
}
