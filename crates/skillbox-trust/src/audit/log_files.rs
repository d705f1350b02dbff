//! The files of the log: their names, and the lock between processes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use crate::TrustError;

/// An append takes some microseconds. A process that holds the lock for longer is stopped or its disk hangs.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// Longer lines are not records: every text in one is limited.
pub(super) const MAX_LINE_BYTES: u64 = 8 << 20;

pub(super) fn log_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("log-{number:08}.jsonl"))
}

/// The numbers of the log files, sorted.
pub(super) fn log_numbers(directory: &Path) -> Result<Vec<u64>, TrustError> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(directory).map_err(TrustError::io("list", directory))? {
        let name = entry.map_err(TrustError::io("list", directory))?.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_prefix("log-")?.strip_suffix(".jsonl")?.parse::<u64>().ok());
        numbers.extend(number);
    }
    numbers.sort_unstable();
    Ok(numbers)
}

pub(super) fn open_private(path: &Path, append: bool) -> Result<File, TrustError> {
    let mut options = OpenOptions::new();
    options.read(true).create(true).mode(0o600);
    if append {
        options.append(true)
    } else {
        options.write(true)
    };
    options.open(path).map_err(TrustError::io("open", path))
}

/// A lock between processes, released when it is dropped.
pub(super) struct FileLock<'a>(&'a File);

impl<'a> FileLock<'a> {
    pub(super) fn acquire(
        file: &'a File,
        path: &Path,
        operation: FlockOperation,
        timeout: Duration,
    ) -> Result<Self, TrustError> {
        let deadline = Instant::now() + timeout;
        let mut wait = Duration::from_micros(20);
        loop {
            match flock(file, operation) {
                Ok(()) => return Ok(Self(file)),
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) if Instant::now() < deadline => {
                    std::thread::sleep(wait);
                    wait = (wait * 2).min(Duration::from_millis(1));
                }
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    return Err(TrustError::Locked {
                        path: path.to_owned(),
                        seconds: timeout.as_secs(),
                    });
                }
                Err(error) => return Err(TrustError::io("lock", path)(error.into())),
            }
        }
    }
}

impl Drop for FileLock<'_> {
    fn drop(&mut self) {
        // Closing the file would release it as well.
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}

/// Calls `visit` for each line from an offset on, without its line feed. The flag says whether the line is complete.
pub(super) fn visit_lines(
    path: &Path,
    offset: u64,
    visit: impl FnMut(&[u8], bool) -> Result<bool, TrustError>,
) -> Result<(), TrustError> {
    visit_lines_before(path, offset, u64::MAX, visit)
}

/// The same for the lines before an end, which other processes may write behind.
pub(super) fn visit_lines_before(
    path: &Path,
    offset: u64,
    end: u64,
    mut visit: impl FnMut(&[u8], bool) -> Result<bool, TrustError>,
) -> Result<(), TrustError> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(TrustError::io("open", path)(error)),
    };
    file.seek(SeekFrom::Start(offset))
        .map_err(TrustError::io("read", path))?;
    let file = io::Read::take(file, end.saturating_sub(offset));
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let mut line = Vec::new();
    loop {
        line.clear();
        io::Read::take(&mut reader, MAX_LINE_BYTES)
            .read_until(b'\n', &mut line)
            .map_err(TrustError::io("read", path))?;
        if line.is_empty() {
            return Ok(());
        }
        let is_complete = line.ends_with(b"\n");
        if is_complete {
            line.pop();
        }
        if !visit(&line, is_complete)? {
            return Ok(());
        }
    }
}
