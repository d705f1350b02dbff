//! The config files of working directories that the user trusts, by digest.
//!
//! The list is in the user's config directory: outside every project, and independent of settings, so that a project file
//! cannot choose the list that decides about it. A digest covers the config file and the profiles that it names: if any
//! of them changes, the trust ends.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use skillbox_model::Digest;

const FILE_NAME: &str = "trusted-files.json";
/// Ten times the size of a config file with every setting.
pub(super) const MAX_CONFIG_BYTES: u64 = 1 << 20;
const MAX_PROFILES: usize = 1_000;
/// Many times more projects than a person trusts.
const MAX_LIST_BYTES: u64 = 16 << 20;

/// One trusted file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedFile {
    /// The place of the file: its directory with all links resolved, and its name.
    pub path: PathBuf,
    /// The digest of its content and of its profiles.
    pub digest: Digest,
    /// When the user trusted it, in seconds since 1970.
    pub trusted_at: u64,
}

/// The stored list.
#[derive(Debug, Default, Serialize, Deserialize)]
struct StoredList {
    files: Vec<TrustedFile>,
}

/// The list of trusted files of one user.
#[derive(Clone, Debug)]
pub struct TrustedFiles {
    path: PathBuf,
}

impl TrustedFiles {
    /// The list in the user's config directory.
    pub fn in_config_dir(config_dir: &Path) -> Self {
        Self {
            path: config_dir.join(FILE_NAME),
        }
    }

    /// Every trusted file. A list that does not exist is empty.
    pub fn list(&self) -> io::Result<Vec<TrustedFile>> {
        let bytes = match read_bounded(&self.path, MAX_LIST_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            read => read?,
        };
        let stored: StoredList = serde_json::from_slice(&bytes)?;
        Ok(stored.files)
    }

    /// Whether this file is trusted with this digest. A list that cannot be read trusts nothing.
    pub fn contains(&self, path: &Path, digest: &Digest) -> bool {
        let Ok(path) = place_of(path) else { return false };
        let files = self.list().unwrap_or_default();
        files.iter().any(|file| file.path == path && file.digest == *digest)
    }

    /// Trusts a file with its current digest, and forgets its earlier one.
    pub fn add(&self, path: &Path, digest: Digest) -> io::Result<TrustedFile> {
        let added = TrustedFile {
            path: place_of(path)?,
            digest,
            trusted_at: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |age| age.as_secs()),
        };
        self.change(|files| {
            files.retain(|file| file.path != added.path);
            files.push(added.clone());
        })?;
        Ok(added)
    }

    /// Forgets a file, and returns whether it was trusted.
    pub fn remove(&self, path: &Path) -> io::Result<bool> {
        // The file may no longer exist, so the path as given counts too.
        let resolved = place_of(path).unwrap_or_else(|_| path.to_owned());
        let mut is_removed = false;
        self.change(|files| {
            let count = files.len();
            files.retain(|file| file.path != resolved && file.path != path);
            is_removed = files.len() < count;
        })?;
        Ok(is_removed)
    }

    /// Replaces the list, under a lock that concurrent changes wait for.
    fn change(&self, apply: impl FnOnce(&mut Vec<TrustedFile>)) -> io::Result<()> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(directory)?;
        let lock = File::open(directory)?;
        lock.lock()?;
        let mut files = self.list()?;
        apply(&mut files);
        let mut temporary = tempfile::Builder::new()
            .permissions(fs::Permissions::from_mode(0o600))
            .tempfile_in(directory)?;
        temporary.write_all(&serde_json::to_vec_pretty(&StoredList { files })?)?;
        temporary.as_file().sync_all()?;
        temporary.persist(&self.path)?;
        Ok(())
    }
}

/// The directory of a file with all links resolved, and the file's name. A link to a trusted file is not that file: the
/// relative paths in it would start from the directory of the link.
fn place_of(path: &Path) -> io::Result<PathBuf> {
    let no_name = || io::Error::new(io::ErrorKind::InvalidInput, "not the path of a file");
    let name = path.file_name().ok_or_else(no_name)?;
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    Ok(directory.canonicalize()?.join(name))
}

/// The digest of a config file's text, and of the profiles in the directory that it names.
pub(super) fn config_digest(text: &[u8], profiles: Option<&Path>) -> io::Result<Digest> {
    let mut hasher = Sha256::new();
    let mut add = |part: &[u8]| {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    };
    add(text);
    if let Some(directory) = profiles {
        for path in profile_files(directory)? {
            add(path.as_os_str().as_encoded_bytes());
            add(&read_bounded(&path, MAX_CONFIG_BYTES)?);
        }
    }
    Ok(Digest::from_sha256(hasher.finalize().into()))
}

/// The files that profiles are read from, sorted. A directory that does not exist has none.
fn profile_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "yaml" || extension == "yml")
        {
            files.push(path);
        }
        if files.len() > MAX_PROFILES {
            let message = format!("{} contains more than {MAX_PROFILES} profiles", directory.display());
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
    }
    files.sort();
    Ok(files)
}

/// Reads a regular file of limited size. Opening does not wait for the writer of a FIFO.
pub(super) fn read_bounded(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut options = fs::OpenOptions::new();
    options.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let file = options.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        let message = format!("larger than {max_bytes} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_ends_with_a_change_of_the_file_or_its_profiles() {
        let directory = tempfile::tempdir().unwrap();
        let (file, profiles) = (
            directory.path().join("skillbox.toml"),
            directory.path().join("profiles"),
        );
        fs::write(&file, "x").unwrap();
        fs::create_dir(&profiles).unwrap();
        fs::write(profiles.join("default.yaml"), "name: default").unwrap();
        let list = TrustedFiles::in_config_dir(&directory.path().join("config"));
        let digest = config_digest(b"x", Some(&profiles)).unwrap();
        assert!(!list.contains(&file, &digest));
        list.add(&file, digest).unwrap();
        assert!(list.contains(&file, &digest));
        assert!(!list.contains(&file, &config_digest(b"y", Some(&profiles)).unwrap()));
        fs::write(profiles.join("default.yaml"), "name: other").unwrap();
        assert!(!list.contains(&file, &config_digest(b"x", Some(&profiles)).unwrap()));
        // The same content elsewhere is another file.
        let copy = directory.path().join("copy.toml");
        fs::copy(&file, &copy).unwrap();
        assert!(!list.contains(&copy, &digest));
        // So is a link to it in another directory, where relative values would start.
        let elsewhere = directory.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&file, elsewhere.join("skillbox.toml")).unwrap();
        assert!(!list.contains(&elsewhere.join("skillbox.toml"), &digest));
        // A link to the directory leads to the same place.
        std::os::unix::fs::symlink(directory.path(), elsewhere.join("project")).unwrap();
        assert!(list.contains(&elsewhere.join("project/skillbox.toml"), &digest));
        assert!(list.remove(&file).unwrap());
        assert!(!list.remove(&file).unwrap());
        assert!(!list.contains(&file, &digest));
    }

    #[test]
    fn a_damaged_list_trusts_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("skillbox.toml");
        fs::write(&file, "x").unwrap();
        let list = TrustedFiles::in_config_dir(directory.path());
        let digest = config_digest(b"x", None).unwrap();
        list.add(&file, digest).unwrap();
        fs::write(directory.path().join(FILE_NAME), "{").unwrap();
        assert!(!list.contains(&file, &digest));
        assert!(list.add(&file, digest).is_err(), "a damaged list is not replaced");
    }
}
