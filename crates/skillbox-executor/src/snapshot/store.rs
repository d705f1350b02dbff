//! The snapshot store: one directory for each digest, written once.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use sha2::{Digest as _, Sha256};
use skillbox_model::{Digest, RelPath, SkillName};

use super::hidden_entries::{HiddenEntries, is_snapshot_of};
use super::retention::SnapshotRetention;
use super::use_lock::UseLock;

/// The age after which an unfinished snapshot counts as abandoned by its writer.
const ABANDONED_AFTER: Duration = Duration::from_secs(3600);

/// Stores snapshots below one directory of the host.
#[derive(Clone, Debug)]
pub struct SnapshotStore {
    root: PathBuf,
    pub(super) retention: SnapshotRetention,
}

/// The open snapshot of one skill.
#[derive(Debug)]
pub struct Snapshot {
    digest: Digest,
    visible_digest: Digest,
    root: OwnedFd,
    /// Keeps the snapshot from being removed.
    _use: UseLock,
}

/// Why a snapshot could not be written or opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {} in the snapshot store", path.display())]
pub struct SnapshotError {
    /// The attempted operation.
    pub action: &'static str,
    /// The affected path.
    pub path: PathBuf,
    /// The cause.
    pub source: io::Error,
}

impl SnapshotError {
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { action, path, source }
    }
}

