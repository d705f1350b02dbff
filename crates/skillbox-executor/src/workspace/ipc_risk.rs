//! Finds sockets and FIFOs in a directory of the host, because a read-only mount does not prevent communication through
//! them.

use std::fmt;
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;

use rustix::fs::FileType;

use super::nofollow::{UnreadableDirs, WalkEnd, walk};

/// Why mounting a directory could let a script communicate with processes of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IpcRisk {
    /// The directory contains a socket with this name, at any depth.
    Socket(String),
    /// The directory contains a FIFO with this name, at any depth.
    Fifo(String),
    /// The directory cannot be searched completely.
    Unsearchable,
}

impl fmt::Display for IpcRisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(name) => write!(
                f,
                "it contains the socket {name:?}, through which a script could communicate"
            ),
            Self::Fifo(name) => write!(
                f,
                "it contains the FIFO {name:?}, through which a script could communicate"
            ),
            Self::Unsearchable => f.write_str("it contains directories that cannot be searched for sockets"),
        }
    }
}

/// Searches a directory for a socket or FIFO. It does not detect those that are created later.
pub fn find_ipc_risk(directory: BorrowedFd<'_>) -> Option<IpcRisk> {
    let mut found = None;
    let walked = walk(directory, UnreadableDirs::Report, |_, name, kind| {
        let name = || String::from_utf8_lossy(name).into_owned();
        found = match kind {
            FileType::Socket => Some(IpcRisk::Socket(name())),
            FileType::Fifo => Some(IpcRisk::Fifo(name())),
            _ => return ControlFlow::Continue(()),
        };
        ControlFlow::Break(())
    });
    match walked {
        WalkEnd::Incomplete => Some(IpcRisk::Unsearchable),
        WalkEnd::Complete | WalkEnd::Stopped => found,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, Mode, mknodat};

    use super::*;

    #[test]
    fn sockets_and_fifos_are_found_at_any_depth() {
        let root_directory = tempfile::tempdir().unwrap();
        let find = || find_ipc_risk(File::open(root_directory.path()).unwrap().as_fd());
        let deep = root_directory.path().join("a/b/c");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("file"), "x").unwrap();
        std::os::unix::fs::symlink("/dev/log", deep.join("link")).unwrap();
        assert_eq!(find(), None);
        let listener = UnixListener::bind(deep.join("sock")).unwrap();
        assert_eq!(find(), Some(IpcRisk::Socket("sock".to_owned())));
        drop(listener);
        fs::remove_file(deep.join("sock")).unwrap();
        mknodat(CWD, deep.join("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert_eq!(find(), Some(IpcRisk::Fifo("pipe".to_owned())));
    }

    #[test]
    fn a_tree_that_is_too_deep_is_unsearchable() {
        let root_directory = tempfile::tempdir().unwrap();
        let mut path = root_directory.path().to_owned();
        for _ in 0..520 {
            path.push("d");
        }
        fs::create_dir_all(&path).unwrap();
        assert_eq!(
            find_ipc_risk(File::open(root_directory.path()).unwrap().as_fd()),
            Some(IpcRisk::Unsearchable)
        );
    }
}
