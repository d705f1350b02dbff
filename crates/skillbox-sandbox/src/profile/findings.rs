//! What is wrong with a profile's file, with the places.

use std::path::{Path, PathBuf};

use skillbox_model::{Diagnostic, Severity};

use super::yaml::Place;

/// What is wrong with a document, with its places.
pub(super) struct Findings {
    path: PathBuf,
    list: Vec<Diagnostic>,
}

impl Findings {
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            list: Vec::new(),
        }
    }

    pub fn add(&mut self, place: Option<Place>, code: &'static str, message: String) {
        self.list.push(finding(&self.path, place, code, message, None));
    }

    pub fn hint(&mut self, place: Option<Place>, code: &'static str, message: String, hint: String) {
        self.list.push(finding(&self.path, place, code, message, Some(hint)));
    }

    pub fn into_list(self) -> Vec<Diagnostic> {
        self.list
    }

    /// The reason of an entry; without one the entry is an error.
    pub fn reason(&mut self, reason: Option<&String>, place: Option<Place>, what: &str) -> String {
        match reason.map(|reason| reason.trim()).filter(|reason| !reason.is_empty()) {
            Some(reason) => reason.to_owned(),
            None => {
                let message = format!("the entry for {what} has no reason");
                let hint = "say in one line why the script needs it".to_owned();
                self.hint(place, "profile_reason_missing", message, hint);
                String::new()
            }
        }
    }
}

/// One finding. Whatever is wrong with a policy is an error: there is no half of one.
pub(super) fn finding(
    path: &Path,
    place: Option<Place>,
    code: &'static str,
    message: String,
    hint: Option<String>,
) -> Diagnostic {
    Diagnostic {
        code,
        severity: Severity::Error,
        path: path.to_owned(),
        line: place.map(|place| place.line),
        column: place.map(|place| place.column),
        message,
        hint,
    }
}
