//! Findings about skills and profiles.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Advice; nothing is wrong.
    Info,
    /// A problem that skillbox worked around.
    Warning,
    /// The file cannot be used.
    Error,
}

/// One finding, with its location.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// A stable code for programs.
    pub code: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The file or directory.
    #[serde(serialize_with = "serialize_lossy")]
    pub path: PathBuf,
    /// Line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column in characters, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The finding.
    pub message: String,
    /// The remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Diagnostic {
    /// The location and the finding on one line, such as `pdf/SKILL.md:2:1: the frontmatter has no name`.
    pub fn summary(&self) -> String {
        let mut text = self.path.display().to_string();
        for number in [self.line, self.column].into_iter().flatten() {
            text.push_str(&format!(":{number}"));
        }
        format!("{text}: {}", self.message)
    }
}

/// Replaces invalid UTF-8, which file names may contain and JSON may not.
fn serialize_lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn paths_that_are_not_utf8_can_be_serialized() {
        let finding = Diagnostic {
            code: "unreadable",
            severity: Severity::Error,
            path: PathBuf::from(OsStr::from_bytes(b"caf\xe9/SKILL.md")),
            line: None,
            column: None,
            message: "cannot be read".to_owned(),
            hint: None,
        };
        let json = serde_json::to_value(&finding).unwrap();
        assert_eq!(json["path"], "caf\u{fffd}/SKILL.md");
        assert_eq!(json["severity"], "error");
        assert_eq!(finding.summary(), "caf\u{fffd}/SKILL.md: cannot be read");
        let positioned = Diagnostic {
            line: Some(2),
            column: Some(1),
            ..finding
        };
        assert!(positioned.summary().contains("SKILL.md:2:1: cannot"));
    }
}
