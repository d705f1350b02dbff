//! Blobs on a local disk: files under their digest, written once.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use skillbox_model::Digest;

use crate::error::io_error;
use crate::{ArtifactName, StoreError, layout};

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
