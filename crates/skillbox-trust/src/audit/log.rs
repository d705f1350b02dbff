//! Appends records. Threads and processes may append at the same time.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use serde_json::json;
use skillbox_model::{Digest, ErrorCode, RunId};

use super::attestation::{check_line, to_line};
use super::chain_anchor::{ChainAnchor, read_anchored_head};
use super::clock::now_ms;
use super::event::{AuditEvent, Caller, RunDescription, RunEnd};
use super::forward::first_unforwarded_file;
use super::head::{HEAD_BYTES, HEAD_FILE, Head};
use super::log_files::{FileLock, LOCK_TIMEOUT, log_numbers, log_path, open_private, visit_lines};
use super::open_runs::{OpenRun, OpenRuns, find_dead_processes};
use crate::private_file::create_private_dir;
use crate::{HostKey, TrustError};

/// A checkpoint signs at least every 64th record, and the first record after ten minutes.
pub(super) const CHECKPOINT_RECORDS: u32 = 64;
const CHECKPOINT_MS: u64 = 10 * 60 * 1000;
/// The run has happened: its end waits much longer for the lock than a start, which can be refused.
const END_TIMEOUT: Duration = Duration::from_secs(120);
const END_PAUSE: Duration = Duration::from_millis(5);
const OCSF_VERSION: &str = "1.9.0";

/// Whether and how records are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditMode {
    /// A record survives the death of the process.
    #[default]
    On,
    /// A record survives a power failure: it is synced to disk before the result.
    Sync,
    /// Nothing is recorded.
    Off,
}

/// The settings of a log.
#[derive(Clone, Debug)]
pub struct AuditSettings {
    /// Whether and how records are written.
    pub mode: AuditMode,
    /// The name of this host.
    pub host: String,
    /// A log file of this size is followed by a new one.
    pub max_file_bytes: u64,
    /// The oldest files beyond this number are removed.
    pub max_files: usize,
    /// Whether a file is kept until its records are forwarded. A log that is full of other records refuses new runs.
    pub is_forwarded: bool,
    /// How long a start waits for other processes that write.
    pub lock_timeout: Duration,
}

impl Default for AuditSettings {
    fn default() -> Self {
        Self {
            mode: AuditMode::On,
            host: "localhost".to_owned(),
            max_file_bytes: 64 << 20,
            max_files: 1_000,
            is_forwarded: false,
            lock_timeout: LOCK_TIMEOUT,
        }
    }
}

/// The audit log of a trust directory.
#[derive(Debug)]
pub struct AuditLog {
    directory: PathBuf,
    anchor_path: PathBuf,
    key: Arc<HostKey>,
    settings: AuditSettings,
    lock: File,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    head_file: File,
    /// The head as this process last read or wrote it; `None` before.
    known: Option<(Vec<u8>, Head)>,
    log: Option<(u64, File)>,
    open_runs: Option<OpenRuns>,
}

/// A run whose start is recorded. Without [`AuditLog::end_run`], it is closed as lost after the death of this process.
#[derive(Debug)]
#[must_use]
pub struct AuditRun {
    run_id: RunId,
    caller: Caller,
    slot: Option<usize>,
}

impl AuditLog {
    /// Opens the log of a trust directory, creates it on first use, and closes the runs of processes that died.
    pub fn open(trust_dir: &Path, key: Arc<HostKey>, settings: AuditSettings) -> Result<Self, TrustError> {
        let directory = trust_dir.join("audit");
        create_private_dir(&directory)?;
        let log = Self {
            lock: open_private(&directory.join("lock"), false)?,
            state: Mutex::new(State {
                head_file: open_private(&directory.join(HEAD_FILE), false)?,
                known: None,
                log: None,
                open_runs: None,
            }),
            anchor_path: ChainAnchor::path(trust_dir),
            directory,
            key,
            settings,
        };
        if log.settings.mode != AuditMode::Off {
            log.close_lost_runs()?;
        }
        Ok(log)
    }

