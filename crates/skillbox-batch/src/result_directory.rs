//! The directory of `--out`: which batch it belongs to, its results, and the files of its jobs.
//!
//! `batch.json` names the batch, `results.jsonl` has one line for each finished job, `jobs/ID/` its files. A lock keeps a
//! second process out. A directory that somebody else prepared may contain links: none is followed.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use skillbox_model::{Digest, ErrorCode, JobId};

use crate::error::BatchError;
use crate::result_line::{JobStatus, ResultHead};
use crate::result_writer::ResultWriter;

const LOCK_FILE: &str = "batch.lock";
const RECORD_FILE: &str = "batch.json";
const RESULTS_FILE: &str = "results.jsonl";
const SUMMARY_FILE: &str = "summary.json";
const FAILED_FILE: &str = "failed.txt";
const JOBS_DIRECTORY: &str = "jobs";
const RECORD_VERSION: u32 = 1;
/// Many times the size of a record.
const MAX_RECORD_BYTES: u64 = 1 << 20;
/// With less free space than this, a failed write means that the disk is full.
const MIN_FREE_BYTES: u64 = 1 << 20;

/// Receives a line and what it says.
type VisitResult<'a> = dyn FnMut(&[u8], ResultHead) -> Result<(), BatchError> + 'a;
/// Receives a line and what it says; `None` for a line that a crash damaged.
type VisitLine<'a> = dyn FnMut(&[u8], Option<ResultHead>) -> Result<(), BatchError> + 'a;

/// Which batch a directory belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchRecord {
    version: u32,
    /// The digest of the job list's path, or of the template and its patterns.
    identity: Digest,
    /// The batch for people.
    pub description: String,
    /// The number of jobs at the last start.
    pub jobs: usize,
}

impl BatchRecord {
    /// The record of a batch. Only `identity` decides whether two batches are the same.
    pub fn new(identity: &[u8], description: String, jobs: usize) -> Self {
        Self {
            version: RECORD_VERSION,
            identity: Digest::from_sha256(Sha256::digest(identity).into()),
            description,
            jobs,
        }
    }

    /// Whether both are records of the same batch.
    pub(crate) fn is_same_batch(&self, other: &Self) -> bool {
        (self.version, self.identity) == (other.version, other.identity)
    }
}

/// The durable results that a directory has.
#[derive(Debug, Default)]
pub struct ExistingResults {
    pub(crate) by_id: HashMap<JobId, (Option<Digest>, JobStatus)>,
    /// Lines that a crash damaged. Their jobs have no result.
    pub damaged_lines: usize,
}

impl ExistingResults {
    /// The number of jobs with a result.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether no job has a result.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }
}

/// A result directory that this process has locked.
#[derive(Debug)]
pub struct ResultDirectory {
    path: PathBuf,
    root: File,
    _lock: File,
}

impl ResultDirectory {
    /// Creates the directory, or with `resume` opens that of the same batch.
    pub fn open(path: &Path, record: &BatchRecord, resume: bool) -> Result<(Self, ExistingResults), BatchError> {
        let io_error = |source| io_error("create", path, source);
        fs::create_dir_all(path).map_err(io_error)?;
        let root = File::open(path).map_err(io_error)?;
        let has_record = read_record(path, &root)?;
        if has_record.is_none() && has_other_files(path).map_err(io_error)? {
            let message = "the directory has other files".to_owned();
            return Err(refusal(
                path,
                message,
                ErrorCode::AlreadyExists,
                "name a new directory with --out",
            ));
        }
        let lock = lock(path, &root)?;
        match read_record(path, &root)? {
            Some(found) if found.identity != record.identity => {
                let message = format!("the directory belongs to another batch: {}", found.description);
                return Err(refusal(
                    path,
                    message,
                    ErrorCode::AlreadyExists,
                    "name another directory with --out",
                ));
            }
            Some(_) if !resume => {
                let message = "the directory has results of this batch".to_owned();
                let hint = "add --resume to run what is left, or name another directory with --out";
                return Err(refusal(path, message, ErrorCode::AlreadyExists, hint));
            }
            _ => {}
        }
        let directory = Self {
            path: path.to_owned(),
            root,
            _lock: lock,
        };
        directory.write_whole(RECORD_FILE, &to_json(record))?;
        directory.create_jobs_directory()?;
        let existing = read_existing(path)?;
        Ok((directory, existing))
    }

