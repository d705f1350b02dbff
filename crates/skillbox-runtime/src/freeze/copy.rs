//! Copying a skill: reading it once, hashing and writing the same bytes.

use std::io::{self, Read};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use skillbox_executor::snapshot::{Snapshot, SnapshotStore};
use skillbox_model::Digest;
use skillbox_repository::{SkillDir, SkillEntry, TreeDigest, TreeEntryKind};

use crate::RunError;

/// The frozen skill as it is now. What is hashed is what is copied, byte for byte: a change in between cannot
/// make the digest say one thing and the script see another.
pub(super) fn freeze(store: &SnapshotStore, entry: &SkillEntry) -> Result<Arc<Snapshot>, RunError> {
    let failed = |source| RunError::Skill {
        skill: entry.name().clone(),
        source,
    };
    let directory = entry.open().map_err(failed)?;
    // A skill that was frozen before needs its digest only.
    let digest = directory.digest().map_err(failed)?;
    if let Some(snapshot) = store.open(&digest)? {
        return Ok(Arc::new(snapshot));
    }
    copy(store, entry, &directory).map(Arc::new)
}

fn copy(store: &SnapshotStore, entry: &SkillEntry, directory: &SkillDir) -> Result<Snapshot, RunError> {
    let failed = |source| RunError::Skill {
        skill: entry.name().clone(),
        source,
    };
    let mut writer = store.begin()?;
    let mut digest = TreeDigest::new();
    for item in directory.files().map_err(failed)? {
        match &item.kind {
            TreeEntryKind::Dir => writer.directory(&item.path)?,
            TreeEntryKind::Link { target } => {
                digest.link(&item.path, target);
                writer.link(&item.path, target)?;
            }
            TreeEntryKind::File { .. } => {
                let file = directory.open_file(&item.path).map_err(failed)?;
                let executable = file.executable();
                let mut content = Hashing::new(file);
                writer.file(&item.path, executable, &mut content)?;
                digest.file(&item.path, executable, &content.digest());
            }
        }
    }
    Ok(writer.commit(&digest.finish())?)
}

/// Hashes what passes through.
struct Hashing<R> {
    inner: R,
    hasher: Sha256,
}

impl<R: Read> Hashing<R> {
    fn new(inner: R) -> Self {
        Self {
            inner,
            hasher: Sha256::new(),
        }
    }

    fn digest(self) -> Digest {
        Digest::from_sha256(self.hasher.finalize().into())
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        Ok(count)
    }
}
