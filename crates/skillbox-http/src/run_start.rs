//! Starts runs and executes them on blocking threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use skillbox_executor::EventSink;
use skillbox_model::{ErrorCode, RunId, RunReport, RunRequest, SessionId};
use skillbox_runtime::{CompletedRun, KeptOutput, RunContext, RunError, RunOrigin, new_run_id};

use crate::app::App;
use crate::body_budget::Reservation;
use crate::error::ApiError;
use crate::request_id::current_request_id;
use crate::runs::{KeptFiles, MAX_KEPT_FILE_BYTES, QueueTicket, RunPermit, RunRecord};
use crate::tenant::Tenant;

/// The directory of kept files below the state directory. It never shows any: they have no names.
const KEPT_FILES_DIRECTORY: &str = "results";

/// The characters to be escaped in an address: all but the unreserved ones and `/`.
const ESCAPED_CHARS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// Adds a run to the queue and returns at once; the run executes in the background.
pub(crate) fn start_run(
    app: &Arc<App>,
    tenant: &Arc<Tenant>,
    request: RunRequest,
    session: Option<SessionId>,
    reservation: Reservation,
) -> Result<Arc<RunRecord>, ApiError> {
    if app.stopping.is_cancelled() {
        return Err(ApiError::busy("the server is shutting down"));
    }
    let ticket = app
        .run_queue
        .join()
        .inspect_err(|_| app.metrics.record_rejected_run())?;
    let record =
        RunRecord::new(new_run_id(), request.skill.clone(), session).map_err(|error| ApiError::internal(&error))?;
    tenant.runs.add(record.clone());
    let run = QueuedRun {
        app: app.clone(),
        tenant: tenant.clone(),
        record: record.clone(),
        request,
        _reservation: reservation,
        span: tracing::Span::current(),
        request_id: current_request_id(),
        queued_at: Instant::now(),
    };
    match ticket.try_start() {
        // No async task is needed: it would only wait for the blocking thread.
        Ok(permit) => drop(app.work.spawn_blocking(move || run.execute(permit))),
        Err(ticket) => drop(app.work.spawn(run.wait_and_execute(ticket))),
    }
    Ok(record)
}

/// The address of a file of a run.
fn file_address(run: &RunId, name: &str) -> String {
    format!("/v1/runs/{run}/files/{}", escape_path(name))
}

/// A path of a workspace as part of an address.
pub(crate) fn escape_path(name: &str) -> impl std::fmt::Display + '_ {
    utf8_percent_encode(name, ESCAPED_CHARS)
}

/// A run with everything that its execution needs.
struct QueuedRun {
    app: Arc<App>,
    tenant: Arc<Tenant>,
    record: Arc<RunRecord>,
    request: RunRequest,
    /// The memory of the request, held while the run waits and executes.
    _reservation: Reservation,
    span: tracing::Span,
    request_id: Option<Arc<str>>,
    queued_at: Instant,
}

impl QueuedRun {
    async fn wait_and_execute(self, ticket: QueueTicket) {
        let permit = tokio::select! {
            permit = ticket.wait() => permit,
            () = self.record.cancelled() => Err(ApiError::new(ErrorCode::Cancelled, "the run was cancelled before it started")),
        };
        match permit {
            Ok(permit) => drop(self.app.work.clone().spawn_blocking(move || self.execute(permit))),
            Err(error) => self.finish(Err(error), None),
        }
    }

    /// Executes the run on a blocking thread.
    fn execute(self, permit: RunPermit) {
        let span = self.span.clone();
        let _entered = span.enter();
        self.record.mark_running();
        let queue_wait = self.queued_at.elapsed();
        // After a panic, clients must not wait forever for the result.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.run(queue_wait))).unwrap_or_else(|_| {
            Err(ApiError::new(
                ErrorCode::Internal,
                "the run failed because of a bug in skillbox",
            ))
        });
        let (outcome, files, cleanup) = match outcome {
            Ok(CompletedRun {
                mut report,
                files,
                cleanup,
                ..
            }) => {
                let kept = self.keep_files(&mut report, files);
                (Ok(report), kept, Some(cleanup))
            }
            Err(error) => (Err(error), None, None),
        };
        self.finish(outcome, files);
        // The client has its response; cleanup may take time.
        drop(cleanup);
        drop(permit);
    }

    fn run(&self, queue_wait: Duration) -> Result<CompletedRun<'_>, ApiError> {
        let record = &self.record;
        let mut listener = |event| record.events.append(event);
        let context = RunContext {
            session: record.session().cloned(),
            events: EventSink::with_listener(&mut listener),
            cancel: record
                .cancel_token()
                .ok_or_else(|| ApiError::new(ErrorCode::Cancelled, "the run has ended already"))?,
            export: None,
            origin: RunOrigin {
                request_id: self.request_id.clone(),
                queue_wait,
            },
            keep_files: true,
        };
        let result = self
            .tenant
            .runtime
            .run_with_id(record.id.clone(), &self.request, context);
        result.map_err(|error| match (error, record.session()) {
            // The session may be removed while the run starts.
            (RunError::Session(error), Some(id)) => RunError::Session(error.or_unknown(id)).into(),
            (error, _) => error.into(),
        })
    }

    /// Keeps the collected files for later requests. Without a session, they are all that is left of the run's workspace,
    /// so the report refers to them.
    fn keep_files(&self, report: &mut RunReport, files: Vec<KeptOutput>) -> Option<KeptFiles> {
        if files.is_empty() {
            return None;
        }
        let total: u64 = files.iter().map(|file| file.size_bytes).sum();
        let directory = self.tenant.runtime.state_dir().join(KEPT_FILES_DIRECTORY);
        let stored = if total > MAX_KEPT_FILE_BYTES {
            Err(format!(
                "they have {total} bytes, and at most {MAX_KEPT_FILE_BYTES} are kept"
            ))
        } else {
            KeptFiles::store(&directory, files).map_err(|error| error.to_string())
        };
        let kept = match stored {
            Ok(kept) => kept,
            Err(reason) => {
                let warning = format!("the collected files cannot be fetched after the run: {reason}");
                report.warnings.push(warning);
                return None;
            }
        };
        if self.record.session().is_none() {
            let expires = SystemTime::now() + self.tenant.runs.ttl();
            let expires = expires.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
            for file in report.output_files.iter_mut().chain(&mut report.primary_output) {
                if file.reference.starts_with("workspace://") {
                    file.reference = file_address(&self.record.id, &file.name);
                    file.expires_unix_ms = u64::try_from(expires).ok();
                }
            }
        }
        Some(kept)
    }

    fn finish(&self, outcome: Result<RunReport, ApiError>, files: Option<KeptFiles>) {
        self.record.finish(outcome, files);
        self.tenant.runs.mark_finished(&self.record);
    }
}

/// Cancels the run when the request is dropped because its client disconnected.
pub(crate) struct CancelRunOnDrop(Option<Arc<RunRecord>>);

impl CancelRunOnDrop {
    pub(crate) fn new(record: Arc<RunRecord>) -> Self {
        Self(Some(record))
    }

    /// Lets the run continue, because the client has its response.
    pub(crate) fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelRunOnDrop {
    fn drop(&mut self) {
        if let Some(record) = &self.0 {
            record.cancel();
        }
    }
}
