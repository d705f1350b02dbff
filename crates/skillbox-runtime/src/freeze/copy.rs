//! Copies a skill into a snapshot, hashing the bytes that it writes.

use std::io::{self, Read};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use skillbox_executor::snapshot::{Snapshot, SnapshotStore};
use skillbox_model::Digest;
use skillbox_repository::{SkillDir, SkillEntry, TreeDigest, TreeEntryKind};

use crate::RunError;

/// The snapshot of a skill's current files. Each file is read once for both hash and copy, so a concurrent change cannot
/// give the script bytes that differ from those in the digest.
pub(super) fn copy_skill(store: &SnapshotStore, entry: &SkillEntry) -> Result<Arc<Snapshot>, RunError> {
    let unreadable = |source| RunError::Skill {
        skill: entry.name().clone(),
        source,
    };
    let directory = entry.open().map_err(unreadable)?;
    // If a snapshot with this digest exists already, nothing needs to be copied.
    let digest = directory.digest().map_err(unreadable)?;
    if let Some(snapshot) = store.open(&digest)? {
        return Ok(Arc::new(snapshot));
    }
    write_snapshot(store, entry, &directory).map(Arc::new)
}

fn write_snapshot(store: &SnapshotStore, entry: &SkillEntry, directory: &SkillDir) -> Result<Snapshot, RunError> {
    let unreadable = |source| RunError::Skill {
        skill: entry.name().clone(),
        source,
    };
    let mut writer = store.new_writer()?;
    let mut digest = TreeDigest::new();
    for item in directory.tree_entries().map_err(unreadable)? {
        match &item.kind {
            TreeEntryKind::Dir => writer.add_directory(&item.path)?,
            TreeEntryKind::Link { target } => {
                digest.add_link(&item.path, target);
                writer.add_link(&item.path, target)?;
            }
            TreeEntryKind::File { .. } => {
                let file = directory.open_file(&item.path).map_err(unreadable)?;
                let is_executable = file.is_executable();
                let mut content = HashingReader::new(file);
                writer.add_file(&item.path, is_executable, &mut content)?;
                digest.add_file(&item.path, is_executable, &content.digest());
            }
        }
    }
    Ok(writer.commit(&digest.finish())?)
}

/// A reader that hashes the bytes it returns.
struct HashingReader<R> {
    inner: R,
    hasher: Sha256,
}

impl<R: Read> HashingReader<R> {
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

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        Ok(count)
    }
}
