//! The events of a run as a stream of server-sent events.

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
use crate::extract::PathText;
use crate::runs::Entry;
use crate::tenant::Tenant;

/// How often a silent stream shows that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub(crate) async fn stream(
    State(app): State<Arc<App>>,
    Extension(tenant): Extension<Arc<Tenant>>,
    path: PathText,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let record = runs::known(&tenant, path.first())?;
    let seen = last_seen(&headers)?;
    let batches = stream::unfold((record, seen), |(record, seen)| async move {
        let entries = record.journal.after(seen).await?;
        let last = entries.last().map_or(seen, |entry| entry.id);
        Some((stream::iter(entries), (record, last)))
    });
    // A server that ends does not wait for those who listen.
    let stopping = app.stopping.clone();
    let events = batches.flatten().map(|entry| Ok(event(&entry)));
    let events = events.take_until(stopping.cancelled_owned());
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

fn event(entry: &Entry) -> Event {
    Event::default()
        .id(entry.id.to_string())
        .event(entry.name)
        .data(&entry.data)
}

fn last_seen(headers: &HeaderMap) -> Result<u64, ApiError> {
    let Some(given) = headers.get("last-event-id").filter(|given| !given.is_empty()) else {
        return Ok(0);
    };
    let number = given.to_str().ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| ApiError::invalid("it is not the id of an event").in_field("Last-Event-ID"))
}
