//! Starts runs and executes them on blocking threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use skillbox_executor::EventSink;
use skillbox_model::{ErrorCode, RunReport, RunRequest, SessionId};
use skillbox_runtime::{CompletedRun, RunContext, new_run_id};

use crate::app::App;
use crate::error::ApiError;
use crate::runs::{QueueTicket, RunPermit, RunRecord};
use crate::tenant::Tenant;

/// Adds a run to the queue and returns at once; the run executes in the background.
pub(crate) fn start_run(
    app: &Arc<App>,
    tenant: &Arc<Tenant>,
    request: RunRequest,
    session: Option<SessionId>,
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
        span: tracing::Span::current(),
    };
    match ticket.try_start() {
        // No async task is needed: it would only wait for the blocking thread.
        Ok(permit) => drop(app.work.spawn_blocking(move || run.execute(permit))),
        Err(ticket) => drop(app.work.spawn(run.wait_and_execute(ticket))),
    }
    Ok(record)
}

/// A run with everything that its execution needs.
struct QueuedRun {
    app: Arc<App>,
    tenant: Arc<Tenant>,
    record: Arc<RunRecord>,
    request: RunRequest,
    span: tracing::Span,
}

impl QueuedRun {
    async fn wait_and_execute(self, ticket: QueueTicket) {
        let permit = tokio::select! {
            permit = ticket.wait() => permit,
            () = self.record.cancelled() => Err(ApiError::new(ErrorCode::Cancelled, "the run was cancelled before it started")),
        };
        match permit {
            Ok(permit) => drop(self.app.work.clone().spawn_blocking(move || self.execute(permit))),
            Err(error) => self.finish(Err(error)),
        }
    }

    /// Executes the run on a blocking thread.
    fn execute(self, permit: RunPermit) {
        let span = self.span.clone();
        let _entered = span.enter();
        self.record.mark_running();
        let started = Instant::now();
        // After a panic, clients must not wait forever for the result.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.run())).unwrap_or_else(|_| {
            Err(ApiError::new(
                ErrorCode::Internal,
                "the run failed because of a bug in skillbox",
            ))
        });
        let (outcome, cleanup) = match outcome {
            Ok(CompletedRun { report, cleanup, .. }) => (Ok(report), Some(cleanup)),
            Err(error) => (Err(error), None),
        };
        self.app.metrics.record_run(outcome.as_ref().ok(), started.elapsed());
        self.finish(outcome);
        // The client has its response; cleanup may take time.
        drop(cleanup);
        drop(permit);
    }

    fn run(&self) -> Result<CompletedRun<'_>, ApiError> {
        let record = &self.record;
        let mut listener = |event| record.events.append(event);
        let context = RunContext {
            session: record.session().cloned(),
            events: EventSink::with_listener(&mut listener),
            cancel: record.cancel_token().clone(),
            export_dir: None,
        };
        Ok(self
            .tenant
            .runtime
            .run_with_id(record.id.clone(), &self.request, context)?)
    }

    fn finish(&self, outcome: Result<RunReport, ApiError>) {
        self.record.finish(outcome);
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
