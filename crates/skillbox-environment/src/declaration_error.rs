//! Why the declared packages of a skill cannot be used.

/// A declaration that is refused before anything is built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {}{reason}", self.file, self.line.map(|line| format!(":{line}")).unwrap_or_default(), self.subject())]
pub struct DeclarationError {
    /// The file of the skill.
    pub file: String,
    /// The line, from 1, if the file has lines.
    pub line: Option<usize>,
    /// The package or the option, as the file names it.
    pub package: Option<String>,
    /// Why it is refused.
    pub reason: String,
    /// What the author or the operator can do.
    pub hint: Option<&'static str>,
}

impl DeclarationError {
    pub(crate) fn new(file: &str, reason: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
            package: None,
            reason: reason.into(),
            hint: None,
        }
    }

    pub(crate) fn at_line(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }

    pub(crate) fn of_package(mut self, package: &str) -> Self {
        self.package = Some(package.chars().take(80).collect());
        self
    }

    pub(crate) fn with_hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }

    fn subject(&self) -> String {
        match &self.package {
            Some(package) => format!("{package}: "),
            None => String::new(),
        }
    }
}
