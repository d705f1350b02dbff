//! Errors of a batch. A failing job is a result, not an error.

use std::io;
use std::path::PathBuf;

use skillbox_model::{ErrorBody, ErrorCode, with_causes};

/// The maximum number of jobs of a batch.
pub(crate) const MAX_JOBS: usize = 1_000_000;

/// A line of the job list that is not a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// The number of the line, from 1; for a list of files, the number of the file.
    pub number: usize,
    /// The invalid field.
    pub field: Option<String>,
    /// What is wrong.
    pub message: String,
}

/// Why a batch did not start, or could not go on.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// Some lines are not jobs.
    #[error("{}", list_bad_lines(source_name, lines, *unnamed))]
    BadLines {
        /// The name of the list.
        source_name: String,
        /// The first bad lines.
        lines: Vec<BadLine>,
        /// The number of further bad lines.
        unnamed: usize,
    },
    /// A placeholder stands where its value could become shell text.
    #[error("{message}")]
    Template {
        /// The field of the request.
        field: &'static str,
        /// What is wrong.
        message: String,
        /// The remedy.
        hint: &'static str,
    },
    /// A pattern is invalid or matches no file.
    #[error("--each {pattern:?}: {message}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong.
        message: String,
    },
    /// There are more jobs than a batch may have.
    #[error("the batch has more than {MAX_JOBS} jobs")]
    TooManyJobs,
    /// There are no jobs.
    #[error("{0} has no jobs")]
    NoJobs(String),
    /// The result directory cannot be used.
    #[error("{}: {message}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What is wrong.
        message: String,
        /// The code.
        code: ErrorCode,
        /// The remedy.
        hint: String,
    },
    /// A file of the batch cannot be read or written.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A thread cannot be started.
    #[error("cannot start the threads of the batch")]
    Threads(#[source] io::Error),
}

impl BatchError {
    /// The error object.
    pub fn body(&self) -> ErrorBody {
        let (code, field, hint) = match self {
            Self::BadLines { lines, .. } => (
                ErrorCode::InvalidRequest,
                lines.first().map(BadLine::field_name),
                Some("correct the lines, or leave them out with --skip-bad".to_owned()),
            ),
            Self::Template { field, hint, .. } => (
                ErrorCode::InvalidRequest,
                Some((*field).to_owned()),
                Some((*hint).to_owned()),
            ),
            Self::Pattern { .. } => (
                ErrorCode::InvalidRequest,
                Some("each".to_owned()),
                Some("quote the pattern, so that the shell does not expand it".to_owned()),
            ),
            Self::TooManyJobs => (ErrorCode::LimitExceeded, None, Some("split the list".to_owned())),
            Self::NoJobs(_) => (
                ErrorCode::InvalidRequest,
                None,
                Some("write one request for each line".to_owned()),
            ),
            Self::Directory { code, hint, .. } => (*code, Some("out".to_owned()), Some(hint.clone())),
            Self::Io { .. } => (
                ErrorCode::Storage,
                None,
                Some("check free space and permissions".to_owned()),
            ),
            Self::Threads(_) => (ErrorCode::Internal, None, Some("use fewer --jobs".to_owned())),
        };
        let mut body = ErrorBody::new(code, with_causes(self));
        body.hint = hint;
        match field {
            Some(field) => body.with_field(field),
            None => body,
        }
    }
}

impl BadLine {
    fn field_name(&self) -> String {
        match &self.field {
            Some(field) => format!("line {}: {field}", self.number),
            None => format!("line {}", self.number),
        }
    }
}

fn list_bad_lines(source_name: &str, lines: &[BadLine], unnamed: usize) -> String {
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        let separator = if index == 0 { "" } else { "\n" };
        let field = line
            .field
            .as_ref()
            .map_or_else(String::new, |field| format!("{field}: "));
        text.push_str(&format!(
            "{separator}{source_name}:{}: {field}{}",
            line.number, line.message
        ));
    }
    if unnamed > 0 {
        text.push_str(&format!("\nand {unnamed} more"));
    }
    text
}
