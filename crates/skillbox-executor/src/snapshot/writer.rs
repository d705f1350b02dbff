//! Writes a snapshot into a temporary directory, which gets its final name only when it is complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use skillbox_model::{Digest, RelPath};

use super::hidden_entries::{HiddenEntries, HiddenEntry, is_hidden};
use super::store::PARTIAL_PREFIX;
use super::use_lock::UseLock;
use super::{Snapshot, SnapshotError, SnapshotStore};
use crate::layout::SKILL_LINKS;

/// A snapshot being written. If it is dropped before `commit`, nothing remains.
#[derive(Debug)]
pub struct SnapshotWriter {
    store: SnapshotStore,
    directory: tempfile::TempDir,
    /// The entries of the skill that the links to the workspace hide.
    hidden: Vec<HiddenEntry>,
}

impl SnapshotStore {
    /// Starts a new snapshot.
    pub fn new_writer(&self) -> Result<SnapshotWriter, SnapshotError> {
        // Only this user needs access, because the sandbox gets descriptors and not paths.
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(self.root())
            .map_err(SnapshotError::io("create", self.root()))?;
        SnapshotWriter::new(self.clone())
    }
}

impl SnapshotWriter {
    fn new(store: SnapshotStore) -> Result<Self, SnapshotError> {
        let directory = tempfile::Builder::new()
            .prefix(PARTIAL_PREFIX)
            .tempdir_in(store.root())
            .map_err(SnapshotError::io("create a directory in", store.root()))?;
        Ok(Self {
            store,
            directory,
            hidden: Vec::new(),
        })
    }

    /// Adds a file with the given content. Everybody may read it, so that the script's user can, and execute it if its
    /// owner may. The owner may write to it as before: scripts copy files with their modes, and expect to change the
    /// copies. The mount protects the snapshot itself.
    pub fn add_file(&mut self, path: &RelPath, mode: u32, content: &mut dyn Read) -> Result<(), SnapshotError> {
        let Some(host_path) = self.entry_path(path) else {
            // The caller computes the digest while the content is read, so a hidden file must be read to its end as
            // well.
            let mut hasher = HashWriter(Sha256::new());
            io::copy(content, &mut hasher).map_err(SnapshotError::io("read", path.as_path()))?;
            self.hidden.push(HiddenEntry {
                path: path.clone(),
                kind: if mode & 0o100 == 0 { 'f' } else { 'x' },
                content: Digest::from_sha256(hasher.0.finalize().into()),
            });
            return Ok(());
        };
        create_parents(&host_path)?;
        let mode = (mode & 0o200) | if mode & 0o100 == 0 { 0o444 } else { 0o555 };
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&host_path)
            .map_err(SnapshotError::io("create", &host_path))?;
        io::copy(content, &mut file).map_err(SnapshotError::io("write", &host_path))?;
        file.flush().map_err(SnapshotError::io("write", &host_path))
    }

    /// Adds a symbolic link that stays inside the skill.
    pub fn add_link(&mut self, path: &RelPath, target: &[u8]) -> Result<(), SnapshotError> {
        let Some(host_path) = self.entry_path(path) else {
            self.hidden.push(HiddenEntry {
                path: path.clone(),
                kind: 'l',
                content: Digest::from_sha256(Sha256::digest(target).into()),
            });
            return Ok(());
        };
        create_parents(&host_path)?;
        rustix::fs::symlink(target, &host_path).map_err(|error| SnapshotError::io("create", &host_path)(error.into()))
    }

    /// Adds the links to the workspace and gives the directory its final name. If another process stored the same
    /// digest first, its snapshot is returned.
    pub fn commit(self, digest: &Digest) -> Result<Snapshot, SnapshotError> {
        for (name, target) in SKILL_LINKS {
            let link_path = self.directory.path().join(name);
            rustix::fs::symlink(target, &link_path)
                .map_err(|error| SnapshotError::io("create", &link_path)(error.into()))?;
        }
        // The temporary directory is private, but the script's user must be able to read the snapshot.
        let mode = rustix::fs::Mode::from_raw_mode(0o755);
        let partial = File::open(self.directory.path()).map_err(SnapshotError::io("open", self.directory.path()))?;
        rustix::fs::fchmod(&partial, mode)
            .map_err(|error| SnapshotError::io("change the mode of", self.directory.path())(error.into()))?;
        if !self.hidden.is_empty() {
            self.record_hidden_entries(digest)?;
        }
        let snapshot_path = self.store.snapshot_path(digest);
        // Nobody can remove the snapshot before it is open.
        let use_lock =
            UseLock::take(&self.store.use_path(digest)).map_err(SnapshotError::io("lock", &snapshot_path))?;
        match fs::rename(self.directory.path(), &snapshot_path) {
            Ok(()) => {
                // The directory was renamed, so there is nothing to remove.
                let _moved = self.directory.keep();
                use_lock
                    .set_verified()
                    .map_err(SnapshotError::io("write", &snapshot_path))?;
                self.store.collect_if_due();
            }
            Err(error) if snapshot_path.is_dir() => drop(error),
            Err(error) => return Err(SnapshotError::io("rename a directory to", &snapshot_path)(error)),
        }
        let snapshot = self.store.open(digest)?;
        snapshot.ok_or_else(|| SnapshotError::io("find", &snapshot_path)(io::ErrorKind::NotFound.into()))
    }

    /// Records the hidden entries and the digest of the others. A runner that verifies the tree does not see the hidden
    /// ones, so the digest of the whole skill would not match.
    fn record_hidden_entries(&self, digest: &Digest) -> Result<(), SnapshotError> {
        let text = HiddenEntries::to_text(self.directory.path(), self.hidden.clone())
            .map_err(SnapshotError::io("read", self.directory.path()))?;
        let path = self.store.hidden_entries_path(digest);
        fs::write(&path, text).map_err(SnapshotError::io("write", &path))
    }

    /// The path of an entry in the temporary directory; none if a link to the workspace hides it.
    fn entry_path(&self, path: &RelPath) -> Option<PathBuf> {
        let first = path.components().next().unwrap_or_default();
        (!is_hidden(first)).then(|| self.directory.path().join(path.as_path()))
    }
}

