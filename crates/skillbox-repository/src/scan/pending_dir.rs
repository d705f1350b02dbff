//! A directory that is about to be scanned.

use std::path::PathBuf;
use std::sync::Arc;

use crate::fs::FileIdentity;

/// A directory to scan.
#[derive(Debug)]
pub(crate) struct PendingDir {
    pub(crate) dir: PathBuf,
    pub(crate) depth: u8,
    /// Whether a directory above it contains a SKILL.md. Links inside skills are not followed.
    pub(crate) is_in_skill: bool,
    /// The directories above it, to detect links that point back to them.
    pub(crate) ancestors: Option<Arc<Ancestors>>,
}

impl PendingDir {
    /// The directory of a source.
    pub(crate) fn root(dir: PathBuf) -> Self {
        Self {
            dir,
            depth: 0,
            is_in_skill: false,
            ancestors: None,
        }
    }
}

/// The identities of a directory and of those above it, as a linked list.
#[derive(Debug)]
pub(crate) struct Ancestors {
    identity: FileIdentity,
    parent: Option<Arc<Ancestors>>,
}

impl Ancestors {
    pub(crate) fn new(identity: FileIdentity, parent: Option<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self { identity, parent })
    }

    pub(crate) fn contains(this: Option<&Arc<Self>>, identity: FileIdentity) -> bool {
        std::iter::successors(this, |ancestors| ancestors.parent.as_ref()).any(|it| it.identity == identity)
    }
}
