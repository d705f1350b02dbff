//! The store of sealed environments: one directory for each digest, written once, verified before its first use after a
//! start of the host.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{CWD, Mode, OFlags};
use serde::{Deserialize, Serialize};
use skillbox_executor::CancelToken;
use skillbox_executor::snapshot::{UseLock, remove_if_unused};
use skillbox_executor::workspace::remove_tree;
use skillbox_model::Digest;

use crate::lock::Identity;
use crate::tree::{TreeEntry, TreeError, TreeLimits, copy_sealed, read_entries};

/// Stores environments below one directory of the host.
#[derive(Clone, Debug)]
pub struct EnvironmentStore {
    root: PathBuf,
    limits: TreeLimits,
}

/// An environment that stays in the store while this value exists.
#[derive(Debug)]
pub struct SealedEnvironment {
    /// Its digest.
    pub digest: Digest,
    /// What is installed in it.
    pub identity: Identity,
    tree: OwnedFd,
    node_modules: Option<OwnedFd>,
    _use: UseLock,
}

/// One environment of the store.
#[derive(Clone, Debug, Serialize)]
pub struct StoredEnvironment {
    /// Its digest.
    pub digest: Digest,
    /// Which languages have packages: `python`, `node` or `python+node`.
    pub kind: &'static str,
    /// The number of packages.
    pub packages: usize,
    /// The bytes of its files.
    pub bytes: u64,
    /// When a run last used it, in seconds since 1970, to the hour.
    pub last_use: u64,
}

/// The exclusive right to build one environment.
#[derive(Debug)]
pub struct BuildLock {
    _file: File,
}

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentStoreError {
    /// A file of the store cannot be read or written.
    #[error("cannot {action} {} in the store of environments", path.display())]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The files of an environment cannot be copied or read.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The caller cancelled the run while another process built the environment.
    #[error("cancelled while another process built the environment")]
    Cancelled,
    /// Another process built the environment for too long.
    #[error("another process is still building the environment")]
    Busy,
}

/// The file beside the tree that lists everything in it.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    digest: Digest,
    identity: Identity,
    entries: Vec<TreeEntry>,
}

const TREE: &str = "tree";
const MANIFEST: &str = "manifest.json";
/// What every use of an environment reads. The manifest has thousands of entries.
const IDENTITY: &str = "identity.json";
const DECLARATIONS: &str = "declarations";
const PARTIAL_PREFIX: &str = "partial-";
/// The age after which an unfinished environment counts as abandoned.
const ABANDONED_AFTER: Duration = Duration::from_secs(3600);
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(50);

impl EnvironmentStore {
    /// Creates a store below `root`. The first environment creates the directory.
    pub fn new(root: impl Into<PathBuf>, limits: TreeLimits) -> Self {
        Self {
            root: root.into(),
            limits,
        }
    }

