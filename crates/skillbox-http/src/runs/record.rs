//! One run: its state, its events and its result.

use std::io;
use std::sync::{Arc, Mutex};

use schemars::JsonSchema;
use serde::Serialize;
use skillbox_executor::CancelToken;
use skillbox_model::{ErrorBody, RunId, RunReport, SessionId, TenantName};
use skillbox_runtime::{PastRun, RunStatus, RunSummary};
use tokio_util::sync::CancellationToken;

use super::event_log::EventLog;
use super::kept_files::KeptFiles;
use crate::error::ApiError;
use crate::lock::lock;

/// One run of a tenant.
#[derive(Debug)]
pub(crate) struct RunRecord {
    pub id: RunId,
    skill: String,
    session: Option<SessionId>,
    pub events: EventLog,
    stage: Mutex<Stage>,
    /// The collected files of a run that has ended.
    files: Mutex<Option<Arc<KeptFiles>>>,
    /// Two descriptors, which are closed when the run has ended.
    cancel: Mutex<Option<CancelToken>>,
    /// Cancelled together with `cancel`, for async tasks.
    async_cancel: CancellationToken,
    /// Cancelled when the result is available.
    finished: CancellationToken,
}

#[derive(Debug)]
enum Stage {
    Queued,
    Running,
    Finished(RunResult),
}

/// The result of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunResult {
    /// The run as JSON, serialised once for all clients.
    pub json: Arc<str>,
    /// Why the run was refused; `None` if it was executed.
    pub refusal: Option<Arc<ApiError>>,
}

impl RunRecord {
    pub(crate) fn new(id: RunId, skill: String, session: Option<SessionId>) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            id,
            skill,
            session,
            events: EventLog::default(),
            stage: Mutex::new(Stage::Queued),
            files: Mutex::default(),
            cancel: Mutex::new(Some(CancelToken::new()?)),
            async_cancel: CancellationToken::new(),
            finished: CancellationToken::new(),
        }))
    }

    pub(crate) fn session(&self) -> Option<&SessionId> {
        self.session.as_ref()
    }

    /// The token of a run that has not ended.
    pub(crate) fn cancel_token(&self) -> Option<CancelToken> {
        lock(&self.cancel).clone()
    }

    /// Cancels the run, whether it waits or executes.
    pub(crate) fn cancel(&self) {
        if let Some(cancel) = &*lock(&self.cancel) {
            cancel.cancel();
        }
        self.async_cancel.cancel();
    }

    /// Waits until the run is cancelled.
    pub(crate) async fn cancelled(&self) {
        self.async_cancel.cancelled().await;
    }

    /// Waits for the result.
    pub(crate) async fn finished(&self) {
        self.finished.cancelled().await;
    }

    pub(crate) fn mark_running(&self) {
        *lock(&self.stage) = Stage::Running;
    }

    /// Stores the result. Serialising a large one takes time, so call this on a blocking thread.
    pub(crate) fn finish(&self, outcome: Result<RunReport, ApiError>, files: Option<KeptFiles>) {
        *lock(&self.files) = files.map(Arc::new);
        let pending = self.pending();
        let json = to_json(&match &outcome {
            Ok(report) => RunView::Ended {
                session: self.session.as_ref(),
                report,
            },
            Err(error) => RunView::Refused {
                run: &pending,
                error: &error.body,
            },
        });
        *lock(&self.stage) = Stage::Finished(RunResult {
            json: json.clone(),
            refusal: outcome.err().map(Arc::new),
        });
        lock(&self.cancel).take();
        // The result is stored before listeners learn of the end.
        self.events.close("done", json);
        self.finished.cancel();
    }

    /// The collected files, as long as they are kept.
    pub(crate) fn files(&self) -> Option<Arc<KeptFiles>> {
        lock(&self.files).clone()
    }

    pub(crate) fn drop_files(&self) {
        lock(&self.files).take();
    }

    /// The approximate size of a finished run in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.events.bytes() + size_of::<Self>()
    }

    /// The current state.
    pub(crate) fn state(&self) -> RunState {
        match &*lock(&self.stage) {
            Stage::Queued => RunState::Queued(self.pending()),
            Stage::Running => RunState::Running(self.pending()),
            Stage::Finished(result) => RunState::Finished(result.clone()),
        }
    }

    /// The most important facts of the run.
    pub(crate) fn summary(&self, tenant: Option<&TenantName>) -> RunSummary {
        let status = match &*lock(&self.stage) {
            Stage::Queued => RunStatus::Queued,
            Stage::Running => RunStatus::Running,
            Stage::Finished(RunResult { refusal: None, .. }) => RunStatus::Ended,
            Stage::Finished(RunResult { refusal: Some(_), .. }) => RunStatus::Refused,
        };
        RunSummary {
            tenant: tenant.cloned(),
            session: self.session.clone(),
            ..RunSummary::new(self.id.clone(), status, self.skill.clone())
        }
    }

    fn pending(&self) -> PendingRun {
        PendingRun {
            run_id: self.id.clone(),
            skill: self.skill.clone(),
            session: self.session.clone(),
        }
    }
}

/// The state of a run at one moment.
#[derive(Debug)]
pub(crate) enum RunState {
    Queued(PendingRun),
    Running(PendingRun),
    Finished(RunResult),
}

impl RunState {
    /// The run as JSON.
    pub(crate) fn json(&self) -> Arc<str> {
        match self {
            Self::Queued(pending) => to_json(&RunView::Queued(pending)),
            Self::Running(pending) => to_json(&RunView::Running(pending)),
            Self::Finished(result) => result.json.clone(),
        }
    }
}

/// A run that has no result yet.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "PendingRun")]
pub(crate) struct PendingRun {
    /// The id of the run.
    run_id: RunId,
    /// The name of the skill.
    skill: String,
    /// The session whose workspace the run uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<SessionId>,
}

/// A run: its status and, once it has ended, the whole report.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
#[schemars(rename = "Run")]
pub(crate) enum RunView<'a> {
    /// The run waits in the queue.
    Queued(&'a PendingRun),
    /// The run executes.
    Running(&'a PendingRun),
    /// The run ended, whatever the exit code of the script.
    Ended {
        #[serde(skip_serializing_if = "Option::is_none")]
        session: Option<&'a SessionId>,
        #[serde(flatten)]
        report: &'a RunReport,
    },
    /// The server refused the run.
    Refused {
        #[serde(flatten)]
        run: &'a PendingRun,
        error: &'a ErrorBody,
    },
    /// The process of the server ended before the run.
    Lost(&'a PendingRun),
}

/// A run of the history as JSON.
pub(crate) fn past_run_json(run: &PastRun) -> Arc<str> {
    let pending = PendingRun {
        run_id: run.run_id.clone(),
        skill: run.skill.clone(),
        session: run.session.clone(),
    };
    to_json(&match (run.status, &run.report, &run.error) {
        (_, Some(report), _) => RunView::Ended {
            session: run.session.as_ref(),
            report,
        },
        (_, _, Some(error)) => RunView::Refused { run: &pending, error },
        (RunStatus::Running | RunStatus::Queued, ..) => RunView::Running(&pending),
        _ => RunView::Lost(&pending),
    })
}

fn to_json(view: &RunView<'_>) -> Arc<str> {
    let text = serde_json::to_string(view);
    text.unwrap_or_else(|error| unreachable!("a run serialises to JSON: {error}"))
        .into()
}