    /// Records that a run is about to start. If this fails, the run must not start.
    pub fn start_run(&self, caller: &Caller, run: &RunDescription) -> Result<AuditRun, TrustError> {
        let mut audit_run = AuditRun {
            run_id: run.run_id.clone(),
            caller: caller.clone(),
            slot: None,
        };
        if self.settings.mode == AuditMode::Off {
            return Ok(audit_run);
        }
        let mut state = self.lock_state();
        let _lock = self.lock_file()?;
        let head = self.head_with_space(&mut state)?;
        if state.open_runs.is_none() {
            state.open_runs = Some(OpenRuns::create(&self.directory)?);
        }
        let open_run = OpenRun {
            run: run.run_id.clone(),
            file: head.file,
            offset: head.offset,
        };
        if let Some(open_runs) = &mut state.open_runs {
            audit_run.slot = Some(open_runs.insert(&open_run)?);
        }
        let result = self.append_locked(&mut state, caller, &AuditEvent::RunStarted(run));
        if result.is_err()
            && let (Some(open_runs), Some(slot)) = (&mut state.open_runs, audit_run.slot)
        {
            open_runs.remove(slot)?;
        }
        result.map(|()| audit_run)
    }

    /// Records that a run ended.
    pub fn end_run(&self, run: AuditRun, end: &RunEnd) -> Result<(), TrustError> {
        if self.settings.mode == AuditMode::Off {
            return Ok(());
        }
        let deadline = Instant::now() + END_TIMEOUT;
        loop {
            match self.try_end_run(&run, end) {
                // Other threads get their turn meanwhile.
                Err(TrustError::Locked { .. }) if Instant::now() < deadline => std::thread::sleep(END_PAUSE),
                result => return result,
            }
        }
    }

    fn try_end_run(&self, run: &AuditRun, end: &RunEnd) -> Result<(), TrustError> {
        let mut state = self.lock_state();
        let _lock = self.lock_file()?;
        self.append_locked(&mut state, &run.caller, &AuditEvent::RunEnded(&run.run_id, end))?;
        match (&mut state.open_runs, run.slot) {
            (Some(open_runs), Some(slot)) => open_runs.remove(slot),
            _ => Ok(()),
        }
    }

    /// Records another event.
    pub fn append(&self, caller: &Caller, event: &AuditEvent<'_>) -> Result<(), TrustError> {
        if self.settings.mode == AuditMode::Off {
            return Ok(());
        }
        let mut state = self.lock_state();
        let _lock = self.lock_file()?;
        self.head_with_space(&mut state)?;
        self.append_locked(&mut state, caller, event)
    }

    /// The end of a log that may grow. The end of a run is recorded even in a log that is full: such records are few.
    fn head_with_space(&self, state: &mut State) -> Result<Head, TrustError> {
        let mut head = self.current_head(state)?;
        let max_files = self.settings.max_files.max(1) as u64;
        let is_full = |head: &Head| head.file - head.first_file > max_files;
        if !self.settings.is_forwarded || !is_full(&head) {
            return Ok(head);
        }
        // The receiver may have got the oldest files since the last rotation.
        let released = self.release_oldest_files(&mut head)?;
        if is_full(&head) {
            return Err(TrustError::NotForwarded {
                path: self.directory.clone(),
            });
        }
        self.write_head(state, head.clone())?;
        self.remove_files(&released)?;
        Ok(head)
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_file(&self) -> Result<FileLock<'_>, TrustError> {
        let path = self.directory.join("lock");
        let operation = FlockOperation::NonBlockingLockExclusive;
        FileLock::acquire(&self.lock, &path, operation, self.settings.lock_timeout)
    }

