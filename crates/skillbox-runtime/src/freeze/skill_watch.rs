//! Proves that the files of a skill have not changed since they were read, with inotify(7).
//!
//! Every directory and every file is watched by its inode, so a write through a hard link or another mount is seen too.
//! The kernel queues an event before the system call that caused it returns: an empty queue means that nothing changed.
//! Three kinds of changes cause no event, and are excluded in another way:
//!
//! - A shared mapping that existed before the watch writes silently. A lease shows whether a file has such a writer
//!   ([`has_open_writers`]); if it has one, nothing is cached. A later mapping needs a new open(2), which is an event.
//! - A mount that covers a part of the tree: [`MountTable`](super::mount_table::MountTable).
//! - Another host that writes to a shared file system: nothing on such a file system is cached.
//!
//! Opening a file for reading is an event too. Then only that file is checked, by its change time and a lease.

use std::collections::{HashMap, HashSet};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::fstat;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use skillbox_model::RelPath;
use skillbox_repository::{FileStamp, SkillDir, StampComparison, TreeEntry, TreeEntryKind, is_remote_file_system};
use skillbox_sandbox::has_open_writers;

/// A directory changes when an entry is added, removed, renamed, or replaced, or when its own mode changes.
const DIRECTORY_FLAGS: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF);

const FILE_FLAGS: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::OPEN);

/// How often new directories are looked for while watches are added. Each round finds what was created in the round
/// before, so more rounds than this mean that the skill is being written.
const MAX_ROUNDS: usize = 4;

/// A watch takes about 1 KiB of the kernel's memory. A larger skill is read again for each run.
const MAX_WATCHED_ENTRIES: usize = 20_000;

/// Watches on one skill. Dropping it removes them all.
#[derive(Debug)]
pub(super) struct SkillWatch {
    inotify_fd: OwnedFd,
    directory: SkillDir,
    directories: HashSet<i32>,
    /// One entry for each inode. Two paths of one file share a watch.
    files: HashMap<i32, WatchedFile>,
    /// Every path below the skill with what it leads to.
    paths: Vec<WatchedFile>,
}

#[derive(Clone, Debug)]
struct WatchedFile {
    path: RelPath,
    stamp: FileStamp,
}

/// What the queue contained.
enum Events {
    /// Nothing that could be a change. The files were opened, perhaps for writing.
    OpenedFiles(Vec<i32>),
    /// Something changed, or events were lost.
    Changed,
}

impl SkillWatch {
    /// Watches every directory and file of a skill. Call it before the files are read.
    pub(super) fn new(directory: SkillDir) -> io::Result<Self> {
        let mut watch = Self {
            inotify_fd: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
            directory,
            directories: HashSet::new(),
            files: HashMap::new(),
            paths: Vec::new(),
        };
        watch.watch_directory(None)?;
        // A directory is listed after it is watched: what appears in it later is an event.
        let mut watched = 0;
        for _ in 0..MAX_ROUNDS {
            let entries = watch.directory.tree_entries().map_err(io::Error::other)?;
            if entries.len() > MAX_WATCHED_ENTRIES {
                return Err(io::Error::new(io::ErrorKind::QuotaExceeded, "too many files to watch"));
            }
            let directories: Vec<&RelPath> = paths_of(&entries, |kind| *kind == TreeEntryKind::Dir).collect();
            if directories.len() == watched {
                for path in paths_of(&entries, |kind| matches!(kind, TreeEntryKind::File { .. })) {
                    watch.watch_file(path.clone())?;
                }
                return Ok(watch);
            }
            watch.paths.clear();
            for path in &directories {
                watch.watch_directory(Some(path))?;
            }
            watched = directories.len();
        }
        Err(io::Error::other("the skill is being written"))
    }

    /// Whether the files that were read since [`Self::new`] are those on disk now, and every later change will be
    /// noticed. Otherwise what was read must not be reused.
    pub(super) fn confirm(&mut self) -> bool {
        // Reading opened the files, so all of them are checked.
        matches!(self.take_events(), Events::OpenedFiles(_)) && {
            let all: Vec<i32> = self.files.keys().copied().collect();
            self.are_unchanged(all)
        }
    }

    /// Whether nothing changed since [`Self::confirm`] returned true.
    pub(super) fn is_unchanged(&mut self) -> bool {
        match self.take_events() {
            Events::OpenedFiles(opened) if opened.is_empty() => true,
            Events::OpenedFiles(opened) => self.are_unchanged(opened),
            Events::Changed => false,
        }
    }

