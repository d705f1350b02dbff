//! Counts the bytes in the state directory, for metrics.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The number of files that one count visits. Further files are not counted.
const MAX_VISITED_FILES: usize = 1_000_000;

/// The directories of the state directory, which name the kinds.
const KINDS: [&str; 5] = ["sessions", "artifacts", "snapshots", "scratch", "tenants"];

/// Bytes by kind.
pub(crate) type BytesByKind = Vec<(&'static str, u64)>;

/// The latest count, which later calls reuse.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoredBytes(Arc<Mutex<Option<(Instant, BytesByKind)>>>);

impl StoredBytes {
    /// The bytes below the state directory, counted at most `max_age` ago. Callers at the same time wait for one count.
    pub(crate) fn count(&self, state_dir: &Path, max_age: Duration) -> BytesByKind {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((counted_at, bytes)) = &*latest
            && counted_at.elapsed() < max_age
        {
            return bytes.clone();
        }
        let mut files_left = MAX_VISITED_FILES;
        let bytes: BytesByKind = KINDS
            .iter()
            .map(|kind| (*kind, count_directory(&state_dir.join(kind), &mut files_left)))
            .collect();
        *latest = Some((Instant::now(), bytes.clone()));
        bytes
    }
}

/// The bytes of the files below a directory, without following links. What cannot be read is not counted.
fn count_directory(directory: &Path, files_left: &mut usize) -> u64 {
    let mut bytes = 0;
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if *files_left == 0 {
                return bytes;
            }
            *files_left -= 1;
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => directories.push(entry.path()),
                // Blocks have 512 bytes. Images of workspaces are sparse.
                Ok(metadata) if metadata.is_file() => bytes += metadata.len().min(metadata.blocks() * 512),
                _ => {}
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_counted_by_kind_and_links_are_not_followed() {
        let state = tempfile::tempdir().unwrap();
        let session = state.path().join("sessions/s1/work");
        fs::create_dir_all(&session).unwrap();
        fs::write(session.join("a"), "12345").unwrap();
        std::os::unix::fs::symlink("/usr", session.join("link")).unwrap();
        fs::write(state.path().join("unrelated"), "1").unwrap();
        let stored = StoredBytes::default();
        let sessions = |stored: &StoredBytes, max_age| stored.count(state.path(), max_age)[0];
        assert_eq!(sessions(&stored, Duration::ZERO), ("sessions", 5));
        fs::write(session.join("b"), "1").unwrap();
        assert_eq!(sessions(&stored, Duration::from_secs(600)), ("sessions", 5));
        assert_eq!(sessions(&stored, Duration::ZERO), ("sessions", 6));
    }
}
