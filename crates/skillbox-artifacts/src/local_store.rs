//! The store on a local disk.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::blobs::BlobDirectory;
use crate::content::Content;
use crate::error::io_error;
use crate::record::now_unix_ms;
use crate::{
    Artifact, ArtifactMetadata, ArtifactName, ArtifactRef, CheckedContent, RangeContent, Scope, StoreError, layout,
};

/// A store below one directory. Threads and processes can share it.
#[derive(Clone, Debug)]
pub(crate) struct LocalStore {
    blobs: BlobDirectory,
    root: PathBuf,
}

impl LocalStore {
    /// Creates a store below `root`. The first file creates the directory.
    pub(crate) fn new(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self {
            blobs: BlobDirectory::new(&root),
            root,
        }
    }

    /// The same store with a quota for its content.
    pub(crate) fn with_quota(self, max_bytes: u64) -> Self {
        Self {
            blobs: self.blobs.with_quota(max_bytes),
            ..self
        }
    }

    /// The store of a tenant, with a quota of its own.
    pub(crate) fn for_tenant(&self, tenant: &str) -> Self {
        let store = Self::new(self.root.join(layout::TENANTS).join(layout::escape(tenant)));
        match self.blobs.max_bytes() {
            Some(max_bytes) => store.with_quota(max_bytes),
            None => store,
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn blobs(&self) -> &BlobDirectory {
        &self.blobs
    }

    pub(crate) fn put(
        &self,
        scope: &Scope,
        name: &ArtifactName,
        content: &mut dyn Read,
        metadata: ArtifactMetadata,
    ) -> Result<Artifact, StoreError> {
        // Keeps the garbage collector from removing the content before its record exists.
        let _lock = self.blobs.lock_for_write()?;
        let (sha256, size_bytes) = self.blobs.write(name, content)?;
        let mut artifact = Artifact {
            name: name.clone(),
            version: self.next_version(scope, name)?,
            size_bytes,
            sha256,
            mime_type: metadata.mime_type,
            run_id: metadata.run_id,
            created_unix_ms: now_unix_ms(),
        };
        self.claim_version(scope, &mut artifact)?;
        Ok(artifact)
    }

    pub(crate) fn resolve(&self, scope: &Scope, reference: &ArtifactRef) -> Result<Artifact, StoreError> {
        let missing = || StoreError::Missing(reference.clone());
        let version = match reference.version {
            Some(version) => version,
            None => *self
                .stored_versions(scope, &reference.name)?
                .last()
                .ok_or_else(missing)?,
        };
        self.read_record(scope, &reference.name, version)?.ok_or_else(missing)
    }

    pub(crate) fn open(&self, artifact: &Artifact) -> Result<CheckedContent, StoreError> {
        let file = self.blobs.open(&artifact.sha256)?;
        Ok(CheckedContent::new(Content::File(file), artifact.sha256))
    }

    pub(crate) fn open_checked_file(&self, artifact: &Artifact) -> Result<File, StoreError> {
        let path = self.blobs.blob_path(&artifact.sha256);
        let mut content = self.open(artifact)?;
        io::copy(&mut content, &mut io::sink()).map_err(io_error("read", &path))?;
        self.blobs.open(&artifact.sha256)
    }

    pub(crate) fn open_range(&self, artifact: &Artifact, range: &Range<u64>) -> Result<RangeContent, StoreError> {
        let mut file = self.blobs.open(&artifact.sha256)?;
        let path = self.blobs.blob_path(&artifact.sha256);
        file.seek(SeekFrom::Start(range.start))
            .map_err(io_error("read", &path))?;
        Ok(RangeContent::new(Content::File(file), range.end - range.start))
    }

    pub(crate) fn versions(&self, scope: &Scope, name: &ArtifactName) -> Result<Vec<Artifact>, StoreError> {
        let mut found = Vec::new();
        for version in self.stored_versions(scope, name)? {
            // A record that is missing here was removed after the versions were listed.
            found.extend(self.read_record(scope, name, version)?);
        }
        Ok(found)
    }

    pub(crate) fn list(&self, scope: &Scope) -> Result<Vec<Artifact>, StoreError> {
        let mut names = Vec::new();
        collect_names(&self.root.join(layout::scope_path(scope)), "", &mut names)?;
        names.sort_unstable();
        let mut found = Vec::new();
        for name in names {
            if let Some(version) = self.stored_versions(scope, &name)?.last() {
                found.extend(self.read_record(scope, &name, *version)?);
            }
        }
        Ok(found)
    }

    pub(crate) fn remove(&self, scope: &Scope, reference: &ArtifactRef) -> Result<Vec<Artifact>, StoreError> {
        let removed = match reference.version {
            Some(_) => vec![self.resolve(scope, reference)?],
            None => self.versions(scope, &reference.name)?,
        };
        if removed.is_empty() {
            return Err(StoreError::Missing(reference.clone()));
        }
        let directory = self.root.join(layout::versions_path(scope, &reference.name));
        for artifact in &removed {
            let mark = directory.join(layout::version_file(artifact.version, layout::REMOVED_EXTENSION));
            File::create(&mark).map_err(io_error("create", &mark))?;
            let record = directory.join(layout::version_file(artifact.version, layout::RECORD_EXTENSION));
            fs::remove_file(&record).map_err(io_error("remove", &record))?;
        }
        Ok(removed)
    }

    pub(crate) fn remove_scope(&self, scope: &Scope) -> Result<bool, StoreError> {
        let path = self.root.join(layout::scope_path(scope));
        match fs::remove_dir_all(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(io_error("remove", &path)(error)),
        }
    }

    /// Creates the record. If another writer claimed the version first, tries the next one.
    fn claim_version(&self, scope: &Scope, artifact: &mut Artifact) -> Result<(), StoreError> {
        let directory = self.root.join(layout::versions_path(scope, &artifact.name));
        fs::create_dir_all(&directory).map_err(io_error("create", &directory))?;
        loop {
            let path = directory.join(layout::version_file(artifact.version, layout::RECORD_EXTENSION));
            let removed = directory.join(layout::version_file(artifact.version, layout::REMOVED_EXTENSION));
            let text = serde_json::to_vec_pretty(artifact).map_err(record_error(&path))?;
            // A hard link appears with its whole content, and never replaces an existing file.
            let temp_directory = self.blobs.temp_directory()?;
            let mut temp = tempfile::NamedTempFile::new_in(&temp_directory)
                .map_err(io_error("create a file in", &temp_directory))?;
            temp.write_all(&text).map_err(io_error("write to", temp.path()))?;
            match fs::hard_link(temp.path(), &path) {
                Ok(()) if !removed.exists() => return Ok(()),
                Ok(()) => fs::remove_file(&path).map_err(io_error("remove", &path))?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(io_error("create", &path)(error)),
            }
            artifact.version += 1;
        }
    }

    fn next_version(&self, scope: &Scope, name: &ArtifactName) -> Result<u64, StoreError> {
        let used = self.used_versions(scope, name)?;
        Ok(used.iter().map(|(version, _)| version + 1).max().unwrap_or(0))
    }

    /// The versions that are not removed, oldest first.
    fn stored_versions(&self, scope: &Scope, name: &ArtifactName) -> Result<Vec<u64>, StoreError> {
        let mut stored: Vec<u64> = self
            .used_versions(scope, name)?
            .into_iter()
            .filter_map(|(version, is_stored)| is_stored.then_some(version))
            .collect();
        stored.sort_unstable();
        Ok(stored)
    }

    /// All version numbers that were ever used, and whether each is still stored.
    fn used_versions(&self, scope: &Scope, name: &ArtifactName) -> Result<Vec<(u64, bool)>, StoreError> {
        let path = self.root.join(layout::versions_path(scope, name));
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io_error("list", &path)(error)),
        };
        let mut used = Vec::new();
        for entry in entries {
            let entry = entry.map_err(io_error("list", &path))?;
            if let Some((version, extension)) = entry.file_name().to_str().and_then(layout::parse_version_file) {
                used.push((version, extension == layout::RECORD_EXTENSION));
            }
        }
        Ok(used)
    }

