//! Whether a file is open for writing anywhere on this machine: fcntl(2), `F_SETLEASE`.
//!
//! The kernel grants a read lease only on a file that nobody has open for writing. A shared writable mapping keeps its
//! file open, so this also detects writers that cause no events: mmap(2) writes to a page without telling anyone.
#![expect(unsafe_code, reason = "no crate wraps leases")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// From `linux/fcntl.h`; the crate `libc` lacks it.
const F_SETSIG: libc::c_int = 10;

/// Whether anybody has the file open for writing, or mapped for writing. `file` must be open for reading only.
///
/// The lease is released at once. A program that opens the file for writing in between waits for the release, and the
/// kernel then signals this process: `SIGURG`, which is ignored by default, instead of `SIGIO`, which ends a process.
///
/// # Errors
///
/// `EACCES` if the file belongs to another user and this process lacks `CAP_LEASE`; `EINVAL` on file systems without
/// leases.
pub fn has_open_writers(file: BorrowedFd<'_>) -> io::Result<bool> {
    let call = |command, argument: libc::c_int| {
        // SAFETY: the commands take an integer; the descriptor is valid while it is borrowed.
        let result = unsafe { libc::fcntl(file.as_raw_fd(), command, argument) };
        if result == -1 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    };
    call(F_SETSIG, libc::SIGURG)?;
    match call(libc::F_SETLEASE, libc::F_RDLCK) {
        Ok(()) => {
            call(libc::F_SETLEASE, libc::F_UNLCK)?;
            Ok(false)
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, OpenOptions};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn an_open_writer_is_detected() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "x").unwrap();
        let reader = File::open(&path).unwrap();
        assert!(!has_open_writers(reader.as_fd()).unwrap());
        let writer = OpenOptions::new().write(true).open(&path).unwrap();
        assert!(has_open_writers(reader.as_fd()).unwrap());
        drop(writer);
        assert!(!has_open_writers(reader.as_fd()).unwrap());
    }
}
