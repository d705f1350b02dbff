//! The session of one client: an agent session with its state and workspace, removed when the client disconnects.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::ErrorData;
use skillbox_model::{RunReport, SessionId};
use skillbox_runtime::session::{Ownership, SessionError};
use skillbox_runtime::{AgentOptions, AgentSession, RunError, Runtime};
use tokio::sync::{OwnedRwLockReadGuard, RwLock};
use tokio_util::sync::CancellationToken;

use crate::lock::lock;
use crate::output_uri::to_uri;
use crate::tasks::Tasks;

/// Time for cancelled runs to end before the session is removed.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of outputs that are listed as resources; older ones can still be read.
const MAX_LISTED_OUTPUTS: usize = 200;

/// A client's session.
#[derive(Debug)]
pub(crate) struct ClientSession {
    pub(crate) agent: AgentSession,
    runtime: Arc<Runtime>,
    id: SessionId,
    ownership: Mutex<Option<Ownership>>,
    /// Calls hold a read lock. The end of the session takes the write lock.
    calls: Arc<RwLock<()>>,
    /// Cancelled when the client closes its input: it may still read results, but no notifications.
    input_closed: CancellationToken,
    /// Cancelled when the client has disconnected.
    ended: CancellationToken,
    outputs: Mutex<Vec<RunOutput>>,
    /// The calls that became tasks.
    pub(crate) tasks: Tasks,
}

/// A file that a run produced, as a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunOutput {
    pub uri: String,
    pub name: String,
    pub mime_type: Option<String>,
    pub size: Option<u64>,
}

impl ClientSession {
    /// Creates a session with a random id.
    pub(crate) fn create(runtime: Arc<Runtime>, options: AgentOptions) -> Result<Self, SessionError> {
        let name = format!("mcp-{}", uuid::Uuid::new_v4().simple());
        let id = SessionId::parse(name).unwrap_or_else(|error| unreachable!("a UUID is an identifier: {error}"));
        let ownership = runtime.sessions().create_owned(&id)?;
        let agent = AgentSession::open(runtime.clone(), options.stored_as(id.clone()))?;
        Ok(Self {
            agent,
            runtime,
            id,
            ownership: Mutex::new(Some(ownership)),
            calls: Arc::default(),
            input_closed: CancellationToken::new(),
            ended: CancellationToken::new(),
            outputs: Mutex::default(),
            tasks: Tasks::default(),
        })
    }

    pub(crate) fn id(&self) -> &SessionId {
        &self.id
    }

    /// Cancelled when the client closes its input.
    pub(crate) fn input_closed(&self) -> &CancellationToken {
        &self.input_closed
    }

    /// Cancelled when the client has disconnected.
    pub(crate) fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Keeps the session open during a call. Fails once the session has ended.
    pub(crate) fn begin_call(&self) -> Result<OwnedRwLockReadGuard<()>, ErrorData> {
        let ended = || ErrorData::invalid_request("the session has ended", None);
        let guard = self.calls.clone().try_read_owned().map_err(|_| ended())?;
        if self.ended.is_cancelled() {
            return Err(ended());
        }
        Ok(guard)
    }

    /// Whether a call is in progress, or the client may still request the result of a task.
    pub(crate) fn is_busy(&self) -> bool {
        self.calls.try_write().is_err() || self.tasks.has_any()
    }

    /// Records the files of a run, and returns them.
    pub(crate) fn record_outputs(&self, report: &RunReport) -> Vec<RunOutput> {
        let new_outputs = outputs_of(report);
        let mut outputs = lock(&self.outputs);
        outputs.retain(|old| new_outputs.iter().all(|new| new.uri != old.uri));
        outputs.extend(new_outputs.iter().cloned());
        let excess = outputs.len().saturating_sub(MAX_LISTED_OUTPUTS);
        outputs.drain(..excess);
        new_outputs
    }

    /// The files of the runs so far.
    pub(crate) fn outputs(&self) -> Vec<RunOutput> {
        lock(&self.outputs).clone()
    }

    /// Cancels the runs of the session and removes its files.
    pub(crate) async fn end(&self) {
        self.ended.cancel();
        let Ok(_no_calls) = tokio::time::timeout(CANCEL_TIMEOUT, self.calls.write()).await else {
            // The ownership lock ends with the process, and the next server removes the files.
            tracing::warn!(session = %self.id, "runs of the session did not end in time; its files are not removed");
            return;
        };
        let (runtime, id) = (self.runtime.clone(), self.id.clone());
        let removed = tokio::task::spawn_blocking(move || match runtime.remove_session(&id) {
            Ok(_) | Err(RunError::Session(SessionError::Unknown(_))) => Ok(()),
            Err(error) => Err(error),
        });
        if let Ok(Err(error)) = removed.await {
            tracing::warn!(session = %self.id, "cannot remove the files of the session: {error}");
        }
        *lock(&self.ownership) = None;
    }
}

/// The files of a report. Saved files have the URI of their artifact version, others that of their path in the workspace.
fn outputs_of(report: &RunReport) -> Vec<RunOutput> {
    let collected = report.output_files.iter().map(|file| RunOutput {
        uri: to_uri(&file.reference),
        name: file.name.clone(),
        mime_type: Some(file.mime_type.clone()),
        size: Some(file.size_bytes),
    });
    let mut outputs: Vec<RunOutput> = collected.collect();
    for artifact in &report.artifact_files {
        let uri = to_uri(&artifact.reference);
        if outputs.iter().all(|output| output.uri != uri) {
            outputs.push(RunOutput {
                uri,
                name: artifact.name.clone(),
                mime_type: None,
                size: None,
            });
        }
    }
    outputs
}
