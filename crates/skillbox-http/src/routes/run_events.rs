//! Streams the events of a run as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream, StreamExt};

use super::runs;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::PathParams;
use crate::runs::LoggedEvent;
use crate::tenant::Tenant;

/// The interval of keep-alive comments on an idle stream.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

pub(crate) async fn stream(
    State(app): State<Arc<App>>,
    Extension(tenant): Extension<Arc<Tenant>>,
    path: PathParams,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let record = runs::find_run(&tenant, path.first())?;
    let last_id = last_event_id(&headers)?;
    let batches = stream::unfold((record, last_id), |(record, last_id)| async move {
        let entries = record.events.events_after(last_id).await?;
        let newest_id = entries.last().map_or(last_id, |entry| entry.id);
        Some((stream::iter(entries), (record, newest_id)))
    });
    // A server that shuts down does not wait for listeners.
    let stopping = app.stopping.clone();
    let events = batches.flatten().map(|entry| Ok(sse_event(&entry)));
    let events = events.take_until(stopping.cancelled_owned());
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE_INTERVAL)))
}

fn sse_event(entry: &LoggedEvent) -> Event {
    Event::default()
        .id(entry.id.to_string())
        .event(entry.name)
        .data(&entry.data)
}

fn last_event_id(headers: &HeaderMap) -> Result<u64, ApiError> {
    let Some(given) = headers.get("last-event-id").filter(|given| !given.is_empty()) else {
        return Ok(0);
    };
    let number = given.to_str().ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| ApiError::invalid("not an event ID").with_field("Last-Event-ID"))
}