impl SnapshotStore {
    /// Creates a store below `root`. The first snapshot creates the directory.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            retention: SnapshotRetention::default(),
        }
    }

    /// The same store with other rules for the removal of old snapshots.
    #[must_use]
    pub fn with_retention(self, retention: SnapshotRetention) -> Self {
        Self { retention, ..self }
    }

    /// The rules for the removal of old snapshots.
    pub fn retention(&self) -> &SnapshotRetention {
        &self.retention
    }

    /// Opens the snapshot with this digest, if it exists.
    pub fn open(&self, digest: &Digest) -> Result<Option<Snapshot>, SnapshotError> {
        let path = self.snapshot_path(digest);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(root) => self.open_directory(digest, root),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(SnapshotError::io("open", &path)(error.into())),
        }
    }

    /// Marks the snapshot as in use, and verifies it unless that was done since the host started.
    fn open_directory(&self, digest: &Digest, root: OwnedFd) -> Result<Option<Snapshot>, SnapshotError> {
        let path = self.snapshot_path(digest);
        let use_lock = UseLock::take(&self.use_path(digest)).map_err(SnapshotError::io("lock", &path))?;
        // It may have been removed after its directory was opened.
        if !path.exists() {
            return Ok(None);
        }
        let hidden = HiddenEntries::read(&self.hidden_entries_path(digest));
        if !use_lock.is_verified() {
            let is_right = hidden
                .as_ref()
                .is_ok_and(|hidden| is_snapshot_of(digest, &path, hidden.as_ref()).unwrap_or(false));
            if !is_right {
                tracing::warn!(%digest, "a snapshot is damaged, probably by a crash of the host, and is written again");
                drop((use_lock, root));
                self.remove_if_unused(digest)?;
                return Ok(None);
            }
            use_lock.set_verified().map_err(SnapshotError::io("write", &path))?;
        }
        let hidden = hidden.map_err(SnapshotError::io("read", &self.hidden_entries_path(digest)))?;
        Ok(Some(Snapshot {
            digest: *digest,
            // It is the digest of the skill if no entry is hidden.
            visible_digest: hidden.map_or(*digest, |hidden| hidden.visible),
            root,
            _use: use_lock,
        }))
    }

    /// Opens a directory that contains one empty directory for each of these skills and nothing else. It is mounted
    /// read-only at `/workspace/skills`, so a script cannot create anything next to the skills.
    pub fn open_mount_points(&self, names: &[&SkillName]) -> Result<OwnedFd, SnapshotError> {
        let joined: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
        // Names contain no slash, so two different lists never give the same text.
        let digest = Digest::from_sha256(Sha256::digest(joined.join("/")).into());
        let path = self.root.join(MOUNT_POINTS_DIRECTORY).join(&digest.hex()[..32]);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if let Ok(open) = rustix::fs::open(&path, flags, Mode::empty()) {
            return Ok(open);
        }
        self.create_mount_points(&path, names)?;
        rustix::fs::open(&path, flags, Mode::empty()).map_err(|error| SnapshotError::io("open", &path)(error.into()))
    }

    /// Creates the directory under a temporary name, and renames it when it is complete.
    fn create_mount_points(&self, path: &Path, names: &[&SkillName]) -> Result<(), SnapshotError> {
        let parent = self.root.join(MOUNT_POINTS_DIRECTORY);
        fs::create_dir_all(&parent).map_err(SnapshotError::io("create", &parent))?;
        let temporary = tempfile::Builder::new()
            .prefix(PARTIAL_PREFIX)
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir_in(&parent)
            .map_err(SnapshotError::io("create a directory in", &parent))?;
        for name in names {
            let mount_point = temporary.path().join(name.as_str());
            fs::create_dir(&mount_point).map_err(SnapshotError::io("create", &mount_point))?;
        }
        match fs::rename(temporary.path(), path) {
            // Another run created the same directory first.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            renamed => renamed.map_err(SnapshotError::io("create", path)),
        }
    }

    /// Removes the remains of interrupted writers.
    pub fn remove_abandoned(&self) -> Result<usize, SnapshotError> {
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(SnapshotError::io("list", &self.root)(error)),
        };
        let mut removed = 0;
        for entry in entries.flatten() {
            let is_partial = entry
                .file_name()
                .as_encoded_bytes()
                .starts_with(PARTIAL_PREFIX.as_bytes());
            let is_old = entry.metadata().and_then(|meta| meta.modified()).is_ok_and(|time| {
                SystemTime::now()
                    .duration_since(time)
                    .is_ok_and(|age| age > ABANDONED_AFTER)
            });
            if is_partial && is_old {
                let path = entry.path();
                fs::remove_dir_all(&path).map_err(SnapshotError::io("remove", &path))?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// The file beside a snapshot with hidden entries.
    pub(super) fn hidden_entries_path(&self, digest: &Digest) -> PathBuf {
        self.root.join(format!("sha256-{}.hidden", digest.hex()))
    }

    /// The file that marks a snapshot as in use.
    pub(super) fn use_path(&self, digest: &Digest) -> PathBuf {
        self.root.join(format!("sha256-{}.use", digest.hex()))
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn snapshot_path(&self, digest: &Digest) -> PathBuf {
        self.root.join(format!("sha256-{}", digest.hex()))
    }
}

/// Contains the directories with mount points.
const MOUNT_POINTS_DIRECTORY: &str = "mount-points";

/// The prefix of the names of unfinished directories.
pub(super) const PARTIAL_PREFIX: &str = "partial-";

impl Snapshot {
    /// The digest of the skill.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The digest of the visible files, without the links to the workspace. It differs from the skill's digest only if
    /// the skill contains entries with the names of these links, which the links hide.
    pub(crate) fn visible_digest(&self) -> [u8; 32] {
        *self.visible_digest.as_bytes()
    }

    /// The directory of the snapshot, which a sandbox mounts.
    pub fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Opens a file of the skill. Symbolic links within the skill are followed. Links that lead out of it are refused.
    pub fn open_file(&self, path: &RelPath) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(self.open_beneath(path, flags)?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(file)
    }

    /// Opens a directory of the skill, with the same rule for links.
    pub fn open_directory(&self, path: &RelPath) -> io::Result<OwnedFd> {
        self.open_beneath(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC)
    }

    /// Reads the first bytes of a file, enough for an interpreter line.
    pub fn read_head(&self, path: &RelPath) -> io::Result<Vec<u8>> {
        let mut head = Vec::new();
        self.open_file(path)?.take(4096).read_to_end(&mut head)?;
        Ok(head)
    }

    fn open_beneath(&self, path: &RelPath, flags: OFlags) -> io::Result<OwnedFd> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.root, path.as_path(), flags, Mode::empty(), resolve) {
            // Linux before 5.6 has no openat2. The fallback follows no links at all, which is stricter.
            Err(rustix::io::Errno::NOSYS) => {
                let (parent, name) = crate::workspace::open_parent(self.root(), path)?;
                Ok(rustix::fs::openat(
                    parent,
                    name,
                    flags | OFlags::NOFOLLOW,
                    Mode::empty(),
                )?)
            }
            opened => Ok(opened?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_callers_always_find_complete_mount_points() {
        let names: Vec<SkillName> = (0..20)
            .map(|number| SkillName::parse(format!("skill-{number}")).unwrap())
            .collect();
        let names: Vec<&SkillName> = names.iter().collect();
        for _ in 0..50 {
            let directory = tempfile::tempdir().unwrap();
            let store = SnapshotStore::new(directory.path());
            let barrier = std::sync::Barrier::new(4);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        barrier.wait();
                        let mount_points = store.open_mount_points(&names).unwrap();
                        for name in &names {
                            rustix::fs::statat(&mount_points, name.as_str(), rustix::fs::AtFlags::empty()).unwrap();
                        }
                    });
                }
            });
            let remaining = fs::read_dir(directory.path().join(MOUNT_POINTS_DIRECTORY))
                .unwrap()
                .count();
            assert_eq!(remaining, 1, "no unfinished directory remains");
        }
    }
}
