//! Paths that a person named on the command line, checked before anything is done with them.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::failure::Failure;
use crate::render::visible_path;

/// Every path must exist and be readable; otherwise the command line is wrong, and nothing is done for any of them.
pub fn check(paths: &[PathBuf]) -> Result<(), Failure> {
    paths.iter().try_for_each(|path| match path.metadata() {
        Err(error) => Err(refusal(path, &error)),
        Ok(_) => access(path, Access::READ_OK).map_err(|errno| refusal(path, &errno.into())),
    })
}

fn refusal(path: &Path, error: &std::io::Error) -> Failure {
    let message = match error.kind() {
        std::io::ErrorKind::NotFound => format!("path '{}' does not exist", visible_path(path)),
        _ => format!("path '{}' cannot be used: {error}", visible_path(path)),
    };
    Failure::usage(message, "name a skill's directory, or its SKILL.md")
}
