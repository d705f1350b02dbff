//! Why a signature is not valid or cannot be made.

use crate::manifest::FileChange;

/// Why a signature is not valid or cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// A key or certificate of the configuration or the command line cannot be used.
    #[error("{what} cannot be used: {problem}")]
    Key {
        /// Which key.
        what: String,
        /// What is wrong.
        problem: String,
    },
    /// A file of the signature does not have the documented form.
    #[error("{file} is invalid: {problem}")]
    Malformed {
        /// The file.
        file: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// No configured publisher made the signature, or the signed text was changed.
    #[error("{file} has no valid signature of a configured publisher ({})", publishers.join(", "))]
    NoPublisher {
        /// The file.
        file: &'static str,
        /// The publishers whose keys were tried, with what each check found.
        publishers: Vec<String>,
    },
    /// The signature is authentic, but the files are not those that were signed.
    #[error("{file}: {}", shown_changes(changes))]
    FilesDiffer {
        /// The file of the signature.
        file: &'static str,
        /// How the files differ from the signed ones.
        changes: Vec<FileChange>,
    },
    /// The skill cannot be signed by this method.
    #[error("the skill cannot be signed: {0}")]
    NotSignable(String),
}

/// The first changes, and the number of the others.
fn shown_changes(changes: &[FileChange]) -> String {
    const MAX_SHOWN: usize = 20;
    let mut texts: Vec<String> = changes
        .iter()
        .take(MAX_SHOWN)
        .map(|change| format!("{change} after the signature"))
        .collect();
    if changes.len() > MAX_SHOWN {
        texts.push(format!("and {} more", changes.len() - MAX_SHOWN));
    }
    texts.join(", ")
}
