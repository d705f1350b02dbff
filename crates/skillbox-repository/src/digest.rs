//! The digest of a skill: same tree, same digest, on every machine.
//!
//! It is the SHA-256 of the ASCII text `skillbox-tree/1` and a NUL byte, followed by one record for each file and
//! each link of the skill, ordered by the bytes of their paths:
//!
//! ```text
//! kind SP content SP path NUL
//! ```
//!
//! - `kind` is one letter: `f` a file, `x` a file that its owner may execute, `l` a link;
//! - `content` is the SHA-256 of the file's bytes, or of the link's text, as 64 lower-case hexadecimal digits;
//! - `path` is the path below the skill with slashes, byte for byte as the file system has it.
//!
//! A path has no NUL in it, so no two trees share a text. Directories are not recorded: they exist through what
//! is in them, and an empty one, which archives and version control drop, does not change the digest. Owners, times
//! and other permission bits differ between machines and are not recorded either. What [`SkillDir::tree`] leaves
//! out is left out here too: what is staged is what was hashed. So `sha256sum` and `sort` can check a digest.

use std::io::{self, Read};

use sha2::{Digest as _, Sha256};
use skillbox_model::{Digest, RelPath};

use crate::skill_dir::{SkillDir, SkillReadError};
use crate::tree::TreeEntryKind;

/// A digest in the making, for whoever copies a tree and hashes it on the way.
///
/// Records must be added in the order of their paths.
#[derive(Debug)]
pub struct TreeDigest {
    hasher: Sha256,
    last: Option<RelPath>,
}

impl Default for TreeDigest {
    fn default() -> Self {
        Self::new()
    }
}

impl TreeDigest {
    /// The digest of nothing yet.
    pub fn new() -> Self {
        let mut hasher = Sha256::new();
        hasher.update(b"skillbox-tree/1\0");
        Self { hasher, last: None }
    }

    /// Adds a file whose bytes hash to `content`.
    pub fn file(&mut self, path: &RelPath, executable: bool, content: &Digest) {
        self.record(if executable { b'x' } else { b'f' }, content, path);
    }

    /// Adds a link with this text.
    pub fn link(&mut self, path: &RelPath, target: &[u8]) {
        self.record(b'l', &Digest::from_sha256(Sha256::digest(target).into()), path);
    }

    /// The digest of all that was added.
    pub fn finish(self) -> Digest {
        Digest::from_sha256(self.hasher.finalize().into())
    }

    fn record(&mut self, kind: u8, content: &Digest, path: &RelPath) {
        debug_assert!(
            self.last.as_ref().is_none_or(|last| last < path),
            "{path} is out of order"
        );
        self.last = Some(path.clone());
        self.hasher.update([kind, b' ']);
        self.hasher.update(content.hex());
        self.hasher.update(b" ");
        self.hasher.update(path.as_bytes());
        self.hasher.update(b"\0");
    }
}

/// The digest of everything that a reader gives.
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
    /// The digest of the skill as it is now.
    pub fn digest(&self) -> Result<Digest, SkillReadError> {
        let mut digest = TreeDigest::new();
        for entry in self.files()? {
            match &entry.kind {
                TreeEntryKind::Dir => {}
                TreeEntryKind::Link { target } => digest.link(&entry.path, target),
                TreeEntryKind::File { .. } => {
                    let file = self.open_file(&entry.path)?;
                    let executable = file.executable();
                    let content = content_digest(file).map_err(|source| self.failed(entry.path.as_path(), source))?;
                    digest.file(&entry.path, executable, &content);
                }
            }
        }
        Ok(digest.finish())
    }
}
