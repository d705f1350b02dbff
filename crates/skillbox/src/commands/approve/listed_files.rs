//! Reads the files of the reviewed version, and nothing else.

use skillbox_model::{ErrorCode, RelPath};
use skillbox_repository::{SkillDir, SkillReadError, content_digest};
use skillbox_trust::{FileKind, SkillManifest};

use crate::failure::Failure;

/// Larger files are listed, but not searched and not compared line by line.
pub const MAX_SEARCHED_BYTES: u64 = 4 << 20;

/// The files of the reviewed version. What the reviewer sees has the digests that are approved.
pub struct ListedFiles<'a> {
    /// The skill.
    pub directory: &'a SkillDir,
    /// Its files with their digests.
    pub manifest: &'a SkillManifest,
}

impl ListedFiles<'_> {
    /// The content of a file; `None` for a link and for a large file.
    pub fn read(&self, path: &RelPath) -> Result<Option<Vec<u8>>, Failure> {
        let listed = self.manifest.files().find(|(listed, ..)| *listed == path);
        let Some((_, FileKind::File | FileKind::Executable, sha256)) = listed else {
            return Ok(None);
        };
        let content = match self.directory.read_file(path, MAX_SEARCHED_BYTES) {
            Ok(content) => content,
            Err(SkillReadError::TooLarge { .. }) => return Ok(None),
            Err(error) => return Err(unreadable(&error)),
        };
        if content_digest(content.as_slice()).ok() != Some(*sha256) {
            let message = format!("{path} changed during the review; nothing is approved");
            return Err(Failure::new(ErrorCode::Busy, message).with_hint("review the skill again"));
        }
        Ok(Some(content))
    }

    /// The size of a file.
    pub fn size(&self, path: &RelPath) -> Result<u64, Failure> {
        let file = self.directory.open_file(path).map_err(|error| unreadable(&error))?;
        Ok(file.size())
    }
}

/// The failure for a file of the skill that cannot be read.
pub fn unreadable(error: &SkillReadError) -> Failure {
    Failure::from_error(ErrorCode::SkillUnreadable, error)
}