    /// Creates the directory of the jobs' files, which must be a directory and no link to one.
    fn create_jobs_directory(&self) -> Result<(), BatchError> {
        let path = self.path.join(JOBS_DIRECTORY);
        match mkdirat(&self.root, JOBS_DIRECTORY, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(io_error("create", &path, error.into())),
        }
        open_beneath(&self.root, JOBS_DIRECTORY, OFlags::RDONLY | OFlags::DIRECTORY)
            .map_err(|source| io_error("open", &path, source))?;
        Ok(())
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory for the files of a job.
    pub(crate) fn job_directory(&self, id: &JobId) -> PathBuf {
        self.path.join(JOBS_DIRECTORY).join(id.as_str())
    }

    /// Removes the files of an earlier attempt.
    pub(crate) fn remove_job_files(&self, id: &JobId) -> io::Result<()> {
        match fs::remove_dir_all(self.job_directory(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes the directory of a job without files, and returns whether files are left.
    pub(crate) fn has_job_files(&self, id: &JobId) -> bool {
        fs::remove_dir(self.job_directory(id)).is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
    }

    /// Whether the disk of the results is full.
    pub(crate) fn is_disk_full(&self) -> bool {
        rustix::fs::fstatvfs(&self.root).is_ok_and(|stat| stat.f_bavail.saturating_mul(stat.f_frsize) < MIN_FREE_BYTES)
    }

    /// Keeps only these results. The others have to run again.
    pub(crate) fn retain_results(&self, keep: &dyn Fn(&ResultHead) -> bool) -> Result<(), BatchError> {
        let temporary = format!("{RESULTS_FILE}.new");
        let path = self.path.join(&temporary);
        let failed = |source| io_error("write", &path, source);
        let mut output = BufWriter::new(self.create_new(&temporary).map_err(failed)?);
        for_each_line(&self.path, &mut |line, head| match head {
            Some(head) if keep(&head) => output.write_all(line).map_err(failed),
            _ => Ok(()),
        })?;
        let file = output.into_inner().map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(failed)?;
        self.rename(&temporary, RESULTS_FILE)
    }

    /// Opens the results for appending.
    pub(crate) fn writer(&self) -> Result<ResultWriter, BatchError> {
        let path = self.path.join(RESULTS_FILE);
        let failed = |source| io_error("open", &path, source);
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
        let file = open_beneath(&self.root, RESULTS_FILE, flags).map_err(failed)?;
        self.root.sync_all().map_err(failed)?;
        let root = self.root.try_clone().map_err(failed)?;
        ResultWriter::new(file, root).map_err(failed)
    }

    /// Writes the summary and the list of failed jobs.
    pub(crate) fn write_summary(&self, summary: &[u8], failed: &str) -> Result<(), BatchError> {
        self.write_whole(FAILED_FILE, failed.as_bytes())?;
        self.write_whole(SUMMARY_FILE, summary)
    }

    /// Replaces a file by new content. After a crash it has the old or the new content.
    fn write_whole(&self, name: &str, content: &[u8]) -> Result<(), BatchError> {
        let temporary = format!("{name}.new");
        let written = self.create_new(&temporary).and_then(|mut file| {
            file.write_all(content)?;
            file.sync_all()
        });
        written.map_err(|source| io_error("write", &self.path.join(&temporary), source))?;
        self.rename(&temporary, name)
    }

    /// Creates a file in place of whatever has its name: a file that a crash left, or a link.
    fn create_new(&self, name: &str) -> io::Result<File> {
        match unlinkat(&self.root, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        open_beneath(&self.root, name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)
    }

    fn rename(&self, from: &str, name: &str) -> Result<(), BatchError> {
        let renamed = renameat(&self.root, from, &self.root, name).map_err(io::Error::from);
        let synced = renamed.and_then(|()| self.root.sync_all());
        synced.map_err(|source| io_error("write", &self.path.join(name), source))
    }
}

/// Opens a regular file or a directory of a result directory. A link is an error, wherever it leads.
fn open_beneath(root: &File, name: &str, flags: OFlags) -> io::Result<File> {
    // Opening does not wait for the other end of a FIFO.
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(root, name, flags, Mode::from_raw_mode(0o666)) {
        Ok(file) => File::from(file),
        Err(Errno::LOOP | Errno::NOTDIR) => {
            let message = "it is a link or has another type; nothing in this directory may be a link";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Err(error) => return Err(error.into()),
    };
    let file_type = file.metadata()?.file_type();
    if file_type.is_file() || file_type.is_dir() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
}

/// Opens a file of a result directory that this process has not locked.
fn open_in(path: &Path, name: &str) -> io::Result<File> {
    open_beneath(&File::open(path)?, name, OFlags::RDONLY)
}

/// The record of a directory; none if it has none.
fn read_record(path: &Path, root: &File) -> Result<Option<BatchRecord>, BatchError> {
    let file = path.join(RECORD_FILE);
    let read = open_beneath(root, RECORD_FILE, OFlags::RDONLY).and_then(|file| {
        let mut text = Vec::new();
        file.take(MAX_RECORD_BYTES).read_to_end(&mut text)?;
        Ok(text)
    });
    let text = match read {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(io_error("read", &file, source)),
    };
    match serde_json::from_slice::<BatchRecord>(&text) {
        Ok(record) if record.version == RECORD_VERSION => Ok(Some(record)),
        _ => {
            let message = format!("{RECORD_FILE} is not the record of a batch of this version");
            Err(refusal(
                path,
                message,
                ErrorCode::Storage,
                "name another directory with --out",
            ))
        }
    }
}

/// The record of a directory that must have one.
pub(crate) fn require_record(path: &Path) -> Result<BatchRecord, BatchError> {
    let no_batch = || {
        let message = "the directory has no batch".to_owned();
        refusal(
            path,
            message,
            ErrorCode::InvalidRequest,
            "name the directory of `batch run --out`",
        )
    };
    let root = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(no_batch()),
        root => root.map_err(|source| io_error("open", path, source))?,
    };
    read_record(path, &root)?.ok_or_else(no_batch)
}

/// Calls `visit` with each result of a batch: its line and what it says.
pub fn read_results(path: &Path, visit: &mut VisitResult<'_>) -> Result<(), BatchError> {
    require_record(path)?;
    for_each_line(path, &mut |line, head| head.map_or(Ok(()), |head| visit(line, head)))
}

/// Whether another process works in the directory.
pub(crate) fn is_locked(path: &Path) -> bool {
    let Ok(file) = open_in(path, LOCK_FILE) else {
        return false;
    };
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).is_err()
}

/// The results of a directory, without locking it.
pub fn read_existing(path: &Path) -> Result<ExistingResults, BatchError> {
    let mut existing = ExistingResults::default();
    for_each_line(path, &mut |_, head| {
        match head {
            Some(head) => {
                existing.by_id.insert(head.id, (head.key, head.status));
            }
            None => existing.damaged_lines += 1,
        }
        Ok(())
    })?;
    Ok(existing)
}

/// Calls `visit` with each line of the results and what it says; `None` for a line that a crash damaged.
pub(crate) fn for_each_line(path: &Path, visit: &mut VisitLine<'_>) -> Result<(), BatchError> {
    let file_path = path.join(RESULTS_FILE);
    let failed = |source| io_error("read", &file_path, source);
    let file = match open_in(path, RESULTS_FILE) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            return Ok(());
        }
        // A line without its end was being written when the process or the machine died.
        let head = line
            .ends_with(b"\n")
            .then(|| serde_json::from_slice(&line).ok())
            .flatten();
        visit(&line, head)?;
    }
}

fn lock(path: &Path, root: &File) -> Result<File, BatchError> {
    let opened = open_beneath(root, LOCK_FILE, OFlags::WRONLY | OFlags::CREATE);
    let opened = opened.map_err(|source| io_error("open", &path.join(LOCK_FILE), source))?;
    rustix::fs::flock(&opened, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        let message = "another process runs a batch in this directory".to_owned();
        refusal(
            path,
            message,
            ErrorCode::Busy,
            "wait for its end, or name another directory with --out",
        )
    })?;
    Ok(opened)
}

fn has_other_files(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        // A process that was killed before it wrote the record left only these.
        if name != LOCK_FILE && name != format!("{RECORD_FILE}.new").as_str() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn refusal(path: &Path, message: String, code: ErrorCode, hint: &str) -> BatchError {
    BatchError::Directory {
        path: path.to_owned(),
        message,
        code,
        hint: hint.to_owned(),
    }
}

pub(crate) fn io_error(action: &'static str, path: &Path, source: io::Error) -> BatchError {
    BatchError::Io {
        action,
        path: path.to_owned(),
        source,
    }
}

pub(crate) fn to_json(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).unwrap_or_else(|error| unreachable!("all keys are text: {error}"));
    text.push(b'\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str =
        r#"{"id":"ID","key":null,"status":"failed","cause":"exit","reason":"x","attempts":1,"stdout":"a"}"#;

    fn line(id: &str) -> String {
        format!("{}\n", LINE.replace("ID", id))
    }

    fn record(identity: &str) -> BatchRecord {
        BatchRecord::new(identity.as_bytes(), identity.to_owned(), 3)
    }

    #[test]
    fn a_directory_belongs_to_one_batch_and_one_process() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        let code = |resume, identity: &str| match ResultDirectory::open(&path, &record(identity), resume) {
            Ok(_) => None,
            Err(error) => Some(error.body().code),
        };
        let (open, _) = ResultDirectory::open(&path, &record("a"), true).unwrap();
        assert_eq!(code(true, "a"), Some(ErrorCode::Busy));
        assert!(is_locked(&path));
        drop(open);
        assert!(!is_locked(&path));
        assert_eq!(code(false, "a"), Some(ErrorCode::AlreadyExists));
        assert_eq!(code(true, "b"), Some(ErrorCode::AlreadyExists));
        assert_eq!(code(true, "a"), None);
        let other = directory.path().join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("mine"), "").unwrap();
        assert!(ResultDirectory::open(&other, &record("a"), true).is_err());
        assert_eq!(
            fs::read_dir(&other).unwrap().count(),
            1,
            "a refused directory stays as it was"
        );
    }