    /// Whether the paths of the skill still lead to the watched files, by one stat(2) each: after a change of the mount
    /// table, they may not.
    pub(super) fn paths_are_unchanged(&self) -> bool {
        let is_same_file = |entry: &WatchedFile| -> io::Result<bool> {
            let stat = fstat(self.open(Some(&entry.path))?)?;
            Ok(entry.stamp.compare(&FileStamp::for_comparison(&stat)) != StampComparison::Different)
        };
        self.paths.iter().all(|entry| is_same_file(entry).unwrap_or(false))
    }

    fn watch_directory(&mut self, path: Option<&RelPath>) -> io::Result<()> {
        let opened = self.open(path)?;
        if is_remote_file_system(opened.as_fd())? {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "a remote file system"));
        }
        let watch = self.add_watch(opened.as_fd(), DIRECTORY_FLAGS)?;
        self.directories.insert(watch);
        if let Some(path) = path {
            self.paths.push(WatchedFile {
                path: path.clone(),
                stamp: FileStamp::new(&fstat(&opened)?),
            });
        }
        Ok(())
    }

    fn watch_file(&mut self, path: RelPath) -> io::Result<()> {
        let opened = self.open(Some(&path))?;
        let watch = self.add_watch(opened.as_fd(), FILE_FLAGS)?;
        let stamp = FileStamp::new(&fstat(&opened)?);
        let file = WatchedFile { path, stamp };
        self.paths.push(file.clone());
        self.files.insert(watch, file);
        Ok(())
    }

    fn open(&self, path: Option<&RelPath>) -> io::Result<OwnedFd> {
        let opened = self.directory.open_for_watching(path).map_err(io::Error::other)?;
        opened.ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, "an embedded skill"))
    }

    /// Watches the inode of an open file: a path could lead to another one by now.
    fn add_watch(&self, file: BorrowedFd<'_>, flags: WatchFlags) -> io::Result<i32> {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        Ok(inotify::add_watch(&self.inotify_fd, path, flags)?)
    }

    /// Checks files that were opened. Each gets a new watch first, so that a later writer is noticed: one that opened
    /// the file before is still there, or has left a new change time.
    fn are_unchanged(&mut self, watches: Vec<i32>) -> bool {
        watches
            .into_iter()
            .all(|watch| self.renew_watch(watch).unwrap_or(false))
    }

    fn renew_watch(&mut self, watch: i32) -> io::Result<bool> {
        let Some(file) = self.files.remove(&watch) else {
            return Ok(true);
        };
        let opened = self.open(Some(&file.path))?;
        // If the kernel has removed the watch, the file is gone, and its event says so.
        inotify::remove_watch(&self.inotify_fd, watch)?;
        let renewed = self.add_watch(opened.as_fd(), FILE_FLAGS)?;
        let is_unchanged = is_same(&file.stamp, opened.as_fd()) && !has_open_writers(opened.as_fd())?;
        self.files.insert(renewed, file);
        Ok(is_unchanged)
    }

    fn take_events(&mut self) -> Events {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.inotify_fd, &mut buffer);
        let mut opened = Vec::new();
        loop {
            match reader.next() {
                Ok(event) if event.events() == ReadFlags::OPEN => opened.push(event.wd()),
                // The end of a watch that was renewed.
                Ok(event) if event.events() == ReadFlags::IGNORED && !self.is_watched(event.wd()) => {}
                // This includes the loss of events, and changes that a renewed watch saw before its renewal.
                Ok(_) => return Events::Changed,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // If the queue cannot be read, nothing is known.
                Err(_) => return Events::Changed,
            }
        }
        opened.sort_unstable();
        opened.dedup();
        opened.retain(|watch| self.files.contains_key(watch));
        Events::OpenedFiles(opened)
    }

    fn is_watched(&self, watch: i32) -> bool {
        self.files.contains_key(&watch) || self.directories.contains(&watch)
    }
}

fn paths_of(entries: &[TreeEntry], is_wanted: fn(&TreeEntryKind) -> bool) -> impl Iterator<Item = &RelPath> {
    entries
        .iter()
        .filter(move |entry| is_wanted(&entry.kind))
        .map(|entry| &entry.path)
}

fn is_same(stamp: &FileStamp, file: BorrowedFd<'_>) -> bool {
    fstat(file).is_ok_and(|stat| stamp.compare(&FileStamp::for_comparison(&stat)) == StampComparison::Same)
}
