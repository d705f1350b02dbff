//! Whether anything in the watched directories changed since the last look.
//!
//! The events of the watcher arrive on another thread, so a caller cannot know whether one is still on its way, unless it
//! waits for a cookie. This second set of watches is read by the caller itself: the kernel queues an event before the
//! system call that caused it returns, so an empty queue means that nothing changed. One read(2) replaces the cookie on
//! each call that finds no change: `skillbox-bench run`.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;

const FLAGS: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// Watches on directories, and whether they have seen anything.
#[derive(Debug)]
pub(super) struct ChangeFlag {
    inotify_fd: OwnedFd,
    watches: HashMap<PathBuf, i32>,
}

impl ChangeFlag {
    pub(super) fn new() -> rustix::io::Result<Self> {
        Ok(Self {
            inotify_fd: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
            watches: HashMap::new(),
        })
    }

    pub(super) fn add(&mut self, directory: &Path) -> rustix::io::Result<()> {
        let watch = inotify::add_watch(&self.inotify_fd, directory, FLAGS)?;
        self.watches.insert(directory.to_owned(), watch);
        Ok(())
    }

    pub(super) fn remove(&mut self, directory: &Path) {
        if let Some(watch) = self.watches.remove(directory) {
            // Fails if the kernel removed the watch together with its directory.
            let _removed = inotify::remove_watch(&self.inotify_fd, watch);
        }
    }

    /// Whether anything may have changed since the last call.
    pub(super) fn take(&mut self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut has_changed = false;
        loop {
            match rustix::io::read(&self.inotify_fd, &mut buffer) {
                Ok(_) => has_changed = true,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return has_changed,
                Err(_) => return true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_once() {
        let directory = tempfile::tempdir().unwrap();
        let mut flag = ChangeFlag::new().unwrap();
        flag.add(directory.path()).unwrap();
        assert!(!flag.take());
        std::fs::write(directory.path().join("x"), "x").unwrap();
        assert!(flag.take());
        assert!(!flag.take());
        flag.remove(directory.path());
        // The removal itself is an event.
        assert!(flag.take());
        std::fs::write(directory.path().join("y"), "y").unwrap();
        assert!(!flag.take());
    }
}
