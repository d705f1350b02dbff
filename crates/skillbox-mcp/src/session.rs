//! What one client has: an agent's session with its state and workspace, gone when the client is.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::ErrorData;
use skillbox_model::{RunReport, SessionId};
use skillbox_runtime::session::{Ownership, SessionError};
use skillbox_runtime::{AgentSession, RunError, Runtime};
use tokio::sync::{OwnedRwLockReadGuard, RwLock};
use tokio_util::sync::CancellationToken;

use crate::host::{Host, failed, in_background, locked};
use crate::output_uri::uri_of;
use crate::tasks::Tasks;

/// How long the end of a client waits for its runs, which are cancelled, to be over.
const LONGEST_END: Duration = Duration::from_secs(10);
/// So many outputs are listed as resources; older ones can still be read.
const LISTED_OUTPUTS: usize = 200;

/// A client's session.
#[derive(Debug)]
pub(crate) struct ClientSession {
    pub(crate) agent: AgentSession,
    runtime: Arc<Runtime>,
    id: SessionId,
    ownership: Mutex<Option<Ownership>>,
    /// Held by every call for reading, and by the end for writing.
    busy: Arc<RwLock<()>>,
    /// Thrown when the client says nothing more: it may still read answers, but takes no news.
    silent: CancellationToken,
    /// Thrown when the client is gone.
    ended: CancellationToken,
    outputs: Mutex<Vec<Output>>,
    /// The calls that became tasks.
    pub(crate) tasks: Tasks,
}

/// A file that a run gave, as a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Output {
    pub uri: String,
    pub name: String,
    pub mime_type: Option<String>,
    pub size: Option<u64>,
}

impl ClientSession {
    /// Makes a session of a name that nobody can guess.
    pub(crate) async fn open(host: &Arc<Host>) -> Result<Arc<Self>, ErrorData> {
        let making = host.clone();
        let made = in_background(move || Self::make(&making).map_err(|error| failed(&error)));
        let session = Arc::new(made.await?);
        host.note(&session);
        Ok(session)
    }

    fn make(host: &Host) -> Result<Self, SessionError> {
        let name = format!("mcp-{}", uuid::Uuid::new_v4().simple());
        let id = SessionId::parse(name).unwrap_or_else(|error| unreachable!("a UUID is an identifier: {error}"));
        let ownership = host.runtime.sessions().own(&id)?;
        let agent = AgentSession::open(host.runtime.clone(), host.options().stored_as(id.clone()))?;
        Ok(Self {
            agent,
            runtime: host.runtime.clone(),
            id,
            ownership: Mutex::new(Some(ownership)),
            busy: Arc::default(),
            silent: CancellationToken::new(),
            ended: CancellationToken::new(),
            outputs: Mutex::default(),
            tasks: Tasks::default(),
        })
    }

    pub(crate) fn id(&self) -> &SessionId {
        &self.id
    }

    /// Thrown when the client says nothing more.
    pub(crate) fn silent(&self) -> &CancellationToken {
        &self.silent
    }

    /// Thrown when the client is gone.
    pub(crate) fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Takes part in the session; refused once it has ended.
    pub(crate) fn enter(&self) -> Result<OwnedRwLockReadGuard<()>, ErrorData> {
        let gone = || ErrorData::invalid_request("the session has ended", None);
        let guard = self.busy.clone().try_read_owned().map_err(|_| gone())?;
        if self.ended.is_cancelled() {
            return Err(gone());
        }
        Ok(guard)
    }

    /// Whether a call is going on, or the result of one is still kept.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.try_write().is_err() || self.tasks.are_kept()
    }

    /// Remembers the files of a run.
    pub(crate) fn note(&self, report: &RunReport) -> Vec<Output> {
        let made = outputs_of(report);
        let mut kept = locked(&self.outputs);
        kept.retain(|old| made.iter().all(|new| new.uri != old.uri));
        kept.extend(made.iter().cloned());
        let excess = kept.len().saturating_sub(LISTED_OUTPUTS);
        kept.drain(..excess);
        made
    }

    /// The files of the runs so far.
    pub(crate) fn outputs(&self) -> Vec<Output> {
        locked(&self.outputs).clone()
    }

    /// Ends what runs and removes everything of the session.
    pub(crate) async fn end(&self) {
        self.ended.cancel();
        let Ok(_alone) = tokio::time::timeout(LONGEST_END, self.busy.write()).await else {
            // The lock goes with the process, and the next server removes what is left.
            tracing::warn!(session = %self.id, "runs of the session are still going on; its files stay behind");
            return;
        };
        let (runtime, id) = (self.runtime.clone(), self.id.clone());
        let removed = tokio::task::spawn_blocking(move || match runtime.remove_session(&id) {
            Ok(_) | Err(RunError::Session(SessionError::Unknown(_))) => Ok(()),
            Err(error) => Err(error),
        });
        if let Ok(Err(error)) = removed.await {
            tracing::warn!(session = %self.id, "the files of the session stay behind: {error}");
        }
        *locked(&self.ownership) = None;
    }
}

/// Saved files under their version, the others where they lie in the workspace.
fn outputs_of(report: &RunReport) -> Vec<Output> {
    let collected = report.output_files.iter().map(|file| Output {
        uri: uri_of(&file.reference),
        name: file.name.clone(),
        mime_type: Some(file.mime_type.clone()),
        size: Some(file.size_bytes),
    });
    let mut outputs: Vec<Output> = collected.collect();
    for artifact in &report.artifact_files {
        let uri = uri_of(&artifact.reference);
        if outputs.iter().all(|output| output.uri != uri) {
            outputs.push(Output {
                uri,
                name: artifact.name.clone(),
                mime_type: None,
                size: None,
            });
        }
    }
    outputs
}