    fn read_record(&self, scope: &Scope, name: &ArtifactName, version: u64) -> Result<Option<Artifact>, StoreError> {
        let directory = self.root.join(layout::versions_path(scope, name));
        read_record_file(&directory.join(layout::version_file(version, layout::RECORD_EXTENSION)))
    }
}

/// Calls `visit` for every record below a directory, of all scopes.
pub(crate) fn for_each_record(directory: &Path, visit: &mut dyn FnMut(&Artifact)) -> Result<(), StoreError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io_error("list", directory)(error)),
    };
    for entry in entries {
        let entry = entry.map_err(io_error("list", directory))?;
        let (path, name) = (entry.path(), entry.file_name());
        if entry.file_type().map_err(io_error("inspect", &path))?.is_dir() {
            for_each_record(&path, visit)?;
        } else if name
            .to_str()
            .and_then(layout::parse_version_file)
            .is_some_and(|(_, kind)| kind == layout::RECORD_EXTENSION)
        {
            read_record_file(&path)?.iter().for_each(&mut *visit);
        }
    }
    Ok(())
}

fn read_record_file(path: &Path) -> Result<Option<Artifact>, StoreError> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("read", path)(error)),
    };
    serde_json::from_slice(&text).map(Some).map_err(record_error(path))
}

/// Finds the names below a scope: every directory that contains versions.
fn collect_names(directory: &Path, prefix: &str, names: &mut Vec<ArtifactName>) -> Result<(), StoreError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io_error("list", directory)(error)),
    };
    let mut holds_versions = false;
    for entry in entries {
        let entry = entry.map_err(io_error("list", directory))?;
        let file_name = entry.file_name();
        let Some(text) = file_name.to_str() else { continue };
        holds_versions |= layout::parse_version_file(text).is_some();
        if let Some(part) = layout::name_part(text) {
            let below = if prefix.is_empty() {
                part.to_owned()
            } else {
                format!("{prefix}/{part}")
            };
            collect_names(&entry.path(), &below, names)?;
        }
    }
    if holds_versions {
        names.extend(ArtifactName::parse(prefix));
    }
    Ok(())
}

fn record_error(path: &Path) -> impl FnOnce(serde_json::Error) -> StoreError {
    let location = path.display().to_string();
    move |source| StoreError::Record { location, source }
}
