//! The runs of each process that have not ended.
//!
//! Each process has one file, which it locks while it lives. A slot of the file is written when a run starts and cleared
//! when it has ended, each by one small write.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use rustix::fs::{FlockOperation, flock};
use skillbox_executor::CancelToken;
use skillbox_model::RunId;

use super::error::HistoryError;
use super::kill_listener::{CancelTokens, KillListener};
use super::past_run::PastRun;
use super::private_files::{create_private_dir, remove_if_exists};

const SLOT_BYTES: usize = 2048;
/// A longer command is cut in a slot.
const MAX_COMMAND_CHARS: usize = 200;
const FIFO_SUFFIX: &str = ".fifo";
/// Tables are read for a list; more slots than any server has runs.
const MAX_TABLE_BYTES: u64 = 64 << 20;

/// The table of this process.
#[derive(Debug)]
pub(super) struct RunTable {
    file: File,
    path: PathBuf,
    is_used: Vec<bool>,
    tokens: CancelTokens,
    _listener: KillListener,
}

impl RunTable {
    pub(super) fn create(directory: &Path) -> Result<Self, HistoryError> {
        create_private_dir(directory)?;
        loop {
            let path = directory.join(uuid::Uuid::now_v7().simple().to_string());
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)
                .map_err(HistoryError::io("create", &path))?;
            // Another process may hold the lock for a moment, because it takes the file for that of a dead process. It then
            // removes the file.
            flock(&file, FlockOperation::LockExclusive)
                .map_err(|error| HistoryError::io("lock", &path)(error.into()))?;
            if file.metadata().map_err(HistoryError::io("read", &path))?.nlink() == 0 {
                continue;
            }
            let tokens = CancelTokens::default();
            return Ok(Self {
                _listener: KillListener::start(&fifo_path(&path), Arc::clone(&tokens))?,
                file,
                path,
                is_used: Vec::new(),
                tokens,
            });
        }
    }

    /// Adds a run, and returns its slot.
    pub(super) fn insert(&mut self, run: &PastRun, cancel: &CancelToken) -> Result<usize, HistoryError> {
        let unused = self.is_used.iter().position(|is_used| !is_used);
        let slot = unused.unwrap_or(self.is_used.len());
        self.write(slot, &slot_bytes(run))?;
        if slot == self.is_used.len() {
            self.is_used.push(true);
        }
        self.is_used[slot] = true;
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.insert(run.run_id.clone(), cancel.clone());
        Ok(slot)
    }

    pub(super) fn remove(&mut self, slot: usize, id: &RunId) -> Result<(), HistoryError> {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.remove(id);
        drop(tokens);
        self.write(slot, &[b' '; SLOT_BYTES])?;
        self.is_used[slot] = false;
        Ok(())
    }

    fn write(&self, slot: usize, bytes: &[u8]) -> Result<(), HistoryError> {
        self.file
            .write_all_at(bytes, (slot * SLOT_BYTES) as u64)
            .map_err(HistoryError::io("write", &self.path))
    }
}

impl Drop for RunTable {
    fn drop(&mut self) {
        let _ = fs::remove_file(fifo_path(&self.path));
        if !self.is_used.contains(&true) {
            // If this fails, the next process finds a table without runs and removes it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn slot_bytes(run: &PastRun) -> Vec<u8> {
    let cut = PastRun {
        command: run.command.chars().take(MAX_COMMAND_CHARS).collect(),
        ..run.clone()
    };
    let encode = |run: &PastRun| serde_json::to_vec(run).unwrap_or_default();
    let mut bytes = encode(&cut);
    if bytes.len() > SLOT_BYTES {
        // Control characters take six bytes each.
        bytes = encode(&PastRun {
            command: String::new(),
            skill: run.skill.chars().take(64).collect(),
            ..cut
        });
    }
    bytes.resize(SLOT_BYTES, b' ');
    bytes
}

/// The table of a process, and whether the process lives.
pub(super) struct ProcessTable {
    pub(super) path: PathBuf,
    pub(super) runs: Vec<PastRun>,
    /// The lock on the table of a process that died.
    pub(super) dead: Option<File>,
}

impl ProcessTable {
    pub(super) fn fifo(&self) -> PathBuf {
        fifo_path(&self.path)
    }

    /// Removes the table of a process that died.
    pub(super) fn remove(self) -> Result<(), HistoryError> {
        remove_if_exists(&self.fifo())?;
        remove_if_exists(&self.path)
    }
}

/// The tables of all processes.
pub(super) fn read_tables(directory: &Path) -> Result<Vec<ProcessTable>, HistoryError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(HistoryError::io("list", directory)(error)),
    };
    let mut tables = Vec::new();
    for entry in entries {
        let path = entry.map_err(HistoryError::io("list", directory))?.path();
        if path.as_os_str().as_encoded_bytes().ends_with(FIFO_SUFFIX.as_bytes()) {
            continue;
        }
        let Ok(file) = File::open(&path) else { continue };
        let is_dead = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        let mut content = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(&file, MAX_TABLE_BYTES), &mut content)
            .map_err(HistoryError::io("read", &path))?;
        let slots = content.chunks(SLOT_BYTES);
        let runs = slots.filter_map(|slot| serde_json::from_slice(slot.trim_ascii()).ok());
        tables.push(ProcessTable {
            runs: runs.collect(),
            dead: is_dead.then_some(file),
            path,
        });
    }
    Ok(tables)
}

fn fifo_path(table: &Path) -> PathBuf {
    let mut path = table.as_os_str().to_owned();
    path.push(FIFO_SUFFIX);
    path.into()
}
