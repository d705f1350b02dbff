//! Sockets and FIFOs in a directory of the host. A read-only view does not keep anybody from talking through them.

use std::fmt;
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;

use rustix::fs::FileType;

use super::beneath::{Closed, Walk, walk};

/// Why a directory is not shown to a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveFile {
    /// It has a socket of this name, perhaps further below.
    Socket(String),
    /// It has a FIFO of this name.
    Fifo(String),
    /// It cannot be looked through.
    Hidden,
}

impl fmt::Display for LiveFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(name) => write!(
                f,
                "it has the socket {name:?}, and a script could talk to whoever listens there"
            ),
            Self::Fifo(name) => write!(
                f,
                "it has the FIFO {name:?}, and a script could talk to whoever reads it"
            ),
            Self::Hidden => f.write_str("it has directories that cannot be looked into, and so could have sockets"),
        }
    }
}

/// What in a directory is not only read, if anything. What comes later is not seen.
pub fn find_live_file(directory: BorrowedFd<'_>) -> Option<LiveFile> {
    let mut found = None;
    let walked = walk(directory, Closed::Stay, |_, name, kind| {
        let name = || String::from_utf8_lossy(name).into_owned();
        found = match kind {
            FileType::Socket => Some(LiveFile::Socket(name())),
            FileType::Fifo => Some(LiveFile::Fifo(name())),
            _ => return ControlFlow::Continue(()),
        };
        ControlFlow::Break(())
    });
    match walked {
        Walk::Blocked => Some(LiveFile::Hidden),
        Walk::Whole | Walk::Stopped => found,
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
    fn sockets_and_fifos_are_found_however_deep() {
        let place = tempfile::tempdir().unwrap();
        let find = || find_live_file(File::open(place.path()).unwrap().as_fd());
        let deep = place.path().join("a/b/c");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("file"), "x").unwrap();
        std::os::unix::fs::symlink("/dev/log", deep.join("link")).unwrap();
        assert_eq!(find(), None);
        let listener = UnixListener::bind(deep.join("sock")).unwrap();
        assert_eq!(find(), Some(LiveFile::Socket("sock".to_owned())));
        drop(listener);
        fs::remove_file(deep.join("sock")).unwrap();
        mknodat(CWD, deep.join("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert_eq!(find(), Some(LiveFile::Fifo("pipe".to_owned())));
    }

    #[test]
    fn too_deep_to_be_looked_through_is_told() {
        let place = tempfile::tempdir().unwrap();
        let mut path = place.path().to_owned();
        for _ in 0..520 {
            path.push("d");
        }
        fs::create_dir_all(&path).unwrap();
        assert_eq!(
            find_live_file(File::open(place.path()).unwrap().as_fd()),
            Some(LiveFile::Hidden)
        );
    }
}
