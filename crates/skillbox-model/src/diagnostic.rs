//! Findings about files that people write: skills and profiles.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Advice; nothing is wrong.
    Info,
    /// Something was odd and was dealt with.
    Warning,
    /// Something could not be used.
    Error,
}

/// One finding, with the place it is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// A stable word for programs.
    pub code: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// The file or directory.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// Line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column in characters, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// What was found.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A file name need not be UTF-8, JSON must be; a finding about such a file must reach its reader all the same.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn findings_about_odd_file_names_can_be_told() {
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
    }
}
