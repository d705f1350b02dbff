//! The directories of the host that inputs may come from.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use skillbox_executor::job::RequestError;
use skillbox_executor::workspace::InputSource;
use skillbox_model::ErrorCode;

use crate::RunError;
use crate::inputs::{host_missing, open_host};

/// An allow-list, held open: what a name meant when it was allowed is what it means when it is used.
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

    /// Opens a path of the host, where it lies below an allowed directory.
    pub(crate) fn open_input(&self, path: &Path, field: &str) -> Result<InputSource, RunError> {
        let shown = format!("host://{}", path.display());
        let allowed = self
            .0
            .iter()
            .filter_map(|(allowed, fd)| Some((path.strip_prefix(allowed).ok()?, fd)))
            .min_by_key(|(below, _)| below.as_os_str().len());
        match allowed {
            Some((below, directory)) => open_host(directory, below).map_err(|error| host_missing(field, &shown, error)),
            None => Err(RequestError::new(
                field,
                ErrorCode::HostNotAllowed,
                format!("{shown} is not below a directory that this host allows"),
            )
            .into()),
        }
    }
}
