//! Blobs on a local disk: files under their digest, written once.

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
use crate::{ArtifactName, StoreError, layout};

/// How long a collector waits for a moment without writers.
const PATIENCE: Duration = Duration::from_secs(1);

/// No writer takes as long.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

/// The blobs below one directory.
#[derive(Clone, Debug)]
pub(crate) struct Blobs {
    root: PathBuf,
}

impl Blobs {
    pub(crate) fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Where files wait that are not whole yet; made when it is needed.
    pub(crate) fn waiting(&self) -> Result<PathBuf, StoreError> {
        let waiting = self.root.join("tmp");
        fs::create_dir_all(&waiting).map_err(io_error("create", &waiting))?;
        Ok(waiting)
    }

    /// Keeps collectors away while something is stored: what it needs may be there already, and named by nobody yet.
    pub(crate) fn hold(&self) -> Result<File, StoreError> {
        let waiting = self.waiting()?;
        let directory = File::open(&waiting).map_err(io_error("open", &waiting))?;
        match directory.lock_shared() {
            // Where nothing can be locked, nothing can be collected either.
            Err(error) if error.kind() != io::ErrorKind::Unsupported => Err(io_error("lock", &waiting)(error)),
            _ => Ok(directory),
        }
    }

    /// Waits until nobody stores anything, but not for long, and keeps it so.
    pub(crate) fn lock_out_writers(&self) -> Result<Option<File>, StoreError> {
        let waiting = self.waiting()?;
        let directory = File::open(&waiting).map_err(io_error("open", &waiting))?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match directory.try_lock() {
                Ok(()) => return Ok(Some(directory)),
                Err(TryLockError::WouldBlock) if Instant::now() > deadline => return Ok(None),
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(5)),
                Err(TryLockError::Error(error)) => return Err(io_error("lock", &waiting)(error)),
            }
        }
    }

    /// Every blob that is there.
    pub(crate) fn all(&self) -> Result<BTreeSet<Digest>, StoreError> {
        let mut digests = BTreeSet::new();
        for fan in children(&self.root.join(layout::BLOBS))? {
            for path in children(&fan)? {
                let name = path.file_name().and_then(OsStr::to_str);
                digests.extend(name.and_then(|hex| Digest::parse(&format!("sha256:{hex}")).ok()));
            }
        }
        Ok(digests)
    }

    /// Files that writers began and, by their age, never finished.
    pub(crate) fn unfinished(&self) -> Result<Vec<PathBuf>, StoreError> {
        let mut old = children(&self.root.join("tmp"))?;
        old.retain(|path| {
            let modified = fs::metadata(path).and_then(|meta| meta.modified());
            modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > ABANDONED))
        });
        Ok(old)
    }

    pub(crate) fn path(&self, digest: &Digest) -> PathBuf {
        self.root.join(layout::blob(digest))
    }

    /// Keeps everything that `content` gives, to be known as `name`.
    pub(crate) fn write(&self, name: &ArtifactName, content: &mut dyn Read) -> Result<(Digest, u64), StoreError> {
        let waiting = self.waiting()?;
        let mut temp = tempfile::NamedTempFile::new_in(&waiting).map_err(io_error("create a file in", &waiting))?;
        let path = temp.path().to_owned();
        let (digest, size) = copy_hashed(name, content, temp.as_file_mut(), &path)?;
        let path = self.path(&digest);
        if !path.exists() {
            // Durable before it is visible: a record must never name a blob that a crash can lose.
            temp.as_file().sync_data().map_err(io_error("sync", temp.path()))?;
            let parent = path.parent().unwrap_or(&self.root);
            fs::create_dir_all(parent).map_err(io_error("create", parent))?;
            temp.persist(&path)
                .map_err(|error| io_error("create", &path)(error.error))?;
        }
        Ok((digest, size))
    }

    pub(crate) fn open(&self, digest: &Digest) -> Result<File, StoreError> {
        let path = self.path(digest);
        File::open(&path).map_err(io_error("open", &path))
    }
}

/// What is in a directory; nothing where there is none.
fn children(directory: &Path) -> Result<Vec<PathBuf>, StoreError> {
    match fs::read_dir(directory) {
        Ok(entries) => entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<_>>()
            .map_err(io_error("list", directory)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(io_error("list", directory)(error)),
    }
}

/// Copies to the end, and tells digest and size. What the reader says is told apart from what the disk says.
pub(crate) fn copy_hashed(
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
