//! The history of a state directory: running and past runs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use skillbox_executor::CancelToken;
use skillbox_model::{ErrorBody, RunId, RunReport, SessionId, TenantName};

use super::error::HistoryError;
use super::kill_listener::request_kill;
use super::past_run::{PastRun, RunStatus, RunSummary, StoredSummary, without_content};
use super::run_filter::{RunFilter, TenantFilter};
use super::running_runs::{ProcessTable, RunTable, read_tables};
pub use super::segments::HistoryLimits;
use super::segments::Segments;

/// How long a killed run may take to end.
const KILL_TIMEOUT: Duration = Duration::from_secs(15);
const KILL_POLL: Duration = Duration::from_millis(20);

/// The history of a state directory.
#[derive(Debug)]
pub struct RunHistory {
    directory: PathBuf,
    running: PathBuf,
    limits: HistoryLimits,
    segments: Mutex<Segments>,
    /// The runs of this process; created by the first one.
    table: Mutex<Option<RunTable>>,
}

/// Runs, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RunList {
    /// The runs.
    pub runs: Vec<RunSummary>,
    /// Whether more runs match.
    pub has_more: bool,
    /// Lines that are not records.
    pub unreadable: usize,
}

/// What is known of a run when it starts.
pub(crate) struct RunStart<'a> {
    pub(crate) run_id: &'a RunId,
    pub(crate) skill: &'a str,
    pub(crate) tenant: Option<&'a TenantName>,
    pub(crate) session: Option<&'a SessionId>,
    pub(crate) command: String,
    pub(crate) cancel: &'a CancelToken,
}

/// A run that is listed as running.
#[derive(Debug)]
pub(crate) struct RegisteredRun {
    run: PastRun,
    slot: Option<usize>,
}

impl RunHistory {
    /// The history below a state directory. The first run creates its files.
    pub fn new(state_dir: &std::path::Path, limits: HistoryLimits) -> Self {
        let directory = state_dir.join("history");
        Self {
            running: state_dir.join("running"),
            segments: Mutex::new(Segments::new(directory.clone(), limits)),
            table: Mutex::new(None),
            directory,
            limits,
        }
    }

    /// Lists a run as running. Without a history, it cannot be killed by another process either.
    pub(crate) fn start(&self, start: RunStart<'_>) -> Result<Option<RegisteredRun>, HistoryError> {
        if self.limits.runs == 0 {
            return Ok(None);
        }
        let run = PastRun {
            run_id: start.run_id.clone(),
            status: RunStatus::Running,
            skill: start.skill.to_owned(),
            tenant: start.tenant.cloned(),
            session: start.session.cloned(),
            command: start.command,
            started_ms: now_ms(),
            ended_ms: None,
            report: None,
            error: None,
        };
        let mut table = lock(&self.table);
        if table.is_none() {
            *table = Some(RunTable::create(&self.running)?);
            drop(table);
            self.close_lost_runs()?;
            table = lock(&self.table);
        }
        let slot = match &mut *table {
            Some(table) => Some(table.insert(&run, start.cancel)?),
            None => None,
        };
        Ok(Some(RegisteredRun { run, slot }))
    }

    /// Stores how a run ended. Only now it is known which values its command may not contain.
    pub(crate) fn end(
        &self,
        registered: RegisteredRun,
        command: String,
        outcome: Result<&RunReport, ErrorBody>,
    ) -> Result<(), HistoryError> {
        let RegisteredRun { run, slot } = registered;
        let (status, report, error) = match outcome {
            Ok(report) => (RunStatus::Ended, Some(without_content(report)), None),
            Err(error) => (RunStatus::Refused, None, Some(error)),
        };
        let ended = PastRun {
            status,
            report,
            error,
            command,
            ended_ms: Some(now_ms()),
            ..run
        };
        let stored = self.store(&ended);
        if let (Some(table), Some(slot)) = (&mut *lock(&self.table), slot) {
            table.remove(slot, &ended.run_id)?;
        }
        stored
    }