    /// The environment that was built for this declaration, if it is stored.
    pub fn find(&self, declaration: &Digest) -> Result<Option<SealedEnvironment>, EnvironmentStoreError> {
        let path = self.declaration_path(declaration);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("read", &path)(error)),
        };
        // A crash can leave an empty file. The environment is then built again.
        match Digest::parse(text.trim()) {
            Ok(digest) => self.open(&digest),
            Err(_) => Ok(None),
        }
    }

    /// Opens an environment by its digest. One whose files are damaged is removed, and counts as missing.
    pub fn open(&self, digest: &Digest) -> Result<Option<SealedEnvironment>, EnvironmentStoreError> {
        let path = self.environment_path(digest);
        if !path.exists() {
            return Ok(None);
        }
        let use_lock = UseLock::take(&self.use_path(digest)).map_err(failed("lock", &path))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let tree = match rustix::fs::open(path.join(TREE), flags, Mode::empty()) {
            Ok(tree) => tree,
            // It was removed after the check above.
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(error) => return Err(failed("open", &path)(error.into())),
        };
        let identity = if use_lock.is_verified() {
            read_identity(&path).filter(|identity| identity.digest() == *digest)
        } else {
            self.verify(&path, digest, tree.as_fd())
        };
        let Some(identity) = identity else {
            tracing::warn!(%digest, "an environment is damaged, and is removed");
            drop((use_lock, tree));
            self.remove(digest)?;
            return Ok(None);
        };
        use_lock.set_verified().map_err(failed("write", &path))?;
        let node_modules = match rustix::fs::openat(&tree, "node_modules", flags, Mode::empty()) {
            Ok(directory) => Some(directory),
            Err(rustix::io::Errno::NOENT) => None,
            Err(error) => return Err(failed("open", &path)(error.into())),
        };
        Ok(Some(SealedEnvironment {
            digest: *digest,
            identity,
            tree,
            node_modules,
            _use: use_lock,
        }))
    }

    /// Waits until no other process builds the environment of this declaration. The caller then looks for it again.
    pub fn lock_build(
        &self,
        declaration: &Digest,
        deadline: Instant,
        cancel: &CancelToken,
    ) -> Result<BuildLock, EnvironmentStoreError> {
        let directory = self.root.join(DECLARATIONS);
        create_private_directory(&directory)?;
        let path = directory.join(format!("{}.lock", declaration.hex()));
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path).map_err(failed("open", &path))?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(BuildLock { _file: file }),
                Err(TryLockError::WouldBlock) if cancel.is_cancelled() => return Err(EnvironmentStoreError::Cancelled),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return Err(EnvironmentStoreError::Busy),
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_POLL_INTERVAL),
                Err(TryLockError::Error(error)) => return Err(failed("lock", &path)(error)),
            }
        }
    }

    /// Copies a built tree into the store, and remembers it as the environment of the declaration. The environment
    /// appears in the store complete or not at all.
    pub fn seal(
        &self,
        declaration: &Digest,
        identity: Identity,
        built: BorrowedFd<'_>,
    ) -> Result<SealedEnvironment, EnvironmentStoreError> {
        let digest = identity.digest();
        let sealed = match self.open(&digest)? {
            Some(stored) => stored,
            None => {
                self.write(&digest, &identity, built)?;
                let missing = || failed("open", &self.environment_path(&digest))(io::ErrorKind::NotFound.into());
                self.open(&digest)?.ok_or_else(missing)?
            }
        };
        let path = self.declaration_path(declaration);
        let directory = self.root.join(DECLARATIONS);
        create_private_directory(&directory)?;
        let mut file = tempfile::NamedTempFile::new_in(&directory).map_err(failed("create a file in", &directory))?;
        io::Write::write_all(&mut file, digest.to_string().as_bytes()).map_err(failed("write", &path))?;
        file.persist(&path)
            .map_err(|error| failed("write", &path)(error.error))?;
        Ok(sealed)
    }

    fn write(&self, digest: &Digest, identity: &Identity, built: BorrowedFd<'_>) -> Result<(), EnvironmentStoreError> {
        create_private_directory(&self.root)?;
        let partial = tempfile::Builder::new()
            .prefix(PARTIAL_PREFIX)
            .tempdir_in(&self.root)
            .map_err(failed("create a directory in", &self.root))?;
        let tree = partial.path().join(TREE);
        fs::create_dir(&tree).map_err(failed("create", &tree))?;
        let open = File::open(&tree).map_err(failed("open", &tree))?;
        let copied = copy_sealed(built, open.as_fd(), self.limits);
        let entries = match copied {
            Ok(entries) => entries,
            Err(error) => {
                remove_directory(&partial.keep())?;
                return Err(error.into());
            }
        };
        rustix::fs::fchmod(&open, Mode::from_raw_mode(0o555)).map_err(|error| failed("write", &tree)(error.into()))?;
        let manifest = Manifest {
            digest: *digest,
            identity: identity.clone(),
            entries,
        };
        let files = [
            (MANIFEST, serde_json::to_vec(&manifest)),
            (IDENTITY, serde_json::to_vec(identity)),
        ];
        for (name, json) in files {
            let path = partial.path().join(name);
            fs::write(&path, json.expect("strings serialize")).map_err(failed("write", &path))?;
        }
        let target = self.environment_path(digest);
        let kept = partial.keep();
        match fs::rename(&kept, &target) {
            Ok(()) => Ok(()),
            // Another declaration led to the same environment at the same time.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => remove_directory(&kept),
            Err(error) => {
                let cleanup = remove_directory(&kept);
                cleanup.and(Err(failed("create", &target)(error)))
            }
        }
    }

    /// Compares the files with the manifest, and the manifest with the digest.
    fn verify(&self, path: &Path, digest: &Digest, tree: BorrowedFd<'_>) -> Option<Identity> {
        let manifest = read_manifest(path)?;
        let found = read_entries(tree, self.limits).ok()?;
        let is_right = manifest.digest == *digest && manifest.identity.digest() == *digest && manifest.entries == found;
        is_right.then_some(manifest.identity)
    }

    /// All environments.
    pub fn list(&self) -> Result<Vec<StoredEnvironment>, EnvironmentStoreError> {
        let mut stored = Vec::new();
        for name in self.names()? {
            let Some(digest) = name
                .strip_prefix("sha256-")
                .and_then(|hex| Digest::parse(&format!("sha256:{hex}")).ok())
            else {
                continue;
            };
            let Some(manifest) = read_manifest(&self.root.join(&name)) else {
                continue;
            };
            let sizes = manifest.entries.iter().map(|entry| match entry {
                TreeEntry::File { bytes, .. } => *bytes,
                _ => 0,
            });
            let used = fs::metadata(self.use_path(&digest)).and_then(|found| found.modified());
            let since = used
                .ok()
                .and_then(|used| used.duration_since(SystemTime::UNIX_EPOCH).ok());
            stored.push(StoredEnvironment {
                digest,
                kind: manifest.identity.kind(),
                packages: manifest.identity.package_count(),
                bytes: sizes.sum(),
                last_use: since.unwrap_or_default().as_secs(),
            });
        }
        stored.sort_by_key(|environment| std::cmp::Reverse(environment.last_use));
        Ok(stored)
    }

    /// Removes environments that no run uses and that are older than `max_age`, and then the longest unused ones until
    /// the rest has at most `max_bytes`. Returns what was removed.
    pub fn collect(&self, max_age: Duration, max_bytes: u64) -> Result<Vec<StoredEnvironment>, EnvironmentStoreError> {
        let now = SystemTime::now();
        let mut stored = self.list()?;
        stored.reverse();
        let mut total: u64 = stored.iter().map(|environment| environment.bytes).sum();
        let mut removed = Vec::new();
        for environment in stored {
            let last_use = SystemTime::UNIX_EPOCH + Duration::from_secs(environment.last_use);
            let age = now.duration_since(last_use).unwrap_or_default();
            if (age >= max_age || total > max_bytes) && self.remove(&environment.digest)? {
                total = total.saturating_sub(environment.bytes);
                removed.push(environment);
            }
        }
        self.remove_leftovers(now)?;
        Ok(removed)
    }

    /// Removes an environment, unless a run uses it.
    fn remove(&self, digest: &Digest) -> Result<bool, EnvironmentStoreError> {
        let path = self.environment_path(digest);
        let gone = self.root.join(format!("{PARTIAL_PREFIX}removed-{}", digest.hex()));
        let removed =
            remove_if_unused(&self.use_path(digest), || fs::rename(&path, &gone)).map_err(failed("remove", &path))?;
        if removed.is_some() {
            remove_directory(&gone)?;
        }
        Ok(removed.is_some())
    }

    /// Removes unfinished environments, and declarations whose environment does not exist.
    fn remove_leftovers(&self, now: SystemTime) -> Result<(), EnvironmentStoreError> {
        for name in self.names()? {
            let path = self.root.join(&name);
            let modified = fs::metadata(&path).and_then(|found| found.modified());
            let is_old = modified.is_ok_and(|time| now.duration_since(time).is_ok_and(|age| age > ABANDONED_AFTER));
            if name.starts_with(PARTIAL_PREFIX) && is_old {
                remove_directory(&path)?;
            }
        }
        let Ok(declarations) = fs::read_dir(self.root.join(DECLARATIONS)) else {
            return Ok(());
        };
        for entry in declarations.flatten() {
            let path = entry.path();
            if path.extension().is_some() {
                continue;
            }
            let digest = fs::read_to_string(&path)
                .ok()
                .and_then(|text| Digest::parse(text.trim()).ok());
            if !digest.is_some_and(|digest| self.environment_path(&digest).exists()) {
                fs::remove_file(&path).map_err(failed("remove", &path))?;
            }
        }
        Ok(())
    }

    fn names(&self) -> Result<Vec<String>, EnvironmentStoreError> {
        match fs::read_dir(&self.root) {
            Ok(entries) => Ok(entries
                .flatten()
                .filter_map(|entry| entry.file_name().into_string().ok())
                .collect()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(failed("list", &self.root)(error)),
        }
    }

    fn environment_path(&self, digest: &Digest) -> PathBuf {
        self.root.join(format!("sha256-{}", digest.hex()))
    }

    fn use_path(&self, digest: &Digest) -> PathBuf {
        self.root.join(format!("sha256-{}.use", digest.hex()))
    }

    fn declaration_path(&self, declaration: &Digest) -> PathBuf {
        self.root.join(DECLARATIONS).join(declaration.hex())
    }
}

