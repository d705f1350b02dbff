//! The files of past runs: JSON lines, appended by all processes of the state directory.
//!
//! A record is one write(2) with `O_APPEND`, so processes need no lock. A full file is followed by a new one, and whole
//! files are removed when they are too old or too many. A removed record is overwritten with blanks in place.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::error::HistoryError;
use super::private_files::{create_private_dir, remove_if_exists};

/// A file of this size is followed by a new one.
const SEGMENT_BYTES: u64 = 1 << 20;
/// Longer lines are not records: a report contains at most 64 KiB of each stream by default, and no files.
const MAX_LINE_BYTES: u64 = 64 << 20;
const PREFIX: &str = "runs-";
const SUFFIX: &str = ".jsonl";

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Runs beyond this number are removed, the oldest first; 0 keeps no history.
    pub runs: usize,
    /// Runs that are older are removed.
    pub age: Duration,
    /// The maximum bytes of all records.
    pub bytes: u64,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self {
            runs: 10_000,
            age: Duration::from_secs(30 * 24 * 3600),
            bytes: 256 << 20,
        }
    }
}

/// The files in one directory.
#[derive(Debug)]
pub(super) struct Segments {
    directory: PathBuf,
    limits: HistoryLimits,
    /// The newest file and its number.
    current: Option<(u64, File)>,
    /// The records in files that are complete.
    counts: HashMap<u64, usize>,
}

/// A line and where it is.
pub(super) struct StoredLine<'l> {
    pub(super) text: &'l [u8],
    pub(super) offset: u64,
}

impl Segments {
    pub(super) fn new(directory: PathBuf, limits: HistoryLimits) -> Self {
        Self {
            directory,
            limits,
            current: None,
            counts: HashMap::new(),
        }
    }

    /// Appends a record, which has no line feed.
    pub(super) fn append(&mut self, record: Vec<u8>) -> Result<(), HistoryError> {
        let mut line = record;
        line.push(b'\n');
        if self.current.is_none() {
            create_private_dir(&self.directory)?;
            let newest = self.numbers()?.last().copied();
            self.open(newest.unwrap_or(0))?;
            self.remove_old()?;
        }
        let Some((number, file)) = &mut self.current else {
            return Ok(());
        };
        let (number, path) = (*number, segment_path(&self.directory, *number));
        file.write_all(&line).map_err(HistoryError::io("write", &path))?;
        let metadata = file.metadata().map_err(HistoryError::io("read the size of", &path))?;
        if metadata.nlink() == 0 {
            // Another process removed the file together with this record; the next one goes to a file that exists.
            self.current = None;
        } else if metadata.len() >= SEGMENT_BYTES {
            self.open(number + 1)?;
            self.remove_old()?;
        }
        Ok(())
    }

    fn open(&mut self, number: u64) -> Result<(), HistoryError> {
        let path = segment_path(&self.directory, number);
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&path)
            .map_err(HistoryError::io("open", &path))?;
        self.current = Some((number, file));
        Ok(())
    }

    /// Removes whole files beyond the limits, never the newest one.
    fn remove_old(&mut self) -> Result<(), HistoryError> {
        let numbers = self.numbers()?;
        let (mut runs, mut bytes) = (0, 0);
        for (position, number) in numbers.iter().rev().enumerate() {
            let path = segment_path(&self.directory, *number);
            let metadata = match fs::metadata(&path) {
                Ok(metadata) => metadata,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(HistoryError::io("read", &path)(error)),
            };
            let is_old = metadata
                .modified()
                .is_ok_and(|modified| is_older(modified, self.limits.age));
            if position > 0 && (is_old || runs >= self.limits.runs || bytes >= self.limits.bytes) {
                remove_if_exists(&path)?;
                self.counts.remove(number);
                continue;
            }
            bytes += metadata.len();
            runs += match self.counts.get(number) {
                Some(count) => *count,
                None => {
                    let mut count = 0;
                    visit_lines(&path, |_| {
                        count += 1;
                        Ok(true)
                    })?;
                    if metadata.len() >= SEGMENT_BYTES {
                        self.counts.insert(*number, count);
                    }
                    count
                }
            };
        }
        Ok(())
    }

    /// Calls `visit` for each record, the newest file first, until it returns false.
    pub(super) fn visit(
        directory: &Path,
        mut visit: impl FnMut(&Path, StoredLine<'_>) -> Result<bool, HistoryError>,
    ) -> Result<(), HistoryError> {
        for number in list_numbers(directory)?.into_iter().rev() {
            let path = segment_path(directory, number);
            let mut goes_on = true;
            visit_lines(&path, |line| {
                goes_on = visit(&path, line)?;
                Ok(goes_on)
            })?;
            if !goes_on {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Overwrites a record with blanks. Other processes may append meanwhile.
    pub(super) fn erase(path: &Path, offset: u64, length: usize) -> Result<(), HistoryError> {
        let file = OpenOptions::new()
            .write(true)
            .open(path)
            .map_err(HistoryError::io("open", path))?;
        file.write_all_at(&vec![b' '; length], offset)
            .and_then(|()| file.sync_data())
            .map_err(HistoryError::io("write", path))
    }

    fn numbers(&self) -> Result<Vec<u64>, HistoryError> {
        list_numbers(&self.directory)
    }
}

fn list_numbers(directory: &Path) -> Result<Vec<u64>, HistoryError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(HistoryError::io("list", directory)(error)),
    };
    let mut numbers = Vec::new();
    for entry in entries {
        let name = entry.map_err(HistoryError::io("list", directory))?.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse::<u64>().ok());
        numbers.extend(number);
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn segment_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{PREFIX}{number:08}{SUFFIX}"))
}

/// Calls `visit` for each line that is a record. A line without its end is being written.
fn visit_lines(
    path: &Path,
    mut visit: impl FnMut(StoredLine<'_>) -> Result<bool, HistoryError>,
) -> Result<(), HistoryError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(HistoryError::io("open", path)(error)),
    };
    let mut reader = BufReader::with_capacity(256 << 10, file);
    let (mut line, mut offset) = (Vec::new(), 0);
    loop {
        line.clear();
        let read = io::Read::take(&mut reader, MAX_LINE_BYTES)
            .read_until(b'\n', &mut line)
            .map_err(HistoryError::io("read", path))?;
        let Some((b'\n', text)) = line.split_last() else {
            return Ok(());
        };
        if text.starts_with(b"{") && !visit(StoredLine { text, offset })? {
            return Ok(());
        }
        offset += read as u64;
    }
}

fn is_older(time: SystemTime, age: Duration) -> bool {
    SystemTime::now()
        .duration_since(time)
        .is_ok_and(|elapsed| elapsed > age)
}