    /// The runs that a filter selects, the newest first.
    pub fn list(&self, filter: &RunFilter) -> Result<RunList, HistoryError> {
        let mut selected: BTreeMap<RunId, RunSummary> = BTreeMap::new();
        let mut unreadable = 0;
        let oldest_ms = now_ms().saturating_sub(u64::try_from(self.limits.age.as_millis()).unwrap_or(u64::MAX));
        for table in self.close_lost_runs()? {
            let runs = table.runs.into_iter().map(|run| summary_of(&run));
            selected.extend(
                runs.filter(|run| filter.matches(run))
                    .map(|run| (run.run_id.clone(), run)),
            );
        }
        Segments::visit(&self.directory, |_, line| {
            match serde_json::from_slice::<StoredSummary>(line.text) {
                Ok(stored) => {
                    let run = RunSummary::from(stored);
                    let is_known_better = run.status == RunStatus::Lost
                        && selected
                            .get(&run.run_id)
                            .is_some_and(|known| known.status != RunStatus::Running);
                    if run.started_ms >= oldest_ms && filter.matches(&run) && !is_known_better {
                        selected.insert(run.run_id.clone(), run);
                    }
                }
                Err(_) => unreadable += 1,
            }
            Ok(true)
        })?;
        let limit = filter.limit.unwrap_or(usize::MAX).min(self.limits.runs.max(1));
        let has_more = selected.len() > limit;
        Ok(RunList {
            runs: selected.into_values().rev().take(limit).collect(),
            has_more,
            unreadable,
        })
    }

    /// One run of these tenants with its report.
    pub fn show(&self, id: &RunId, tenant: &TenantFilter) -> Result<PastRun, HistoryError> {
        let mut found = self.find_running(id)?.map(|(run, _)| run);
        let needle = id.as_str().as_bytes();
        Segments::visit(&self.directory, |_, line| {
            if contains(line.text, needle)
                && let Ok(run) = serde_json::from_slice::<PastRun>(line.text)
                && run.run_id == *id
            {
                let is_final = run.status != RunStatus::Lost;
                found = Some(run);
                return Ok(!is_final);
            }
            Ok(true)
        })?;
        let filter = RunFilter {
            tenant: tenant.clone(),
            ..RunFilter::default()
        };
        found
            .filter(|run| filter.matches(&summary_of(run)))
            .ok_or_else(|| HistoryError::Unknown(id.clone()))
    }

    /// Kills a run, whichever process started it, and waits until it has ended.
    pub fn kill(&self, id: &RunId) -> Result<(), HistoryError> {
        let Some((_, table)) = self.find_running(id)? else {
            return Err(match self.show(id, &TenantFilter::All) {
                Ok(_) => HistoryError::Ended(id.clone()),
                Err(error) => error,
            });
        };
        request_kill(&table.fifo(), id)?;
        let deadline = Instant::now() + KILL_TIMEOUT;
        while self.find_running(id)?.is_some() {
            if Instant::now() > deadline {
                return Err(HistoryError::StillRunning(id.clone()));
            }
            std::thread::sleep(KILL_POLL);
        }
        Ok(())
    }

    /// Removes a run that ended from the history.
    pub fn remove(&self, id: &RunId) -> Result<(), HistoryError> {
        if self.find_running(id)?.is_some() {
            return Err(HistoryError::Running(id.clone()));
        }
        let mut is_found = false;
        let needle = id.as_str().as_bytes();
        Segments::visit(&self.directory, |path, line| {
            if contains(line.text, needle)
                && serde_json::from_slice::<StoredSummary>(line.text)
                    .is_ok_and(|run| RunSummary::from(run).run_id == *id)
            {
                Segments::erase(path, line.offset, line.text.len())?;
                is_found = true;
            }
            Ok(true)
        })?;
        if is_found {
            Ok(())
        } else {
            Err(HistoryError::Unknown(id.clone()))
        }
    }

    fn find_running(&self, id: &RunId) -> Result<Option<(PastRun, ProcessTable)>, HistoryError> {
        for mut table in self.close_lost_runs()? {
            if let Some(position) = table.runs.iter().position(|run| run.run_id == *id) {
                let run = table.runs.swap_remove(position);
                return Ok(Some((run, table)));
            }
        }
        Ok(None)
    }

    /// Stores the runs of processes that died as lost, and returns the tables of the others.
    fn close_lost_runs(&self) -> Result<Vec<ProcessTable>, HistoryError> {
        let mut alive = Vec::new();
        for mut table in read_tables(&self.running)? {
            if table.dead.is_none() {
                alive.push(table);
                continue;
            }
            for run in std::mem::take(&mut table.runs) {
                self.store(&PastRun {
                    status: RunStatus::Lost,
                    ended_ms: None,
                    ..run
                })?;
            }
            table.remove()?;
        }
        Ok(alive)
    }

    fn store(&self, run: &PastRun) -> Result<(), HistoryError> {
        let record = serde_json::to_vec(run).unwrap_or_else(|error| unreachable!("a run serialises to JSON: {error}"));
        lock(&self.segments).append(record)
    }
}

