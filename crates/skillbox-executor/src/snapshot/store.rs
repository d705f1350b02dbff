//! The store of frozen skills: one directory for each digest, written once.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use sha2::{Digest as _, Sha256};
use skillbox_model::{Digest, RelPath, SkillName};

use super::SnapshotWriter;

/// A half-written snapshot older than this belongs to nobody.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Frozen skills below one directory of the host.
#[derive(Clone, Debug)]
pub struct SnapshotStore {
    root: PathBuf,
}

/// One frozen skill, held open.
#[derive(Debug)]
pub struct Snapshot {
    digest: Digest,
    shown: Digest,
    root: OwnedFd,
}

/// Why a skill could not be frozen or opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {} in the snapshot store", path.display())]
pub struct SnapshotError {
    /// What was tried.
    pub action: &'static str,
    /// On what.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl SnapshotError {
    pub(super) fn new(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { action, path, source }
    }
}

impl SnapshotStore {
    /// A store below `root`, which is made when the first skill is frozen.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The snapshot of that digest, where there is one.
    pub fn open(&self, digest: &Digest) -> Result<Option<Snapshot>, SnapshotError> {
        let path = self.place(digest);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(root) => Ok(Some(Snapshot {
                digest: *digest,
                shown: self.shown_digest(digest)?,
                root,
            })),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(SnapshotError::new("open", &path)(error.into())),
        }
    }

    /// A directory that holds nothing but a place for each of these skills, to be mounted read-only below them: so a
    /// script can put nothing beside the skills that it sees.
    pub fn places_for(&self, names: &[&SkillName]) -> Result<OwnedFd, SnapshotError> {
        let joined: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
        // No name has a slash, so no two lists are one text.
        let digest = Digest::from_sha256(Sha256::digest(joined.join("/")).into());
        let path = self.root.join("places").join(&digest.hex()[..32]);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if let Ok(open) = rustix::fs::open(&path, flags, Mode::empty()) {
            return Ok(open);
        }
        self.make_places(&path, names)?;
        rustix::fs::open(&path, flags, Mode::empty()).map_err(|error| SnapshotError::new("open", &path)(error.into()))
    }

    /// Makes all the places and then shows them: whoever finds the directory finds it whole.
    fn make_places(&self, path: &Path, names: &[&SkillName]) -> Result<(), SnapshotError> {
        let parent = self.root.join("places");
        fs::create_dir_all(&parent).map_err(SnapshotError::new("create", &parent))?;
        let made = tempfile::Builder::new()
            .prefix(PARTIAL)
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir_in(&parent)
            .map_err(SnapshotError::new("create a directory in", &parent))?;
        for name in names {
            let place = made.path().join(name.as_str());
            fs::create_dir(&place).map_err(SnapshotError::new("create", &place))?;
        }
        match fs::rename(made.path(), path) {
            // Another run was first, with the same.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            renamed => renamed.map_err(SnapshotError::new("create", path)),
        }
    }

    /// Begins to freeze a skill.
    pub fn begin(&self) -> Result<SnapshotWriter, SnapshotError> {
        // Only we look in here: the sandbox gets descriptors, not paths.
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.root)
            .map_err(SnapshotError::new("create", &self.root))?;
        SnapshotWriter::new(self.clone())
    }

    /// Removes what an interrupted freeze left behind.
    pub fn sweep(&self) -> Result<usize, SnapshotError> {
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(SnapshotError::new("list", &self.root)(error)),
        };
        let mut removed = 0;
        for entry in entries.flatten() {
            let is_partial = entry.file_name().as_encoded_bytes().starts_with(PARTIAL.as_bytes());
            let is_old = entry
                .metadata()
                .and_then(|meta| meta.modified())
                .is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|age| age > ABANDONED));
            if is_partial && is_old {
                let path = entry.path();
                fs::remove_dir_all(&path).map_err(SnapshotError::new("remove", &path))?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// The digest of what a script sees, where that is not the whole skill.
    fn shown_digest(&self, digest: &Digest) -> Result<Digest, SnapshotError> {
        let path = self.shown_note(digest);
        match fs::read_to_string(&path) {
            Ok(text) => {
                Digest::parse(text.trim()).map_err(|error| SnapshotError::new("read", &path)(io::Error::other(error)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(*digest),
            Err(error) => Err(SnapshotError::new("read", &path)(error)),
        }
    }

    /// Beside a snapshot that hides something of its skill: what the rest hashes to.
    pub(super) fn shown_note(&self, digest: &Digest) -> PathBuf {
        self.root.join(format!("sha256-{}.shown", digest.hex()))
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn place(&self, digest: &Digest) -> PathBuf {
        self.root.join(format!("sha256-{}", digest.hex()))
    }
}

pub(super) const PARTIAL: &str = "partial-";

impl Snapshot {
    /// The digest it stands for.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// What its files hash to, without the workspace's links: another digest only where the skill ships entries of
    /// the same names, which the links hide.
    pub(crate) fn shown_digest(&self) -> [u8; 32] {
        *self.shown.as_bytes()
    }

    /// Its directory, for mounting.
    pub fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Opens a file of the skill; links inside it are followed, links out of it are not.
    pub fn open_file(&self, path: &RelPath) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(self.open_beneath(path, flags)?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(file)
    }

    /// Opens a directory of the skill in the same way.
    pub fn open_directory(&self, path: &RelPath) -> io::Result<OwnedFd> {
        self.open_beneath(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC)
    }

    /// The first bytes of a file, enough for an interpreter line.
    pub fn read_head(&self, path: &RelPath) -> io::Result<Vec<u8>> {
        let mut head = Vec::new();
        self.open_file(path)?.take(4096).read_to_end(&mut head)?;
        Ok(head)
    }

    fn open_beneath(&self, path: &RelPath, flags: OFlags) -> io::Result<OwnedFd> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.root, path.as_path(), flags, Mode::empty(), resolve) {
            // Without openat2 no link is followed at all: stricter, never looser.
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
    fn places_are_whole_for_whoever_finds_them_first() {
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
                        let places = store.places_for(&names).unwrap();
                        for name in &names {
                            rustix::fs::statat(&places, name.as_str(), rustix::fs::AtFlags::empty()).unwrap();
                        }
                    });
                }
            });
            let left = fs::read_dir(directory.path().join("places")).unwrap().count();
            assert_eq!(left, 1, "nothing half made stays");
        }
    }
}