impl SealedEnvironment {
    /// The directory that runs see as `/env`.
    pub fn tree(&self) -> BorrowedFd<'_> {
        self.tree.as_fd()
    }

    /// The packages of Node, if there are any.
    pub fn node_modules(&self) -> Option<BorrowedFd<'_>> {
        self.node_modules.as_ref().map(AsFd::as_fd)
    }
}

fn read_manifest(path: &Path) -> Option<Manifest> {
    serde_json::from_slice(&fs::read(path.join(MANIFEST)).ok()?).ok()
}

/// Reads the identity of an environment whose files are known to be right.
fn read_identity(path: &Path) -> Option<Identity> {
    serde_json::from_slice(&fs::read(path.join(IDENTITY)).ok()?).ok()
}

fn create_private_directory(path: &Path) -> Result<(), EnvironmentStoreError> {
    fs::create_dir_all(path).map_err(failed("create", path))
}

/// Removes a directory with read-only directories below it.
fn remove_directory(path: &Path) -> Result<(), EnvironmentStoreError> {
    use std::os::unix::ffi::OsStrExt;
    remove_tree(CWD, path.as_os_str().as_bytes()).map_err(|error| failed("remove", path)(error.into()))
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> EnvironmentStoreError {
    let path = path.to_owned();
    move |source| EnvironmentStoreError::Io { action, path, source }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
