//! Writing a frozen skill: into a directory of its own, which appears under its digest only when it is whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use skillbox_model::{Digest, RelPath};

use super::store::PARTIAL;
use super::{Snapshot, SnapshotError, SnapshotStore};
use crate::workspace::layout::SKILL_LINKS;

/// A skill on its way into the store. Dropped before `commit`, it leaves nothing.
#[derive(Debug)]
pub struct SnapshotWriter {
    store: SnapshotStore,
    directory: tempfile::TempDir,
    /// Whether something of the skill is hidden by the workspace's links.
    hides: bool,
}

impl SnapshotWriter {
    pub(super) fn new(store: SnapshotStore) -> Result<Self, SnapshotError> {
        let directory = tempfile::Builder::new()
            .prefix(PARTIAL)
            .tempdir_in(store.root())
            .map_err(SnapshotError::new("create a directory in", store.root()))?;
        Ok(Self {
            store,
            directory,
            hides: false,
        })
    }

    /// Adds a directory. Parents come before their children.
    pub fn directory(&mut self, path: &RelPath) -> Result<(), SnapshotError> {
        let Some(place) = self.place(path) else { return Ok(()) };
        match fs::create_dir(&place) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made.map_err(SnapshotError::new("create", &place)),
        }
    }

    /// Adds a file with everything that `content` gives. Modes become the plain readable ones, so that the
    /// script's user can read whatever the skill's owner could.
    pub fn file(&mut self, path: &RelPath, executable: bool, content: &mut dyn Read) -> Result<(), SnapshotError> {
        let Some(place) = self.place(path) else {
            self.hides = true;
            // The caller hashes what it reads: a hidden file is still read to its end.
            io::copy(content, &mut io::sink()).map_err(SnapshotError::new("read", path.as_path()))?;
            return Ok(());
        };
        let mode = if executable { 0o555 } else { 0o444 };
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&place)
            .map_err(SnapshotError::new("create", &place))?;
        io::copy(content, &mut file).map_err(SnapshotError::new("write", &place))?;
        file.flush().map_err(SnapshotError::new("write", &place))
    }

    /// Adds a link that stays inside the skill.
    pub fn link(&mut self, path: &RelPath, target: &[u8]) -> Result<(), SnapshotError> {
        let Some(place) = self.place(path) else {
            self.hides = true;
            return Ok(());
        };
        rustix::fs::symlink(target, &place).map_err(|error| SnapshotError::new("create", &place)(error.into()))
    }

    /// Bakes in the links to the workspace and gives the tree its name. Where another process froze the same
    /// content first, its snapshot serves.
    pub fn commit(self, digest: &Digest) -> Result<Snapshot, SnapshotError> {
        for (name, target) in SKILL_LINKS {
            let place = self.directory.path().join(name);
            rustix::fs::symlink(target, &place).map_err(|error| SnapshotError::new("create", &place)(error.into()))?;
        }
        // The temporary directory is private; a frozen skill is looked into by the script's user.
        let mode = rustix::fs::Mode::from_raw_mode(0o755);
        let partial = File::open(self.directory.path()).map_err(SnapshotError::new("open", self.directory.path()))?;
        rustix::fs::fchmod(&partial, mode)
            .map_err(|error| SnapshotError::new("open up", self.directory.path())(error.into()))?;
        if self.hides {
            self.note_what_is_shown(&partial, digest)?;
        }
        let place = self.store.place(digest);
        match fs::rename(self.directory.path(), &place) {
            Ok(()) => {
                // It has moved: there is nothing left to remove.
                let _moved = self.directory.keep();
            }
            Err(error) if place.is_dir() => drop(error),
            Err(error) => return Err(SnapshotError::new("name", &place)(error)),
        }
        let snapshot = self.store.open(digest)?;
        snapshot.ok_or_else(|| SnapshotError::new("find", &place)(io::ErrorKind::NotFound.into()))
    }

    /// Who checks the tree elsewhere sees less than was hashed here; what it will see is written down.
    fn note_what_is_shown(&self, tree: &File, digest: &Digest) -> Result<(), SnapshotError> {
        let skip = SKILL_LINKS.map(|(name, _)| name.as_bytes());
        let shown = skillbox_runner::tree_digest(tree.as_fd(), &skip)
            .map_err(SnapshotError::new("read", self.directory.path()))?;
        let note = self.store.shown_note(digest);
        fs::write(&note, Digest::from_sha256(shown).to_string()).map_err(SnapshotError::new("write", &note))
    }

    /// Where a path goes; none for the names that the workspace's own links take.
    fn place(&self, path: &RelPath) -> Option<PathBuf> {
        let first = path.components().next().unwrap_or_default();
        let hidden = SKILL_LINKS.iter().any(|(name, _)| name.as_bytes() == first);
        (!hidden).then(|| self.directory.path().join(path.as_path()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rel(path: &str) -> RelPath {
        RelPath::parse(path).unwrap()
    }

    fn digest(byte: u8) -> Digest {
        Digest::from_sha256([byte; 32])
    }

    #[test]
    fn a_snapshot_is_whole_or_not_there() {
        let directory = tempfile::tempdir().unwrap();
        let store = SnapshotStore::new(directory.path().join("snapshots"));
        let mut writer = store.begin().unwrap();
        writer.directory(&rel("scripts")).unwrap();
        writer
            .file(&rel("scripts/a.sh"), true, &mut &b"#!/bin/sh\n"[..])
            .unwrap();
        assert!(store.open(&digest(1)).unwrap().is_none());
        drop(writer);
        assert_eq!(fs::read_dir(directory.path().join("snapshots")).unwrap().count(), 0);
    }

    #[test]
    fn workspace_links_are_baked_in_and_hide_what_the_skill_ships() {
        let directory = tempfile::tempdir().unwrap();
        let store = SnapshotStore::new(directory.path());
        let mut writer = store.begin().unwrap();
        writer.directory(&rel("out")).unwrap();
        writer.file(&rel("out/x"), false, &mut &b"hidden"[..]).unwrap();
        writer.file(&rel("a.txt"), false, &mut &b"text"[..]).unwrap();
        writer.link(&rel("b.txt"), b"a.txt").unwrap();
        writer.link(&rel("bad"), b"/etc/passwd").unwrap();
        let snapshot = writer.commit(&digest(2)).unwrap();
        assert_eq!(snapshot.read_head(&rel("b.txt")).unwrap(), b"text");
        assert!(snapshot.open_file(&rel("bad")).is_err());
        assert!(snapshot.open_file(&rel("out/x")).is_err());
        // What is hidden is not in the digest of what is shown, which a second opening knows as well.
        assert_ne!(&snapshot.shown_digest(), digest(2).as_bytes());
        let again = store.open(&digest(2)).unwrap().unwrap();
        assert_eq!(again.shown_digest(), snapshot.shown_digest());
        let place = directory.path().join(format!("sha256-{}", digest(2).hex()));
        assert_eq!(fs::read_link(place.join("out")).unwrap().to_str(), Some("../../out"));
        assert_eq!(
            fs::read_link(place.join("inputs")).unwrap().to_str(),
            Some("../../work/inputs")
        );
    }

    #[test]
    fn freezing_the_same_twice_gives_the_first() {
        let directory = tempfile::tempdir().unwrap();
        let store = SnapshotStore::new(directory.path());
        for _ in 0..2 {
            let mut writer = store.begin().unwrap();
            writer.file(&rel("a"), false, &mut &b"1"[..]).unwrap();
            writer.commit(&digest(3)).unwrap();
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
