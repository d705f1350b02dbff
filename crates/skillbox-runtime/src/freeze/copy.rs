//! Copies a skill into a snapshot, hashing the bytes that it writes.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use skillbox_executor::snapshot::{Snapshot, SnapshotStore};
use skillbox_model::Digest;
use skillbox_repository::{SkillDir, SkillEntry, SkillReadError, TreeDigest, TreeEntryKind};

use crate::RunError;

/// How often a skill is read at least if files disappear while it is read. An editor that replaces a file takes less time
/// than one attempt.
const MIN_ATTEMPTS: usize = 10;
/// How long it is read again: on a busy machine, the attempts can take as long as the pauses of an editor.
const RETRY_TIME: Duration = Duration::from_secs(3);

/// The snapshot of a skill's current files. Each file is read once for both hash and copy, so a concurrent change cannot
/// give the script bytes that differ from those in the digest.
pub(super) fn copy_skill(
    store: &SnapshotStore,
    entry: &SkillEntry,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Arc<Snapshot>, RunError> {
    let started = Instant::now();
    let mut attempt = 1;
    loop {
        let may_retry = attempt < MIN_ATTEMPTS || started.elapsed() < RETRY_TIME;
        match copy_current_files(store, entry, is_cancelled) {
            Err(RunError::Skill { source, .. }) if may_retry && is_missing(&source) => attempt += 1,
            result => return result,
        }
    }
}

/// Whether a file that was listed did not exist any more.
fn is_missing(error: &SkillReadError) -> bool {
    match error {
        SkillReadError::Missing { .. } => true,
        SkillReadError::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
        _ => false,
    }
}

fn copy_current_files(
    store: &SnapshotStore,
    entry: &SkillEntry,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Arc<Snapshot>, RunError> {
    let unreadable = |source| RunError::Skill {
        skill: entry.name().clone(),
        source,
    };
    let directory = entry.open().map_err(unreadable)?;
    // If a snapshot with this digest exists already, nothing needs to be copied.
    let digest = directory.digest_unless(is_cancelled).map_err(unreadable)?;
    if let Some(snapshot) = store.open(&digest)? {
        return Ok(Arc::new(snapshot));
    }
    write_snapshot(store, entry, &directory, is_cancelled).map(Arc::new)
}

fn write_snapshot(
    store: &SnapshotStore,
    entry: &SkillEntry,
    directory: &SkillDir,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Snapshot, RunError> {
    let unreadable = |source| RunError::Skill {
        skill: entry.name().clone(),
        source,
    };
    let mut writer = store.new_writer()?;
    let mut digest = TreeDigest::new();
    let mut budget = directory.read_budget(is_cancelled);
    for item in directory.tree_entries().map_err(unreadable)? {
        match &item.kind {
            // The digest does not have directories, so only those of files and links exist in the snapshot.
            TreeEntryKind::Dir => {}
            TreeEntryKind::Link { target } => {
                digest.add_link(&item.path, target);
                writer.add_link(&item.path, target)?;
            }
            TreeEntryKind::File { .. } => {
                let file = directory.open_file(&item.path).map_err(unreadable)?;
                let (is_executable, mode) = (file.is_executable(), file.mode());
                let mut content = HashingReader::new(budget.reader(file));
                let added = writer.add_file(&item.path, mode, &mut content);
                let content_digest = content.digest();
                if budget.has_stopped() {
                    let source = io::ErrorKind::Other.into();
                    return Err(unreadable(directory.budget_error(&budget, &item.path, source)));
                }
                added?;
                digest.add_file(&item.path, is_executable, &content_digest);
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
