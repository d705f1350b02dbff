//! Reads and writes the control files of a group.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{Mode, OFlags, openat};

/// Writes a control file below the directory of a group.
pub(super) fn write_control_file(directory: BorrowedFd<'_>, name: &str, value: &str) -> io::Result<()> {
    let file = openat(directory, name, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, value.as_bytes())?;
    Ok(())
}

/// Writes a control file that some kernels do not have.
pub(super) fn write_optional_control_file(directory: BorrowedFd<'_>, name: &str, value: &str) -> io::Result<()> {
    match write_control_file(directory, name, value) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Reads a control file below the directory of a group.
pub(super) fn read_control_file(directory: BorrowedFd<'_>, name: &str) -> io::Result<String> {
    let file = openat(directory, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut buffer = [0; 4096];
    let length = rustix::io::read(&file, &mut buffer)?;
    Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
}
