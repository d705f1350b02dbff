//! The part of a TOML table that declares packages of Python, which scripts and projects share.

use serde::Deserialize;

use crate::declaration_error::DeclarationError;
use crate::requirement::Requirement;
use crate::requirements_file::{DeclaredRequirement, MAX_REQUIREMENTS, requirement_error};

/// The keys that declare packages; others are for other tools.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct PythonTable {
    #[serde(default)]
    dependencies: Vec<String>,
    #[serde(rename = "requires-python")]
    pub requires_python: Option<String>,
}

/// The packages of Python that a file declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonDeclaration {
    /// The requirements, in the order of the file.
    pub requirements: Vec<DeclaredRequirement>,
    /// The versions of Python that the file needs, as it says it.
    pub requires_python: Option<String>,
}

impl PythonTable {
    /// The checked requirements. `line_of` finds the line of a text in the file.
    pub fn requirements(
        &self,
        file: &str,
        line_of: impl Fn(&str) -> usize,
    ) -> Result<Vec<DeclaredRequirement>, DeclarationError> {
        if self.dependencies.len() > MAX_REQUIREMENTS {
            let reason = format!("more than {MAX_REQUIREMENTS} dependencies");
            return Err(DeclarationError::new(file, reason));
        }
        let parse = |text: &String| {
            let line = line_of(text);
            let requirement =
                Requirement::parse(text).map_err(|error| requirement_error(file, &error, text).at_line(line))?;
            Ok(DeclaredRequirement { requirement, line })
        };
        self.dependencies.iter().map(parse).collect()
    }
}
