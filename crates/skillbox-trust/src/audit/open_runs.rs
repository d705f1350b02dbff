//! The runs of this process that have not ended, so that the next process can close them as lost.
//!
//! Each process has one file, which it locks while it lives. A slot of the file is written before the first record of a
//! run and cleared after its last one, each by one small write.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use skillbox_model::RunId;

use super::log_files::open_private;
use crate::TrustError;
use crate::private_file::create_private_dir;

const SLOT_BYTES: usize = 256;
const DIRECTORY: &str = "open";

/// A run that may not have ended, and the end of the log before its first record.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct OpenRun {
    pub(super) run: RunId,
    pub(super) file: u64,
    pub(super) offset: u64,
}

/// The open runs of this process.
#[derive(Debug)]
pub(super) struct OpenRuns {
    file: File,
    path: PathBuf,
    is_used: Vec<bool>,
}

impl OpenRuns {
    pub(super) fn create(audit_dir: &Path) -> Result<Self, TrustError> {
        let directory = audit_dir.join(DIRECTORY);
        create_private_dir(&directory)?;
        loop {
            let path = directory.join(uuid::Uuid::now_v7().to_string());
            let file = open_private(&path, false)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)
                .map_err(|error| TrustError::io("lock", &path)(error.into()))?;
            // Another process may have removed the file before it was locked.
            if file.metadata().map_err(TrustError::io("read", &path))?.nlink() > 0 {
                return Ok(Self {
                    file,
                    path,
                    is_used: Vec::new(),
                });
            }
        }
    }

    pub(super) fn insert(&mut self, run: &OpenRun) -> Result<usize, TrustError> {
        let slot = self
            .is_used
            .iter()
            .position(|is_used| !is_used)
            .unwrap_or(self.is_used.len());
        let mut bytes = serde_json::to_vec(run).expect("strings and numbers serialize");
        bytes.resize(SLOT_BYTES, b' ');
        self.write(slot, &bytes)?;
        if slot == self.is_used.len() {
            self.is_used.push(true);
        }
        self.is_used[slot] = true;
        Ok(slot)
    }

    pub(super) fn remove(&mut self, slot: usize) -> Result<(), TrustError> {
        self.write(slot, &[b' '; SLOT_BYTES])?;
        self.is_used[slot] = false;
        Ok(())
    }

    fn write(&self, slot: usize, bytes: &[u8]) -> Result<(), TrustError> {
        self.file
            .write_all_at(bytes, (slot * SLOT_BYTES) as u64)
            .map_err(TrustError::io("write", &self.path))
    }
}

impl Drop for OpenRuns {
    fn drop(&mut self) {
        if !self.is_used.contains(&true) {
            // If this fails, the next process finds a file without open runs and removes it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The file of a process that died, locked.
pub(super) struct DeadProcess {
    _file: File,
    path: PathBuf,
    pub(super) runs: Vec<OpenRun>,
}

impl DeadProcess {
    /// Removes the file, when its runs are closed.
    pub(super) fn remove(self) -> Result<(), TrustError> {
        fs::remove_file(&self.path).map_err(TrustError::io("remove", &self.path))
    }
}

/// The files of processes that died.
pub(super) fn find_dead_processes(audit_dir: &Path) -> Result<Vec<DeadProcess>, TrustError> {
    let directory = audit_dir.join(DIRECTORY);
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(TrustError::io("list", &directory)(error)),
    };
    let mut dead = Vec::new();
    for entry in entries {
        let path = entry.map_err(TrustError::io("list", &directory))?.path();
        let Ok(file) = File::open(&path) else { continue };
        // A living process holds the lock.
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        if file.metadata().map_err(TrustError::io("read", &path))?.nlink() == 0 {
            continue;
        }
        let content = fs::read(&path).map_err(TrustError::io("read", &path))?;
        let runs = content
            .chunks(SLOT_BYTES)
            .filter_map(|slot| serde_json::from_slice(slot.trim_ascii()).ok());
        dead.push(DeadProcess {
            runs: runs.collect(),
            _file: file,
            path,
        });
    }
    Ok(dead)
}
