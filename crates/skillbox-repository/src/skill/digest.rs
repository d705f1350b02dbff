//! The digest of a skill: the same tree has the same digest on every machine.
//!
//! The digest is the SHA-256 of the ASCII text `skillbox-tree/1` and a NUL byte, followed by one record for each file
//! and each link of the skill, ordered by the bytes of their paths:
//!
//! ```text
//! kind SP content SP path NUL
//! ```
//!
//! - `kind` is one letter: `f` for a file, `x` for a file that its owner may execute, `l` for a link;
//! - `content` is the SHA-256 of the bytes of the file, or of the target of the link, as 64 lower-case hexadecimal
//!   digits;
//! - `path` is the path below the skill with slashes, byte for byte as in the file system.
//!
//! A path contains no NUL, so different trees have different records. Directories have no record: archives and version
//! control drop empty ones. Owners, times and other permission bits differ between machines and are not recorded. The
//! digest covers exactly the entries of [`SkillDir::read_tree`], which are also the entries that a run receives. It can
//! be checked with `sha256sum` and `sort`.

use std::io::{self, Read};

use sha2::{Digest as _, Sha256};
use skillbox_model::{Digest, RelPath};

use super::read_error::SkillReadError;
use super::read_limits::{ReadBudget, ReadStop};
use super::skill_dir::SkillDir;
use super::skill_tree::TreeEntryKind;

/// Computes the digest of a tree record by record, for example while the tree is copied.
///
/// Records must be added in the order of their paths.
#[derive(Debug)]
pub struct TreeDigest {
    hasher: Sha256,
    last_path: Option<RelPath>,
}

impl Default for TreeDigest {
    fn default() -> Self {
        Self::new()
    }
}

impl TreeDigest {
    /// Starts a digest without records.
    pub fn new() -> Self {
        let mut hasher = Sha256::new();
        hasher.update(b"skillbox-tree/1\0");
        Self {
            hasher,
            last_path: None,
        }
    }

    /// Adds a file whose bytes have the digest `content`.
    pub fn add_file(&mut self, path: &RelPath, is_executable: bool, content: &Digest) {
        self.add_record(if is_executable { b'x' } else { b'f' }, content, path);
    }

    /// Adds a link with this target.
    pub fn add_link(&mut self, path: &RelPath, target: &[u8]) {
        self.add_record(b'l', &Digest::from_sha256(Sha256::digest(target).into()), path);
    }

    /// Returns the digest of all records.
    pub fn finish(self) -> Digest {
        Digest::from_sha256(self.hasher.finalize().into())
    }

    fn add_record(&mut self, kind: u8, content: &Digest, path: &RelPath) {
        debug_assert!(
            self.last_path.as_ref().is_none_or(|last| last < path),
            "{path} is out of order"
        );
        self.last_path = Some(path.clone());
        self.hasher.update([kind, b' ']);
        self.hasher.update(content.hex());
        self.hasher.update(b" ");
        self.hasher.update(path.as_bytes());
        self.hasher.update(b"\0");
    }
}

/// Computes the digest of all bytes of a reader.
pub fn content_digest(mut reader: impl Read) -> io::Result<Digest> {
    let mut hasher = Sha256::new();
    let mut buffer = [0; 64 * 1024];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(Digest::from_sha256(hasher.finalize().into())),
            Ok(read) => hasher.update(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

impl SkillDir {
    /// Computes the digest of the current files.
    pub fn digest(&self) -> Result<Digest, SkillReadError> {
        self.digest_unless(&|| false)
    }

    /// Computes the digest of the current files, and stops with [`SkillReadError::Cancelled`] when `is_cancelled` says so.
    pub fn digest_unless(&self, is_cancelled: &dyn Fn() -> bool) -> Result<Digest, SkillReadError> {
        let mut digest = TreeDigest::new();
        let mut budget = self.read_budget(is_cancelled);
        for entry in self.tree_entries()? {
            match &entry.kind {
                TreeEntryKind::Dir => {}
                TreeEntryKind::Link { target } => digest.add_link(&entry.path, target),
                TreeEntryKind::File { .. } => {
                    let file = self.open_file(&entry.path)?;
                    let is_executable = file.is_executable();
                    let content = content_digest(budget.reader(file))
                        .map_err(|source| self.budget_error(&budget, &entry.path, source))?;
                    digest.add_file(&entry.path, is_executable, &content);
                }
            }
        }
        Ok(digest.finish())
    }

    /// The budget for reading all files of the skill once.
    pub fn read_budget<'a>(&self, is_cancelled: &'a dyn Fn() -> bool) -> ReadBudget<'a> {
        ReadBudget::new(self.limits, is_cancelled)
    }

    /// The error of a file whose reader failed: why the budget stopped it, or else `source`.
    pub fn budget_error(&self, budget: &ReadBudget<'_>, path: &RelPath, source: io::Error) -> SkillReadError {
        match budget.stop() {
            None => self.io_error(path.as_path(), source),
            Some(ReadStop::Cancelled) => SkillReadError::Cancelled(self.display_path.clone()),
            Some(ReadStop::FileBytes { size, limit }) => SkillReadError::FileTooLarge {
                path: self.display_path.join(path.as_path()),
                size,
                limit,
            },
            Some(ReadStop::Bytes { limit }) => SkillReadError::TreeTooLarge {
                skill: self.display_path.clone(),
                limit,
                what: "bytes (setting max_skill_bytes)",
            },
        }
    }
}
