//! Marks a snapshot as in use, and remembers in which boot of the host its files were known to be right.
//!
//! Each snapshot has a file beside it. Its lock is shared by the users of the snapshot and held exclusively while the
//! snapshot is removed; its modification time is the last use. Its content is the id of the boot in which the snapshot
//! was written or verified. A crash of the host can lose data that was not on the disk yet, and within one boot nothing
//! is lost: so a snapshot of an earlier boot is verified before its first use, and no run waits for a disk.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

/// How precisely the last use is known. Most uses then write nothing.
const LAST_USE_PRECISION: Duration = Duration::from_secs(3600);

/// The number of times that a removal may replace the file while it is opened.
const ATTEMPTS: u32 = 16;

/// The shared lock of a user of a snapshot.
#[derive(Debug)]
pub struct UseLock {
    file: File,
}

impl UseLock {
    /// Waits for a removal in progress, which takes one rename.
    pub fn take(path: &Path) -> io::Result<Self> {
        for _ in 0..ATTEMPTS {
            let file = open(path)?;
            file.lock_shared()?;
            if is_at(&file, path) {
                let lock = Self { file };
                lock.record_use()?;
                return Ok(lock);
            }
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }

    /// Whether the files of the snapshot were written or verified since the host started.
    pub fn is_verified(&self) -> bool {
        let mut verified_in = String::new();
        let mut file = &self.file;
        let read = file
            .rewind()
            .and_then(|()| file.take(64).read_to_string(&mut verified_in));
        read.is_ok() && boot_id().is_some_and(|boot| boot == verified_in)
    }

    /// Records that the files are right.
    pub fn set_verified(&self) -> io::Result<()> {
        let Some(boot) = boot_id() else { return Ok(()) };
        self.file.write_all_at(boot.as_bytes(), 0)?;
        self.file.set_len(boot.len() as u64)
    }

    fn record_use(&self) -> io::Result<()> {
        let now = SystemTime::now();
        let last_use = self.file.metadata()?.modified()?;
        let is_recent = now.duration_since(last_use).is_ok_and(|age| age < LAST_USE_PRECISION);
        if is_recent { Ok(()) } else { self.file.set_modified(now) }
    }
}

/// Calls `remove` if nobody uses the snapshot, and removes its file afterwards. Returns none if somebody does.
pub fn remove_if_unused<T>(path: &Path, remove: impl FnOnce() -> io::Result<T>) -> io::Result<Option<T>> {
    let file = open(path)?;
    match file.try_lock() {
        Ok(()) if is_at(&file, path) => {}
        Ok(()) | Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let removed = remove()?;
    fs::remove_file(path)?;
    Ok(Some(removed))
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

/// Whether the path still leads to the file, rather than to its successor or to nothing.
fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(opened), Ok(found)) = (file.metadata(), fs::metadata(path)) else {
        return false;
    };
    (opened.dev(), opened.ino()) == (found.dev(), found.ino())
}

/// The id that the kernel gave to this boot. Without one, every snapshot is verified at each opening.
fn boot_id() -> Option<&'static str> {
    static BOOT_ID: OnceLock<Option<String>> = OnceLock::new();
    let read = || fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    BOOT_ID.get_or_init(|| read().map(|id| id.trim().to_owned())).as_deref()
}
