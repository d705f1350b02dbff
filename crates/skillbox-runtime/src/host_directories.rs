//! The directories of the host that inputs may come from.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use skillbox_executor::job::RequestError;
use skillbox_executor::workspace::InputSource;
use skillbox_model::ErrorCode;

use crate::request_checks::input_source_error;

/// An allow-list of directories. They are opened once, so replacing a path later does not change what is allowed.
#[derive(Debug, Default)]
pub struct HostDirectories(Vec<(PathBuf, OwnedFd)>);

impl HostDirectories {
    /// Opens the allowed directories.
    pub fn open(paths: &[PathBuf]) -> Result<Self, (PathBuf, io::Error)> {
        let mut open = Vec::new();
        for path in paths {
            let absolute = std::path::absolute(path).map_err(|error| (path.clone(), error))?;
            let directory = File::open(&absolute).map_err(|error| (path.clone(), error))?;
            if !directory.metadata().is_ok_and(|meta| meta.is_dir()) {
                return Err((path.clone(), io::ErrorKind::NotADirectory.into()));
            }
            open.push((absolute, directory.into()));
        }
        Ok(Self(open))
    }

    /// Opens a path of the host if it is below an allowed directory.
    pub(crate) fn open_input(&self, path: &Path, field: &str) -> Result<InputSource, RequestError> {
        let reference = format!("host://{}", path.display());
        let not_allowed = |message: String| RequestError::new(field, ErrorCode::HostNotAllowed, message);
        let innermost = self
            .0
            .iter()
            .filter_map(|(allowed, fd)| Some((path.strip_prefix(allowed).ok()?, fd)))
            .min_by_key(|(below, _)| below.as_os_str().len());
        let Some((below, directory)) = innermost else {
            return Err(not_allowed(format!(
                "{reference} is not below a directory that this host allows"
            )));
        };
        open_beneath(directory, below).map_err(|error| match error {
            Errno::XDEV => not_allowed(format!("{reference} is a link that leaves the allowed directories")),
            error => input_source_error(field, &reference, error),
        })
    }
}

/// Opens a path beneath an allowed directory. Links that stay inside the directory are followed; for others, openat2(2)
/// with `RESOLVE_BENEATH` fails with `EXDEV`.
fn open_beneath(directory: &OwnedFd, below: &Path) -> Result<InputSource, Errno> {
    let below = if below.as_os_str().is_empty() {
        Path::new(".")
    } else {
        below
    };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let opened = rustix::fs::openat2(directory, below, flags, Mode::empty(), resolve)?;
    let stat = rustix::fs::fstat(&opened)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(InputSource::File(File::from(opened))),
        FileType::Directory => Ok(InputSource::Directory(opened)),
        _ => Err(Errno::INVAL),
    }
}