    fn append_locked(&self, state: &mut State, caller: &Caller, event: &AuditEvent<'_>) -> Result<(), TrustError> {
        let mut head = self.current_head(state)?;
        let now_ms = now_ms();
        let mut fields = event.to_fields(caller, now_ms, &self.settings.host);
        let metadata = json!({
            "product": {"name": "skillbox", "vendor_name": "skillbox", "version": env!("CARGO_PKG_VERSION")},
            "profiles": ["record_integrity"],
            "sequence": head.next,
            "version": OCSF_VERSION,
        });
        fields.insert("metadata".to_owned(), metadata);
        let is_last_of_file = head.offset >= self.settings.max_file_bytes;
        let is_checkpoint = is_last_of_file
            || head.since_checkpoint + 1 >= CHECKPOINT_RECORDS
            || now_ms.saturating_sub(head.checkpoint_ms) >= CHECKPOINT_MS;
        let (line, fingerprint) = to_line(fields, &head.chain, head.last.as_ref(), &self.key, is_checkpoint);
        self.write_line(state, &head, line.as_bytes())?;
        advance(
            &mut head,
            line.len() as u64,
            fingerprint,
            is_checkpoint.then_some(now_ms),
        );
        let mut released = Vec::new();
        if is_last_of_file {
            head.file += 1;
            head.offset = 0;
            released = self.release_oldest_files(&mut head)?;
        }
        self.write_head(state, head)?;
        if let (true, Some((_, head))) = (is_checkpoint, &state.known) {
            ChainAnchor::of(head).write(&self.anchor_path, &self.key)?;
        }
        self.remove_files(&released)
    }

    fn write_line(&self, state: &mut State, head: &Head, line: &[u8]) -> Result<(), TrustError> {
        let path = log_path(&self.directory, head.file);
        let Some((_, file)) = &mut state.log else {
            return Err(TrustError::io("open", &path)(io::ErrorKind::NotFound.into()));
        };
        let mut result = file.write_all(line);
        if result.is_ok() && self.settings.mode == AuditMode::Sync {
            result = file.sync_data();
        }
        result.map_err(|error| {
            // A full disk may have taken a part of the line.
            let _ = file.set_len(head.offset);
            TrustError::io("write", &path)(error)
        })
    }

    fn write_head(&self, state: &mut State, head: Head) -> Result<(), TrustError> {
        let bytes = head.to_bytes(&self.key);
        let mut result = state.head_file.write_all_at(&bytes, 0);
        if result.is_ok() && self.settings.mode == AuditMode::Sync {
            result = state.head_file.sync_data();
        }
        result.map_err(TrustError::io("write", &self.directory.join(HEAD_FILE)))?;
        state.known = Some((bytes, head));
        Ok(())
    }

    /// The end of the log, after what other processes appended.
    fn current_head(&self, state: &mut State) -> Result<Head, TrustError> {
        let path = self.directory.join(HEAD_FILE);
        let mut bytes = vec![0; HEAD_BYTES];
        let read = state
            .head_file
            .read_at(&mut bytes, 0)
            .map_err(TrustError::io("read", &path))?;
        bytes.truncate(read);
        let (head, anchor) = match &state.known {
            Some((known, head)) if *known == bytes => (head.clone(), None),
            _ => {
                let (head, anchor) = read_anchored_head(&self.directory, &self.anchor_path, &bytes, &self.key)?;
                if bytes.is_empty() {
                    self.write_head(state, head.clone())?;
                }
                (head, Some(anchor))
            }
        };
        if state.log.as_ref().is_none_or(|(number, _)| *number != head.file) {
            let log_path = log_path(&self.directory, head.file);
            state.log = Some((head.file, open_private(&log_path, true)?));
        }
        let before = state.known.as_ref().map(|(_, head)| (head.next, head.last));
        let mut head = self.recover(state, head)?;
        if let Some(anchor) = anchor {
            // Somebody may have restored an earlier copy.
            head.go_on_after(anchor.next, anchor.last);
            if let Some((next, last)) = before {
                head.go_on_after(next, last);
            }
        }
        Ok(head)
    }

    /// Completes what a process that died left behind: records that the head does not have yet, or a part of one.
    fn recover(&self, state: &mut State, mut head: Head) -> Result<Head, TrustError> {
        let path = log_path(&self.directory, head.file);
        let Some((_, file)) = &mut state.log else {
            return Ok(head);
        };
        let size = file.metadata().map_err(TrustError::io("read", &path))?.len();
        if size < head.offset {
            // Records were lost. The chain goes on from the lost record, so that every verification reports the gap.
            head.offset = size;
            return Ok(head);
        }
        if size == head.offset {
            return Ok(head);
        }
        let authority = self.key.id();
        let mut foreign = None;
        visit_lines(&path, head.offset, |line, is_complete| {
            match check_line(line) {
                Ok(record)
                    if is_complete
                        && record.authority == authority
                        && record.chain == head.chain
                        && record.sequence == head.next
                        && record.previous == head.last
                        && record.has_tag_of(&self.key) =>
                {
                    let checkpoint = record.signature.map(|_| now_ms());
                    advance(&mut head, line.len() as u64 + 1, record.fingerprint, checkpoint);
                }
                _ if !is_complete => {}
                _ => foreign = Some(head.offset),
            }
            Ok(foreign.is_none())
        })?;
        if let Some(offset) = foreign {
            return Err(TrustError::NotAuthentic {
                code: ErrorCode::Storage,
                path,
                problem: format!(
                    "no process of skillbox wrote the bytes from {offset} on; see `skillbox audit verify`"
                ),
            });
        }
        file.set_len(head.offset).map_err(TrustError::io("shorten", &path))?;
        self.write_head(state, head.clone())?;
        Ok(head)
    }

