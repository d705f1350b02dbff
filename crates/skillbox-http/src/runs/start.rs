//! The way of a run from its order to its result.

use std::sync::Arc;
use std::time::Instant;

use skillbox_executor::EventSink;
use skillbox_model::{ErrorCode, RunReport, RunRequest, SessionId};
use skillbox_runtime::{RunContext, new_run_id};

use super::record::RunRecord;
use crate::app::{App, in_background};
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
    let work = {
        let (app, tenant, record) = (app.clone(), tenant.clone(), record.clone());
        async move {
            let turn = tokio::select! {
                turn = place.turn() => turn,
                () = record.given_up() => Err(ApiError::new(ErrorCode::Cancelled, "cancelled before it began")),
            };
            let outcome = match turn {
                Err(error) => Err(error),
                Ok(_turn) => {
                    record.begin();
                    let begun = Instant::now();
                    let outcome = run(&tenant, &record, order.request).await;
                    app.metrics.run_over(outcome.as_ref().ok(), begun.elapsed());
                    outcome
                }
            };
            record.finish(outcome);
        }
    };
    app.work.spawn(tracing::Instrument::in_current_span(work));
    Ok(record)
}

async fn run(tenant: &Arc<Tenant>, record: &Arc<RunRecord>, request: RunRequest) -> Result<RunReport, ApiError> {
    let (tenant, record) = (tenant.clone(), record.clone());
    in_background(move || {
        let mut listener = |event| record.journal.note(event);
        let context = RunContext {
            session: record.session().cloned(),
            events: EventSink::to(&mut listener),
            cancel: record.switch().clone(),
            export: None,
        };
        Ok(tenant.runtime.run_as(record.id.clone(), &request, context)?)
    })
    .await
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
