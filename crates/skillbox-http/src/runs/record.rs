//! One run: what was asked for, how far it is, what came of it.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use schemars::JsonSchema;
use serde::Serialize;
use skillbox_executor::Cancel;
use skillbox_model::{ErrorBody, RunId, RunReport, SessionId};
use tokio_util::sync::CancellationToken;

use super::journal::Journal;
use crate::error::ApiError;

/// One run of a tenant.
#[derive(Debug)]
pub(crate) struct RunRecord {
    pub id: RunId,
    skill: String,
    session: Option<SessionId>,
    pub journal: Journal,
    stage: Mutex<Stage>,
    cancel: Cancel,
    /// Thrown together with `cancel`, for those that wait without a thread.
    given_up: CancellationToken,
    /// Thrown when the result is there.
    over: CancellationToken,
}

#[derive(Debug)]
enum Stage {
    Queued,
    Running,
    Over(Outcome, Instant),
}

type Outcome = Result<Arc<RunReport>, Arc<ApiError>>;

impl RunRecord {
    pub(crate) fn new(id: RunId, skill: String, session: Option<SessionId>) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            id,
            skill,
            session,
            journal: Journal::default(),
            stage: Mutex::new(Stage::Queued),
            cancel: Cancel::new()?,
            given_up: CancellationToken::new(),
            over: CancellationToken::new(),
        }))
    }

    pub(crate) fn session(&self) -> Option<&SessionId> {
        self.session.as_ref()
    }

    pub(crate) fn switch(&self) -> &Cancel {
        &self.cancel
    }

    /// Ends it, wherever it is.
    pub(crate) fn cancel(&self) {
        self.cancel.cancel();
        self.given_up.cancel();
    }

    /// Waits until somebody gives it up.
    pub(crate) async fn given_up(&self) {
        self.given_up.cancelled().await;
    }

    /// Waits for the result.
    pub(crate) async fn over(&self) {
        self.over.cancelled().await;
    }

    pub(crate) fn begin(&self) {
        *locked(&self.stage) = Stage::Running;
    }

    pub(crate) fn finish(&self, outcome: Result<RunReport, ApiError>) {
        let outcome = outcome.map(Arc::new).map_err(Arc::new);
        *locked(&self.stage) = Stage::Over(outcome, Instant::now());
        let state = self.state();
        self.journal.end("done", &serde_json::json!(state.view()));
        self.over.cancel();
    }

    /// When it was over.
    pub(crate) fn ended_at(&self) -> Option<Instant> {
        match &*locked(&self.stage) {
            Stage::Over(_, when) => Some(*when),
            _ => None,
        }
    }

    /// What it takes in memory, about.
    pub(crate) fn bytes(&self) -> usize {
        let report = match &*locked(&self.stage) {
            Stage::Over(Ok(report), _) => weight(report),
            _ => 0,
        };
        report + self.journal.bytes()
    }

    /// How far it is.
    pub(crate) fn state(&self) -> RunState {
        let going = Going {
            run_id: self.id.clone(),
            skill: self.skill.clone(),
            session: self.session.clone(),
        };
        match &*locked(&self.stage) {
            Stage::Queued => RunState::Queued(going),
            Stage::Running => RunState::Running(going),
            Stage::Over(Ok(report), _) => RunState::Ended(report.clone(), self.session.clone()),
            Stage::Over(Err(error), _) => RunState::Refused(going, error.clone()),
        }
    }
}

/// How far a run is, at one moment.
#[derive(Debug)]
pub(crate) enum RunState {
    Queued(Going),
    Running(Going),
    Ended(Arc<RunReport>, Option<SessionId>),
    Refused(Going, Arc<ApiError>),
}

/// A run without a result.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "RunGoing")]
pub(crate) struct Going {
    /// The run.
    run_id: RunId,
    /// Its skill.
    skill: String,
    /// Whose workspace it uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<SessionId>,
}

/// A run on the wire: its status, and the whole report once there is one.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
#[schemars(rename = "Run")]
pub(crate) enum RunView<'a> {
    /// It waits for its turn.
    Queued(&'a Going),
    /// It is going on.
    Running(&'a Going),
    /// It is over, however the script ended.
    Ended {
        #[serde(skip_serializing_if = "Option::is_none")]
        session: Option<&'a SessionId>,
        #[serde(flatten)]
        report: &'a RunReport,
    },
    /// It could not run.
    Refused {
        #[serde(flatten)]
        run: &'a Going,
        error: &'a ErrorBody,
    },
}

impl RunState {
    pub(crate) fn view(&self) -> RunView<'_> {
        match self {
            Self::Queued(going) => RunView::Queued(going),
            Self::Running(going) => RunView::Running(going),
            Self::Ended(report, session) => RunView::Ended {
                session: session.as_ref(),
                report,
            },
            Self::Refused(run, error) => RunView::Refused {
                run,
                error: &error.body,
            },
        }
    }
}

fn weight(report: &RunReport) -> usize {
    let files = report.output_files.iter();
    let contents = files.map(|file| file.name.len() + file.content.as_ref().map_or(0, String::len) + 256);
    // The first file may be there a second time.
    2 * contents.sum::<usize>() + report.stdout.len() + report.stderr.len() + 4096
}

/// The contents of a lock that a panic elsewhere cannot take from us.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