    #[test]
    fn links_in_a_prepared_directory_are_not_followed() {
        use std::os::unix::fs::symlink;
        let directory = tempfile::tempdir().unwrap();
        let victim = directory.path().join("victim");
        fs::create_dir(&victim).unwrap();
        fs::write(victim.join("file"), "kept").unwrap();
        let open = |path: &Path, resume| ResultDirectory::open(path, &record("a"), resume);

        // Left-over temporary files and locks may be in a new directory.
        let fresh = directory.path().join("fresh");
        fs::create_dir(&fresh).unwrap();
        symlink(victim.join("file"), fresh.join("batch.json.new")).unwrap();
        drop(open(&fresh, false).unwrap());
        assert_eq!(fs::read_to_string(victim.join("file")).unwrap(), "kept");
        let locked = directory.path().join("locked");
        fs::create_dir(&locked).unwrap();
        symlink(victim.join("created"), locked.join(LOCK_FILE)).unwrap();
        assert!(open(&locked, false).is_err());
        assert!(!victim.join("created").exists());

        // A directory with the record of the batch.
        for name in [RESULTS_FILE, "jobs", RECORD_FILE] {
            let path = directory.path().join(format!("resumed-{name}"));
            drop(open(&path, false).unwrap());
            let _ = fs::remove_file(path.join(name)).or_else(|_| fs::remove_dir(path.join(name)));
            let target = if name == "jobs" {
                victim.clone()
            } else {
                victim.join("file")
            };
            symlink(target, path.join(name)).unwrap();
            assert!(open(&path, true).is_err(), "{name}");
        }
        let control = directory.path().join("control");
        let (opened, _) = open(&control, false).unwrap();
        symlink(victim.join("file"), control.join("summary.json.new")).unwrap();
        symlink(&victim, control.join("jobs/one")).unwrap();
        opened.write_summary(b"{}", "").unwrap();
        opened
            .remove_job_files(&JobId::parse("one".to_owned()).unwrap())
            .unwrap();
        assert!(!control.join("jobs/one").exists());
        assert_eq!(fs::read_to_string(control.join("summary.json")).unwrap(), "{}");
        assert_eq!(fs::read_to_string(victim.join("file")).unwrap(), "kept");
    }

    #[test]
    fn a_line_that_a_crash_cut_off_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        drop(ResultDirectory::open(&path, &record("a"), false).unwrap());
        let whole = line("one") + &line("two");
        for torn in [
            "{\"id\":\"three\",\"st",
            &line("three")[..20],
            "\0\0\0\0",
            &line("three").replace('\n', ""),
        ] {
            fs::write(path.join(RESULTS_FILE), format!("{whole}{torn}")).unwrap();
            let (open, existing) = ResultDirectory::open(&path, &record("a"), true).unwrap();
            assert_eq!((existing.len(), existing.damaged_lines), (2, 1), "{torn:?}");
            open.retain_results(&|_| true).unwrap();
            assert_eq!(fs::read_to_string(path.join(RESULTS_FILE)).unwrap(), whole);
            open.retain_results(&|head| head.id.as_str() == "two").unwrap();
            assert_eq!(fs::read_to_string(path.join(RESULTS_FILE)).unwrap(), line("two"));
        }
    }
}
