//! The way of a run from its order to its result.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use skillbox_executor::EventSink;
use skillbox_model::{ErrorCode, RunReport, RunRequest, SessionId};
use skillbox_runtime::{Ran, RunContext, new_run_id};

use super::gate::{Place, Turn};
use super::record::RunRecord;
use crate::app::App;
use crate::error::ApiError;
use crate::tenant::Tenant;

/// What is to be run.
#[derive(Debug)]
pub(crate) struct Order {
    pub request: RunRequest,
    pub session: Option<SessionId>,
}

/// Puts a run into the queue and gives it back at once; it goes on by itself.
pub(crate) fn start(app: &Arc<App>, tenant: &Arc<Tenant>, order: Order) -> Result<Arc<RunRecord>, ApiError> {
    if app.stopping.is_cancelled() {
        return Err(ApiError::busy("the server is about to end"));
    }
    let place = app.gate.enter().inspect_err(|_| app.metrics.run_sent_away())?;
    let record = RunRecord::new(new_run_id(), order.request.skill.clone(), order.session)
        .map_err(|error| ApiError::internal(&error))?;
    tenant.runs.add(record.clone());
    let run = OrderedRun {
        app: app.clone(),
        tenant: tenant.clone(),
        record: record.clone(),
        request: order.request,
        span: tracing::Span::current(),
    };
    match place.turn_at_once() {
        // Without a task in between, which would only wait for the thread.
        Ok(turn) => drop(app.work.spawn_blocking(move || run.make(turn))),
        Err(place) => drop(app.work.spawn(run.wait_for(place))),
    }
    Ok(record)
}

/// A run between its order and its result.
struct OrderedRun {
    app: Arc<App>,
    tenant: Arc<Tenant>,
    record: Arc<RunRecord>,
    request: RunRequest,
    span: tracing::Span,
}

impl OrderedRun {
    async fn wait_for(self, place: Place) {
        let turn = tokio::select! {
            turn = place.turn() => turn,
            () = self.record.given_up() => Err(ApiError::new(ErrorCode::Cancelled, "cancelled before it began")),
        };
        match turn {
            Ok(turn) => drop(self.app.work.clone().spawn_blocking(move || self.make(turn))),
            Err(error) => self.finish(Err(error)),
        }
    }

    /// Makes the run, on a thread that may wait.
    fn make(self, turn: Turn) {
        let span = self.span.clone();
        let _inside = span.enter();
        self.record.begin();
        let begun = Instant::now();
        // Whoever waits for the result must not wait for ever.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.run())).unwrap_or_else(|_| {
            Err(ApiError::new(
                ErrorCode::Internal,
                "the run broke off: skillbox has a defect",
            ))
        });
        let (outcome, left) = match outcome {
            Ok(Ran { report, left, .. }) => (Ok(report), Some(left)),
            Err(error) => (Err(error), None),
        };
        self.app.metrics.run_over(outcome.as_ref().ok(), begun.elapsed());
        self.finish(outcome);
        // Now that the caller has its answer.
        drop(left);
        drop(turn);
    }

    fn run(&self) -> Result<Ran<'_>, ApiError> {
        let record = &self.record;
        let mut listener = |event| record.journal.note(event);
        let context = RunContext {
            session: record.session().cloned(),
            events: EventSink::to(&mut listener),
            cancel: record.switch().clone(),
            export: None,
        };
        Ok(self.tenant.runtime.run_as(record.id.clone(), &self.request, context)?)
    }

    fn finish(&self, outcome: Result<RunReport, ApiError>) {
        self.record.finish(outcome);
        self.tenant.runs.note_end(&self.record);
    }
}

/// Cancels a run whose caller has gone, unless it was let go before.
pub(crate) struct EndsWithCaller(Option<Arc<RunRecord>>);

impl EndsWithCaller {
    pub(crate) fn new(record: Arc<RunRecord>) -> Self {
        Self(Some(record))
    }

    /// The caller has its answer: the run may go on.
    pub(crate) fn let_go(mut self) {
        self.0 = None;
    }
}

impl Drop for EndsWithCaller {
    fn drop(&mut self) {
        if let Some(record) = &self.0 {
            record.cancel();
        }
    }
}