    /// Moves the start of the log behind the oldest files, and returns their numbers. They are removed when the head is
    /// written: after a crash, the log has a file too many and none too few.
    fn release_oldest_files(&self, head: &mut Head) -> Result<Vec<u64>, TrustError> {
        let mut numbers = log_numbers(&self.directory)?;
        let mut surplus = numbers.len().saturating_sub(self.settings.max_files.max(1));
        if self.settings.is_forwarded && surplus > 0 {
            let kept = first_unforwarded_file(&self.directory, &head.chain)?;
            surplus = surplus.min(numbers.partition_point(|number| *number < kept));
        }
        let Some(kept) = numbers.get(surplus).filter(|_| surplus > 0) else {
            return Ok(Vec::new());
        };
        visit_lines(&log_path(&self.directory, *kept), 0, |line, _| {
            head.first_previous = check_line(line).ok().and_then(|record| record.previous);
            Ok(false)
        })?;
        head.first_file = *kept;
        numbers.truncate(surplus);
        Ok(numbers)
    }

    fn remove_files(&self, numbers: &[u64]) -> Result<(), TrustError> {
        for number in numbers {
            let path = log_path(&self.directory, *number);
            std::fs::remove_file(&path).map_err(TrustError::io("remove", &path))?;
        }
        Ok(())
    }

    /// Removes the files that a process which died left before the start of the log.
    fn remove_released_files(&self, head: &Head) -> Result<(), TrustError> {
        let mut numbers = log_numbers(&self.directory)?;
        numbers.retain(|number| *number < head.first_file);
        self.remove_files(&numbers)
    }

    fn close_lost_runs(&self) -> Result<(), TrustError> {
        let mut state = self.lock_state();
        let _lock = self.lock_file()?;
        let head = self.current_head(&mut state)?;
        self.remove_released_files(&head)?;
        for process in find_dead_processes(&self.directory)? {
            for open_run in &process.runs {
                if self.is_open(open_run)? {
                    self.append_locked(&mut state, &Caller::default(), &AuditEvent::RunLost(&open_run.run))?;
                }
            }
            process.remove()?;
        }
        Ok(())
    }

    /// Whether the log has the start of a run and not its end.
    fn is_open(&self, open_run: &OpenRun) -> Result<bool, TrustError> {
        let id = format!("\"uid\":\"{}\"", open_run.run);
        let (mut is_started, mut is_ended) = (false, false);
        for number in log_numbers(&self.directory)?
            .into_iter()
            .filter(|number| *number >= open_run.file)
        {
            let offset = if number == open_run.file { open_run.offset } else { 0 };
            visit_lines(&log_path(&self.directory, number), offset, |line, _| {
                if line.windows(id.len()).any(|window| window == id.as_bytes()) {
                    is_started |= line.starts_with(b"{\"activity_id\":1,");
                    is_ended |= line.starts_with(b"{\"activity_id\":2,");
                }
                Ok(!is_ended)
            })?;
        }
        Ok(is_started && !is_ended)
    }
}

fn advance(head: &mut Head, bytes: u64, fingerprint: Digest, checkpoint_ms: Option<u64>) {
    head.offset += bytes;
    head.next += 1;
    head.last = Some(fingerprint);
    head.since_checkpoint += 1;
    if let Some(time) = checkpoint_ms {
        head.since_checkpoint = 0;
        head.checkpoint_ms = time;
    }
}