/// Hashes what is written.
struct HashWriter(Sha256);

impl Write for HashWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Creates the directories of an entry. A directory without files and links is not part of a skill: no digest has it.
fn create_parents(host_path: &Path) -> Result<(), SnapshotError> {
    let parent = host_path.parent().unwrap_or(host_path);
    fs::create_dir_all(parent).map_err(SnapshotError::io("create", parent))
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
    fn an_unfinished_snapshot_is_not_visible() {
        let directory = tempfile::tempdir().unwrap();
        let store = SnapshotStore::new(directory.path().join("snapshots"));
        let mut writer = store.new_writer().unwrap();
        writer
            .add_file(&rel("scripts/a.sh"), 0o755, &mut &b"#!/bin/sh\n"[..])
            .unwrap();
        assert!(store.open(&digest(1)).unwrap().is_none());
        drop(writer);
        assert_eq!(fs::read_dir(directory.path().join("snapshots")).unwrap().count(), 0);
    }

    #[test]
    fn links_to_the_workspace_are_added_and_hide_entries_of_the_skill() {
        let directory = tempfile::tempdir().unwrap();
        let store = SnapshotStore::new(directory.path());
        let mut writer = store.new_writer().unwrap();
        writer.add_file(&rel("out/x"), 0o644, &mut &b"hidden"[..]).unwrap();
        writer.add_file(&rel("a.txt"), 0o444, &mut &b"text"[..]).unwrap();
        writer.add_link(&rel("b.txt"), b"a.txt").unwrap();
        writer.add_link(&rel("bad"), b"/etc/passwd").unwrap();
        let snapshot = writer.commit(&digest(2)).unwrap();
        assert_eq!(snapshot.read_head(&rel("b.txt")).unwrap(), b"text");
        assert!(snapshot.open_file(&rel("bad")).is_err());
        assert!(snapshot.open_file(&rel("out/x")).is_err());
        // Hidden entries are not part of the visible digest, and a second `open` reads the same visible digest.
        assert_ne!(&snapshot.visible_digest(), digest(2).as_bytes());
        let reopened = store.open(&digest(2)).unwrap().unwrap();
        assert_eq!(reopened.visible_digest(), snapshot.visible_digest());
        let snapshot_path = directory.path().join(format!("sha256-{}", digest(2).hex()));
        assert_eq!(
            fs::read_link(snapshot_path.join("out")).unwrap().to_str(),
            Some("../../out")
        );
        assert_eq!(
            fs::read_link(snapshot_path.join("inputs")).unwrap().to_str(),
            Some("../../work/inputs")
        );
    }

    /// Somebody who knows an approved digest puts another tree in its place, with a list that fits the tree.
    #[test]
    fn a_planted_snapshot_is_not_used() {
        let source = |text: &str| {
            let directory = tempfile::tempdir().unwrap();
            fs::create_dir(directory.path().join("out")).unwrap();
            fs::write(directory.path().join("out/x"), "hidden").unwrap();
            fs::write(directory.path().join("run.sh"), text).unwrap();
            let top = File::open(directory.path()).unwrap();
            Digest::from_sha256(skillbox_runner::tree_digest(std::os::fd::AsFd::as_fd(&top), &[]).unwrap())
        };
        let directory = tempfile::tempdir().unwrap();
        let store = SnapshotStore::new(directory.path());
        let write = |text: &str| {
            let mut writer = store.new_writer().unwrap();
            writer.add_file(&rel("out/x"), 0o644, &mut &b"hidden"[..]).unwrap();
            writer.add_file(&rel("run.sh"), 0o644, &mut text.as_bytes()).unwrap();
            let digest = source(text);
            drop(writer.commit(&digest).unwrap());
            digest
        };
        let (good, evil) = (write("good"), write("evil"));
        let forget_verification = |digest: &Digest| fs::write(store.use_path(digest), "").unwrap();
        forget_verification(&good);
        assert!(store.open(&good).unwrap().is_some(), "the control");

        forget_verification(&good);
        fs::remove_dir_all(store.snapshot_path(&good)).unwrap();
        fs::rename(store.snapshot_path(&evil), store.snapshot_path(&good)).unwrap();
        fs::copy(store.hidden_entries_path(&evil), store.hidden_entries_path(&good)).unwrap();
        assert!(store.open(&good).unwrap().is_none(), "another tree");

        // A directory in place of a link to the workspace is not hidden by its name.
        let good = write("good");
        forget_verification(&good);
        fs::remove_file(store.snapshot_path(&good).join("work")).unwrap();
        fs::create_dir(store.snapshot_path(&good).join("work")).unwrap();
        assert!(store.open(&good).unwrap().is_none(), "a directory instead of a link");
    }

    #[test]
    fn writing_the_same_digest_twice_keeps_the_first_snapshot() {
        let directory = tempfile::tempdir().unwrap();
        let store = SnapshotStore::new(directory.path());
        for _ in 0..2 {
            let mut writer = store.new_writer().unwrap();
            writer.add_file(&rel("a"), 0o644, &mut &b"1"[..]).unwrap();
            writer.commit(&digest(3)).unwrap();
        }
        let snapshots = fs::read_dir(directory.path()).unwrap().flatten();
        assert_eq!(snapshots.filter(|entry| entry.path().is_dir()).count(), 1);
    }
}
