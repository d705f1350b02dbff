//! Copies a stored file to standard output, or to a new file.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use skillbox_model::ErrorCode;

use crate::failure::Failure;

/// Copies `content` to the file `to`, which must not exist, or without one to standard output.
pub fn copy_out(content: &mut impl Read, to: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = to else {
        let copied = io::copy(content, &mut io::stdout().lock());
        return copied.map(drop).map_err(|error| write_failure("to stdout", &error));
    };
    let shown = path.display().to_string();
    let mut file = File::create_new(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::new(ErrorCode::AlreadyExists, format!("{shown} already exists"))
            .with_hint("remove it, or choose another file"),
        _ => write_failure(&shown, &error),
    })?;
    io::copy(content, &mut file)
        .map(drop)
        .map_err(|error| write_failure(&shown, &error))
}

fn write_failure(to: &str, error: &io::Error) -> Failure {
    Failure::new(ErrorCode::Storage, format!("cannot write {to}: {error}"))
}
