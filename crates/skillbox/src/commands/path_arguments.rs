//! Checks paths from the command line before a command uses them.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::failure::Failure;
use crate::render::escape_path;

/// Every path must exist and be readable; otherwise the command fails before it handles any of them.
pub fn check_paths(paths: &[PathBuf]) -> Result<(), Failure> {
    paths.iter().try_for_each(|path| match path.metadata() {
        Err(error) => Err(invalid_path(path, &error)),
        Ok(_) => access(path, Access::READ_OK).map_err(|errno| invalid_path(path, &errno.into())),
    })
}

fn invalid_path(path: &Path, error: &std::io::Error) -> Failure {
    let message = match error.kind() {
        std::io::ErrorKind::NotFound => format!("path '{}' does not exist", escape_path(path)),
        _ => format!("path '{}' cannot be used: {error}", escape_path(path)),
    };
    Failure::usage(message, "pass the directory of a skill, or its SKILL.md")
}
