//! One run: what was asked for, how far it is, what came of it.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    Over(Over),
}

/// What came of a run.
#[derive(Clone, Debug)]
pub(crate) struct Over {
    /// The run as everybody is told of it, who waited, listened or comes later: written once.
    pub text: Arc<str>,
    /// Why it could not run.
    pub refusal: Option<Arc<ApiError>>,
}

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

    /// The result is there. Writing it down takes its time where it is large: this is for a thread that may wait.
    pub(crate) fn finish(&self, outcome: Result<RunReport, ApiError>) {
        let going = self.going();
        let text = written(&match &outcome {
            Ok(report) => RunView::Ended {
                session: self.session.as_ref(),
                report,
            },
            Err(error) => RunView::Refused {
                run: &going,
                error: &error.body,
            },
        });
        *locked(&self.stage) = Stage::Over(Over {
            text: text.clone(),
            refusal: outcome.err().map(Arc::new),
        });
        // Whoever hears of the end and asks finds it.
        self.journal.end("done", text);
        self.over.cancel();
    }

    /// What it takes in memory, about, once it is over.
    pub(crate) fn bytes(&self) -> usize {
        self.journal.bytes() + size_of::<Self>()
    }

    /// How far it is.
    pub(crate) fn state(&self) -> RunState {
        match &*locked(&self.stage) {
            Stage::Queued => RunState::Queued(self.going()),
            Stage::Running => RunState::Running(self.going()),
            Stage::Over(over) => RunState::Over(over.clone()),
        }
    }

    /// It in short.
    pub(crate) fn summary(&self) -> RunSummary {
        let status = match &*locked(&self.stage) {
            Stage::Queued => "queued",
            Stage::Running => "running",
            Stage::Over(Over { refusal: None, .. }) => "ended",
            Stage::Over(Over { refusal: Some(_), .. }) => "refused",
        };
        RunSummary {
            run_id: self.id.clone(),
            status,
            skill: self.skill.clone(),
        }
    }

    fn going(&self) -> Going {
        Going {
            run_id: self.id.clone(),
            skill: self.skill.clone(),
            session: self.session.clone(),
        }
    }
}

/// How far a run is, at one moment.
#[derive(Debug)]
pub(crate) enum RunState {
    Queued(Going),
    Running(Going),
    Over(Over),
}

impl RunState {
    /// As everybody is told.
    pub(crate) fn text(&self) -> Arc<str> {
        match self {
            Self::Queued(going) => written(&RunView::Queued(going)),
            Self::Running(going) => written(&RunView::Running(going)),
            Self::Over(over) => over.text.clone(),
        }
    }
}

/// A run in short.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RunSummary {
    run_id: RunId,
    /// `queued`, `running`, `ended` or `refused`.
    status: &'static str,
    skill: String,
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

fn written(view: &RunView<'_>) -> Arc<str> {
    let text = serde_json::to_string(view);
    text.unwrap_or_else(|error| unreachable!("a run can be written as JSON: {error}"))
        .into()
}

/// The contents of a lock that a panic elsewhere cannot take from us.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