fn summary_of(run: &PastRun) -> RunSummary {
    let report = run.report.as_ref();
    RunSummary {
        run_id: run.run_id.clone(),
        status: run.status,
        skill: run.skill.clone(),
        tenant: run.tenant.clone(),
        session: run.session.clone(),
        command: run.command.clone(),
        started_ms: run.started_ms,
        ended_ms: run.ended_ms,
        ended_by: report.map(|report| report.ended_by.as_str().to_owned()),
        exit_code: report.and_then(|report| report.exit_code),
        duration_ms: report.map(|report| report.duration_ms),
        skill_digest: report.map(|report| report.skill_digest),
        error_code: run.error.as_ref().map(|error| error.code.as_str().to_owned()),
    }
}

fn contains(text: &[u8], needle: &[u8]) -> bool {
    // The id is the first field of a record.
    text.windows(needle.len()).take(64).any(|window| window == needle)
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use skillbox_model::ErrorCode;

    use super::*;

    fn command_of(number: usize) -> String {
        format!("{number} {}", "x".repeat(2_000))
    }

    fn add_runs(history: &RunHistory, count: usize) -> Vec<RunId> {
        let cancel = CancelToken::new().unwrap();
        let add = |number: usize| {
            let run_id = crate::run_id::new_run_id();
            let start = RunStart {
                run_id: &run_id,
                skill: "one",
                tenant: None,
                session: None,
                command: command_of(number),
                cancel: &cancel,
            };
            let registered = history.start(start).unwrap().unwrap();
            let refused = ErrorBody::new(ErrorCode::Busy, "a test");
            history.end(registered, command_of(number), Err(refused)).unwrap();
            run_id
        };
        (0..count).map(add).collect()
    }

    fn list(history: &RunHistory) -> Vec<RunId> {
        let list = history.list(&RunFilter::default()).unwrap();
        assert_eq!(list.unreadable, 0);
        list.runs.into_iter().map(|run| run.run_id).collect()
    }

    fn stored_bytes(directory: &std::path::Path) -> u64 {
        let files = std::fs::read_dir(directory.join("history")).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
    }

    #[test]
    fn the_number_of_runs_and_their_bytes_are_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let limits = HistoryLimits {
            runs: 30,
            ..HistoryLimits::default()
        };
        let history = RunHistory::new(directory.path(), limits);
        let mut ids = add_runs(&history, 2_000);
        ids.reverse();
        assert_eq!(list(&history), ids[..30]);
        // 2,000 runs are more than 4 MiB; what remains is the newest file and the one before.
        assert!(stored_bytes(directory.path()) < 3 << 20);

        let few_bytes = HistoryLimits {
            bytes: 1 << 20,
            ..HistoryLimits::default()
        };
        let history = RunHistory::new(directory.path(), few_bytes);
        add_runs(&history, 2_000);
        assert!(stored_bytes(directory.path()) < 3 << 20);
        assert!(list(&history).len() > 300);

        let none = HistoryLimits {
            age: Duration::ZERO,
            ..HistoryLimits::default()
        };
        std::thread::sleep(Duration::from_millis(2));
        assert!(list(&RunHistory::new(directory.path(), none)).is_empty());
    }

    #[test]
    fn a_removed_run_leaves_no_byte_and_others_stay() {
        let directory = tempfile::tempdir().unwrap();
        let history = RunHistory::new(directory.path(), HistoryLimits::default());
        let ids = add_runs(&history, 3);
        history.remove(&ids[1]).unwrap();
        assert_eq!(list(&history), [ids[2].clone(), ids[0].clone()]);
        let file = std::fs::read_to_string(directory.path().join("history/runs-00000000.jsonl")).unwrap();
        assert!(!file.contains(ids[1].as_str()));
        assert!(matches!(history.remove(&ids[1]), Err(HistoryError::Unknown(_))));
        assert!(matches!(history.kill(&ids[0]), Err(HistoryError::Ended(_))));
        add_runs(&history, 1);
        assert_eq!(list(&history).len(), 3);
    }

    #[test]
    fn without_a_history_nothing_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let none = HistoryLimits {
            runs: 0,
            ..HistoryLimits::default()
        };
        let history = RunHistory::new(directory.path(), none);
        let cancel = CancelToken::new().unwrap();
        let start = RunStart {
            run_id: &crate::run_id::new_run_id(),
            skill: "one",
            tenant: None,
            session: None,
            command: String::new(),
            cancel: &cancel,
        };
        assert!(history.start(start).unwrap().is_none());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
