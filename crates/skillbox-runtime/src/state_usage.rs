//! What the state directory of a runtime holds, and how much of the disk it uses.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::Serialize;

use crate::{RunError, Runtime};

/// One kind of state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StateUsage {
    /// The kind.
    pub kind: StateKind,
    /// The number of sessions, snapshots and so on.
    pub entries: usize,
    /// The bytes that they use on the disk.
    pub bytes: u64,
}

/// The kinds of state, each in a directory of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StateKind {
    /// Sessions with their workspaces.
    Sessions,
    /// Files that were saved.
    Artifacts,
    /// Frozen skills.
    Snapshots,
    /// Workspaces of runs without a session.
    Scratch,
    /// Sessions, artifacts and workspaces of the tenants of a server.
    Tenants,
    /// Built-in skills as files.
    BuiltIn,
    /// Everything else.
    Other,
}

/// The directories of the kinds.
const DIRECTORIES: [(&str, StateKind); 6] = [
    ("sessions", StateKind::Sessions),
    ("artifacts", StateKind::Artifacts),
    ("snapshots", StateKind::Snapshots),
    ("scratch", StateKind::Scratch),
    ("tenants", StateKind::Tenants),
    ("built-in", StateKind::BuiltIn),
];

impl Runtime {
    /// What the state directory holds, in the order of [`StateKind`]. An artifact store elsewhere is not counted.
    pub fn state_usage(&self) -> Result<Vec<StateUsage>, RunError> {
        let root = &self.settings.state_dir;
        let mut found = Vec::new();
        for (name, kind) in DIRECTORIES {
            let path = root.join(name);
            found.push(StateUsage {
                kind,
                entries: match kind {
                    StateKind::Sessions => self.sessions.count()?,
                    StateKind::Snapshots => self.freezer.store().usage()?.snapshots,
                    _ => count_entries(&path),
                },
                bytes: used_bytes(&path).map_err(RunError::State)?,
            });
        }
        let is_other = |name: &std::ffi::OsStr| DIRECTORIES.iter().all(|(known, _)| name != *known);
        let mut other = StateUsage {
            kind: StateKind::Other,
            entries: 0,
            bytes: 0,
        };
        for entry in fs::read_dir(root).into_iter().flatten().flatten() {
            if is_other(&entry.file_name()) {
                other.entries += 1;
                other.bytes += used_bytes(&entry.path()).map_err(RunError::State)?;
            }
        }
        found.push(other);
        Ok(found)
    }
}

fn count_entries(directory: &Path) -> usize {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
        .count()
}

/// The bytes that a file or a tree uses. Links are not followed, and what disappears meanwhile is not counted.
fn used_bytes(path: &Path) -> io::Result<u64> {
    let mut bytes: u64 = 0;
    let mut pending = vec![path.to_owned()];
    while let Some(path) = pending.pop() {
        let found = match fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        bytes = bytes.saturating_add(found.blocks().saturating_mul(512));
        if !found.is_dir() {
            continue;
        }
        match fs::read_dir(&path) {
            Ok(entries) => pending.extend(entries.flatten().map(|entry| entry.path())),
            // A script may have made a directory unreadable for this user; its content is then not counted.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}
