//! Reads the files of the reviewed version, and nothing else.

use std::path::Path;

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
    /// Where it is on the host.
    pub root: &'a Path,
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
            return Err(changed(path));
        }
        Ok(Some(content))
    }

    /// Where a symbolic link leads.
    pub fn link_target(&self, path: &RelPath) -> Result<String, Failure> {
        let listed = self.manifest.files().find(|(listed, ..)| *listed == path);
        let target = std::fs::read_link(self.root.join(path.as_path())).map_err(|error| {
            let message = format!("the symbolic link {path} cannot be read: {error}");
            Failure::new(ErrorCode::SkillUnreadable, message)
        })?;
        let bytes = target.as_os_str().as_encoded_bytes();
        if content_digest(bytes).ok() != listed.map(|(_, _, sha256)| *sha256) {
            return Err(changed(path));
        }
        Ok(target.display().to_string())
    }

    /// The size of a file.
    pub fn size(&self, path: &RelPath) -> Result<u64, Failure> {
        let file = self.directory.open_file(path).map_err(|error| unreadable(&error))?;
        Ok(file.size())
    }
}

fn changed(path: &RelPath) -> Failure {
    let message = format!("{path} changed during the review; nothing is approved");
    Failure::new(ErrorCode::Busy, message).with_hint("review the skill again")
}

/// The failure for a file of the skill that cannot be read.
pub fn unreadable(error: &SkillReadError) -> Failure {
    Failure::from_error(ErrorCode::SkillUnreadable, error)
}
