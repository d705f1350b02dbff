//! Objects with keys of the caller's choice, on a local disk or a shared file system.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::PathBuf;

use skillbox_model::Digest;

use crate::blobs::BlobDirectory;
use crate::content::Content;
use crate::error::io_error;
use crate::local_store::LocalStore;
use crate::{ArtifactName, CheckedContent, ObjectKey, StoreError};

impl LocalStore {
    pub(crate) fn create_object(&self, key: &ObjectKey, content: &[u8]) -> Result<bool, StoreError> {
        let path = self.object_path(key);
        let parent = path.parent().unwrap_or(self.root());
        fs::create_dir_all(parent).map_err(io_error("create", parent))?;
        let temp_directory = self.blobs().temp_directory()?;
        let mut temp =
            tempfile::NamedTempFile::new_in(&temp_directory).map_err(io_error("create a file in", &temp_directory))?;
        let written = temp.write_all(content).and_then(|()| temp.as_file().sync_data());
        written.map_err(io_error("write to", temp.path()))?;
        // A hard link appears with its whole content, and never replaces an existing file.
        match fs::hard_link(temp.path(), &path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            Err(error) => return Err(io_error("create", &path)(error)),
        }
        let directory = File::open(parent).map_err(io_error("open", parent))?;
        directory.sync_all().map_err(io_error("sync", parent))?;
        Ok(true)
    }

    pub(crate) fn read_object(&self, key: &ObjectKey, max_bytes: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.object_path(key);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_error("open", &path)(error)),
        };
        let mut content = Vec::new();
        let read = file.take(max_bytes.saturating_add(1)).read_to_end(&mut content);
        read.map_err(io_error("read", &path))?;
        if content.len() as u64 > max_bytes {
            let too_large = io::Error::other(format!("it has more than {max_bytes} bytes"));
            return Err(io_error("read", &path)(too_large));
        }
        Ok(Some(content))
    }

    pub(crate) fn has_object(&self, key: &ObjectKey) -> Result<bool, StoreError> {
        let path = self.object_path(key);
        path.try_exists().map_err(io_error("inspect", &path))
    }

    pub(crate) fn list_objects(&self, prefix: &ObjectKey) -> Result<Vec<String>, StoreError> {
        let path = self.object_path(prefix);
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io_error("list", &path)(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(io_error("list", &path))?;
            names.extend(entry.file_name().into_string());
        }
        Ok(names)
    }

    pub(crate) fn remove_object(&self, key: &ObjectKey) -> Result<(), StoreError> {
        let path = self.object_path(key);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("remove", &path)(error)),
            _ => Ok(()),
        }
    }

    pub(crate) fn put_content(
        &self,
        prefix: &ObjectKey,
        name: &ArtifactName,
        content: &mut dyn Read,
    ) -> Result<(Digest, u64), StoreError> {
        self.content_of(prefix).write(name, content)
    }

    pub(crate) fn open_content(&self, prefix: &ObjectKey, digest: &Digest) -> Result<CheckedContent, StoreError> {
        let file = self.content_of(prefix).open(digest)?;
        Ok(CheckedContent::new(Content::File(file), *digest))
    }

    /// The content below a prefix is separate from that of the artifacts, so the garbage collector does not remove it.
    fn content_of(&self, prefix: &ObjectKey) -> BlobDirectory {
        BlobDirectory::new(self.object_path(prefix))
    }

    fn object_path(&self, key: &ObjectKey) -> PathBuf {
        self.root().join(key.as_str())
    }
}
