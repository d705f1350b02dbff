//! Copies the content of one file into the workspace, without its holes and within the limits of staging.

use std::fs::File;
use std::io::Read;

use rustix::fs::SeekFrom;
use rustix::io::Errno;
use skillbox_model::RelPath;

use super::WorkspaceError;
use super::staging_limits::StagingLimits;

/// How much is copied between two checks of the limits.
const COPY_BYTES: u64 = 8 << 20;

/// The content of a file that is copied.
pub(super) enum FileContent<'a> {
    /// A file, whose holes are not copied.
    File(&'a File),
    /// A stream.
    Reader(&'a mut dyn Read),
}

impl FileContent<'_> {
    /// Copies the content into an empty file. Returns its size.
    pub(super) fn copy_to(
        self,
        target: &File,
        to: &RelPath,
        limits: &mut StagingLimits<'_>,
    ) -> Result<u64, WorkspaceError> {
        match self {
            Self::File(source) => copy_data(source, target, to, limits),
            Self::Reader(source) => copy_stream(source, target, to, limits),
        }
    }
}

/// Copies the data of a file, and leaves its holes.
fn copy_data(
    source: &File,
    target: &File,
    to: &RelPath,
    limits: &mut StagingLimits<'_>,
) -> Result<u64, WorkspaceError> {
    let failed = |action| WorkspaceError::io(action, to);
    let end = source.metadata().map_err(|error| input_error(to, error))?.len();
    let mut position = 0;
    while position < end {
        // File systems without holes report one piece of data.
        let begin = match rustix::fs::seek(source, SeekFrom::Data(position)) {
            Ok(begin) => begin,
            Err(Errno::NXIO) => break,
            Err(error) => return Err(failed("read the source of")(error)),
        };
        let hole = rustix::fs::seek(source, SeekFrom::Hole(begin)).map_err(failed("read the source of"))?;
        for file in [source, target] {
            rustix::fs::seek(file, SeekFrom::Start(begin)).map_err(failed("copy to"))?;
        }
        // A growing file is copied up to its size at the beginning.
        let mut left = hole.min(end).saturating_sub(begin);
        while left > 0 {
            let count = copy_stream_part(&mut &*source, target, to, limits, left.min(COPY_BYTES))?;
            if count == 0 {
                return Err(input_error(to, std::io::ErrorKind::UnexpectedEof.into()));
            }
            left -= count;
        }
        position = hole.max(begin + 1);
    }
    target.set_len(end).map_err(|error| write_error(to, &error))?;
    Ok(end)
}

/// Copies a stream to its end.
fn copy_stream(
    mut source: &mut dyn Read,
    target: &File,
    to: &RelPath,
    limits: &mut StagingLimits<'_>,
) -> Result<u64, WorkspaceError> {
    let mut size = 0;
    loop {
        match copy_stream_part(&mut source, target, to, limits, COPY_BYTES)? {
            0 => return Ok(size),
            count => size += count,
        }
    }
}

/// Copies at most `max_bytes`.
fn copy_stream_part(
    source: &mut impl Read,
    mut target: &File,
    to: &RelPath,
    limits: &mut StagingLimits<'_>,
    max_bytes: u64,
) -> Result<u64, WorkspaceError> {
    let max_bytes = limits.allow_bytes(to, max_bytes)?;
    let count = std::io::copy(&mut source.take(max_bytes), &mut target).map_err(|error| write_error(to, &error))?;
    limits.use_bytes(count);
    Ok(count)
}

/// Errors of the written file have an errno; others come from the source.
fn write_error(to: &RelPath, error: &std::io::Error) -> WorkspaceError {
    match Errno::from_io_error(error) {
        Some(errno) => WorkspaceError::io("write", to)(errno),
        None => input_error(to, std::io::Error::new(error.kind(), error.to_string())),
    }
}

fn input_error(to: &RelPath, source: std::io::Error) -> WorkspaceError {
    WorkspaceError::Input {
        path: to.to_string(),
        source,
    }
}
