//! Files and directories of the history, which only this user may read.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use super::error::HistoryError;

/// Creates a directory that only this user can access.
pub(super) fn create_private_dir(path: &Path) -> Result<(), HistoryError> {
    // The state directory above is one that other users may enter.
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(HistoryError::io("create", parent))?;
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(HistoryError::io("create", path))
}

pub(super) fn remove_if_exists(path: &Path) -> Result<(), HistoryError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(HistoryError::io("remove", path)(error)),
        _ => Ok(()),
    }
}
