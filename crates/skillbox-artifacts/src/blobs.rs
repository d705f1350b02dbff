//! Blobs on a local disk: files named by their digest, written once.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use skillbox_model::Digest;

use crate::error::io_error;
use crate::quota::{BlobQuota, allocated_bytes};
use crate::sparse_file::SparseWriter;
use crate::{ArtifactName, StoreError, layout};

/// How long the garbage collector waits for writers.
const EXCLUSIVE_LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// The age after which an unfinished file counts as abandoned. It is longer than any write.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 3600);

/// A directory of blobs.
#[derive(Clone, Debug)]
pub(crate) struct BlobDirectory {
    root: PathBuf,
    quota: Option<BlobQuota>,
}

impl BlobDirectory {
    pub(crate) fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            quota: None,
        }
    }

    /// The same directory, whose content may use at most this many bytes.
    pub(crate) fn with_quota(self, max_bytes: u64) -> Self {
        let quota = Some(BlobQuota::new(max_bytes));
        Self { quota, ..self }
    }

    pub(crate) fn max_bytes(&self) -> Option<u64> {
        self.quota.as_ref().map(BlobQuota::max_bytes)
    }

    /// The bytes that all blobs and unfinished files use on the disk.
    pub(crate) fn used_bytes(&self) -> Result<u64, StoreError> {
        let mut files = list_directory(&self.root.join("tmp"))?;
        for shard in list_directory(&self.root.join(layout::BLOBS))? {
            files.extend(list_directory(&shard)?);
        }
        let sizes = files
            .iter()
            .map(|path| allocated_bytes(path).map_err(io_error("inspect", path)));
        sizes.sum()
    }

    /// The directory for unfinished files, created on demand.
    pub(crate) fn temp_directory(&self) -> Result<PathBuf, StoreError> {
        let temp_directory = self.root.join("tmp");
        fs::create_dir_all(&temp_directory).map_err(io_error("create", &temp_directory))?;
        Ok(temp_directory)
    }

    /// Locks out the garbage collector during a write. Otherwise it could remove the blob before a record refers to it.
    /// Writers share the lock.
    pub(crate) fn lock_for_write(&self) -> Result<File, StoreError> {
        let temp_directory = self.temp_directory()?;
        let directory = File::open(&temp_directory).map_err(io_error("open", &temp_directory))?;
        match directory.lock_shared() {
            // On a file system without locks the garbage collector always fails, so no lock is needed.
            Err(error) if error.kind() != io::ErrorKind::Unsupported => Err(io_error("lock", &temp_directory)(error)),
            _ => Ok(directory),
        }
    }

    /// Waits until no writer is active, and locks out new ones. Returns none if that takes too long.
    pub(crate) fn lock_for_collection(&self) -> Result<Option<File>, StoreError> {
        let temp_directory = self.temp_directory()?;
        let directory = File::open(&temp_directory).map_err(io_error("open", &temp_directory))?;
        let deadline = Instant::now() + EXCLUSIVE_LOCK_TIMEOUT;
        loop {
            match directory.try_lock() {
                Ok(()) => return Ok(Some(directory)),
                Err(TryLockError::WouldBlock) if Instant::now() > deadline => return Ok(None),
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(5)),
                Err(TryLockError::Error(error)) => return Err(io_error("lock", &temp_directory)(error)),
            }
        }
    }

    /// The digests of all blobs.
    pub(crate) fn list_digests(&self) -> Result<BTreeSet<Digest>, StoreError> {
        let mut digests = BTreeSet::new();
        for shard in list_directory(&self.root.join(layout::BLOBS))? {
            for path in list_directory(&shard)? {
                let name = path.file_name().and_then(OsStr::to_str);
                digests.extend(name.and_then(|hex| Digest::parse(&format!("sha256:{hex}")).ok()));
            }
        }
        Ok(digests)
    }

    /// Unfinished files that are so old that their writers must have ended.
    pub(crate) fn abandoned_temp_files(&self) -> Result<Vec<PathBuf>, StoreError> {
        let mut old = list_directory(&self.root.join("tmp"))?;
        old.retain(|path| {
            let modified = fs::metadata(path).and_then(|meta| meta.modified());
            modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > ABANDONED_AFTER))
        });
        Ok(old)
    }

    pub(crate) fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.root.join(layout::blob_path(digest))
    }

    /// Stores the content of `reader`. `name` is used only in errors.
    pub(crate) fn write(&self, name: &ArtifactName, reader: &mut dyn Read) -> Result<(Digest, u64), StoreError> {
        let temp_directory = self.temp_directory()?;
        let mut temp =
            tempfile::NamedTempFile::new_in(&temp_directory).map_err(io_error("create a file in", &temp_directory))?;
        let path = temp.path().to_owned();
        let bytes_left = match &self.quota {
            Some(quota) => quota.bytes_left(|| self.used_bytes())?,
            None => u64::MAX,
        };
        let mut writer = SparseWriter::new(temp.as_file_mut(), bytes_left);
        let copied = copy_and_hash(name, reader, &mut writer, &path);
        if let (true, Some(max_bytes)) = (writer.is_over_limit(), self.max_bytes()) {
            let name = name.clone();
            return Err(StoreError::QuotaExceeded { name, max_bytes });
        }
        let (digest, size) = copied?;
        let written = writer.finish().map_err(io_error("write to", &path))?;
        let path = self.blob_path(&digest);
        if !path.exists() {
            // Writers that run at the same time saw the same free space.
            if let Some(quota) = self.quota.as_ref().filter(|quota| !quota.claim(written)) {
                let (name, max_bytes) = (name.clone(), quota.max_bytes());
                return Err(StoreError::QuotaExceeded { name, max_bytes });
            }
            // Syncing before the rename ensures that a record never refers to a blob that a crash can lose.
            temp.as_file().sync_data().map_err(io_error("sync", temp.path()))?;
            let parent = path.parent().unwrap_or(&self.root);
            fs::create_dir_all(parent).map_err(io_error("create", parent))?;
            temp.persist(&path)
                .map_err(|error| io_error("create", &path)(error.error))?;
        }
        Ok((digest, size))
    }

    pub(crate) fn open(&self, digest: &Digest) -> Result<File, StoreError> {
        let path = self.blob_path(digest);
        File::open(&path).map_err(io_error("open", &path))
    }
}

/// The entries of a directory; empty if it does not exist.
fn list_directory(directory: &Path) -> Result<Vec<PathBuf>, StoreError> {
    match fs::read_dir(directory) {
        Ok(entries) => entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<_>>()
            .map_err(io_error("list", directory)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(io_error("list", directory)(error)),
    }
}

/// Copies the whole content. Returns its digest and size. Errors of the reader and of `into` are distinguished.
pub(crate) fn copy_and_hash(
    name: &ArtifactName,
    content: &mut dyn Read,
    into: &mut dyn Write,
    path: &Path,
) -> Result<(Digest, u64), StoreError> {
    let mut hasher = Sha256::new();
    let mut size = 0;
    let mut buffer = vec![0; 128 << 10];
    loop {
        let count = match content.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(source) => {
                let name = name.clone();
                return Err(StoreError::Content { name, source });
            }
        };
        hasher.update(&buffer[..count]);
        into.write_all(&buffer[..count]).map_err(io_error("write to", path))?;
        size += count as u64;
    }
    Ok((Digest::from_sha256(hasher.finalize().into()), size))
}
