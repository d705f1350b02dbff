//! Inputs from the object store, as files of this host. Files that several jobs use are fetched once.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::FlockOperation;
use skillbox_model::Digest;

use crate::queue::batch_store::BatchStore;
use crate::queue::error::QueueError;
use crate::queue::message::InputContent;

/// The bytes of files that no job uses now and that are kept for later ones.
const MAX_UNUSED_BYTES: u64 = 1 << 30;
const LOCK_FILE: &str = "lock";

/// The content of a file, and whether it is executable.
type FileId = (Digest, bool);

/// The directory of fetched files of one worker. It is removed with this value, or by the next worker after a crash.
#[derive(Debug)]
pub(super) struct FetchedInputs {
    directory: PathBuf,
    _lock: File,
    files: Mutex<HashMap<FileId, StoredFile>>,
}

#[derive(Debug)]
struct StoredFile {
    size: u64,
    users: usize,
}

/// A file that stays until this value is dropped.
#[derive(Debug)]
pub(super) struct FetchedFile {
    pub path: PathBuf,
    id: FileId,
    inputs: Arc<FetchedInputs>,
}

impl FetchedInputs {
    /// Creates the directory of this worker below `parent`, and removes those of workers that died.
    pub fn open(parent: &Path, worker: &str) -> Result<Self, QueueError> {
        let failed = |source| QueueError::Io {
            action: "create a directory below",
            path: parent.to_owned(),
            source,
        };
        fs::create_dir_all(parent).map_err(failed)?;
        for entry in fs::read_dir(parent).map_err(failed)?.flatten() {
            if lock(&entry.path(), false).is_ok_and(|lock| lock.is_some())
                && let Err(error) = fs::remove_dir_all(entry.path())
            {
                tracing::warn!(%error, "the inputs of a worker that died are not removed");
            }
        }
        let directory = parent.join(worker);
        fs::create_dir(&directory).map_err(failed)?;
        let lock = lock(&directory, true).map_err(failed)?;
        let lock = lock.ok_or_else(|| failed(io::ErrorKind::WouldBlock.into()))?;
        Ok(Self {
            directory,
            _lock: lock,
            files: Mutex::default(),
        })
    }

    /// A file with this content. Its digest is verified while it is fetched.
    pub fn fetch(self: &Arc<Self>, store: &BatchStore, content: &InputContent) -> Result<FetchedFile, QueueError> {
        let id = (content.sha256, content.is_executable);
        if !self.use_stored(&id, None) {
            let size = self.download(store, &id)?;
            self.use_stored(&id, Some(size));
        }
        Ok(FetchedFile {
            path: self.path(&id),
            id,
            inputs: Arc::clone(self),
        })
    }

    /// Counts a user of a file, which is new if its size is given. Returns false if it is not stored.
    fn use_stored(&self, id: &FileId, new_size: Option<u64>) -> bool {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(size) = new_size {
            files.entry(*id).or_insert(StoredFile { size, users: 0 });
        }
        match files.get_mut(id) {
            Some(stored) => {
                stored.users += 1;
                true
            }
            None => false,
        }
    }

    fn download(&self, store: &BatchStore, (digest, is_executable): &FileId) -> Result<u64, QueueError> {
        let path = self.path(&(*digest, *is_executable));
        let failed = |source| QueueError::Io {
            action: "fetch an input to",
            path: path.clone(),
            source,
        };
        let mut content = store.open_content(digest)?;
        let mut temporary = tempfile::NamedTempFile::new_in(&self.directory).map_err(failed)?;
        let size = io::copy(&mut content, &mut temporary).map_err(failed)?;
        temporary.flush().map_err(failed)?;
        let mode = if *is_executable { 0o755 } else { 0o644 };
        rustix::fs::fchmod(temporary.as_file(), rustix::fs::Mode::from_raw_mode(mode))
            .map_err(|error| failed(error.into()))?;
        temporary.persist(&path).map_err(|error| failed(error.error))?;
        Ok(size)
    }

    fn path(&self, (digest, is_executable): &FileId) -> PathBuf {
        let suffix = if *is_executable { "-x" } else { "" };
        self.directory.join(format!("{}{suffix}", digest.hex()))
    }

    fn release(&self, id: &FileId) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = files.get_mut(id) {
            file.users -= 1;
        }
        let mut unused: u64 = files
            .values()
            .filter(|file| file.users == 0)
            .map(|file| file.size)
            .sum();
        while unused > MAX_UNUSED_BYTES {
            let found = files.iter().find(|(_, file)| file.users == 0);
            let Some((oldest, size)) = found.map(|(id, file)| (*id, file.size)) else {
                return;
            };
            files.remove(&oldest);
            let _absent = fs::remove_file(self.path(&oldest));
            unused -= size;
        }
    }
}

impl Drop for FetchedInputs {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.directory) {
            tracing::warn!(%error, "fetched inputs are not removed");
        }
    }
}

impl Drop for FetchedFile {
    fn drop(&mut self) {
        self.inputs.release(&self.id);
    }
}

/// Locks the directory of a worker; none if its worker is alive.
fn lock(directory: &Path, create: bool) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.write(true).create(create).mode(0o600);
    let file = options.open(directory.join(LOCK_FILE))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
