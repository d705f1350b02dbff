//! The latest events of a run, stored for current and later listeners.
//!
//! The run never waits for a listener. Beyond a total size, the oldest events are dropped, and a `left_out` event
//! reports their number.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::json;
use skillbox_model::{OutputBytes, RunEvent, Stream};
use tokio::sync::Notify;

use crate::lock::lock;

/// The total size of stored events.
const MAX_BYTES: usize = 256 << 10;

/// An event in the form that listeners receive.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LoggedEvent {
    /// Counted from 1.
    pub id: u64,
    pub name: &'static str,
    /// JSON on one line.
    pub data: Arc<str>,
}

/// The events of one run.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    state: Mutex<LogState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct LogState {
    entries: VecDeque<LoggedEvent>,
    bytes: usize,
    last_id: u64,
    /// For stdout and stderr, the first bytes of a character whose remaining bytes have not arrived yet.
    partial_characters: [Vec<u8>; 2],
    is_closed: bool,
}

impl EventLog {
    /// Appends an event. Never waits.
    pub(crate) fn append(&self, event: RunEvent) {
        lock(&self.state).append(event);
        self.changed.notify_waiters();
    }

    /// Appends the last event.
    pub(crate) fn close(&self, name: &'static str, data: Arc<str>) {
        {
            let mut state = lock(&self.state);
            state.push(name, data);
            state.is_closed = true;
        }
        self.changed.notify_waiters();
    }

    /// The events after `id`. Waits until there is one; returns `None` once the log is closed and has no more.
    pub(crate) async fn events_after(&self, id: u64) -> Option<Vec<LoggedEvent>> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registers now, so that a change after the check below is not missed.
            changed.as_mut().enable();
            {
                let state = lock(&self.state);
                let found = state.events_after(id);
                if !found.is_empty() {
                    return Some(found);
                }
                if state.is_closed {
                    return None;
                }
            }
            changed.await;
        }
    }

    /// The size of the stored events.
    pub(crate) fn bytes(&self) -> usize {
        lock(&self.state).bytes
    }
}

impl LogState {
    fn append(&mut self, event: RunEvent) {
        let event = match event {
            RunEvent::Output { stream, bytes, offset } => match self.whole_characters(stream, bytes.0, offset) {
                Some(event) => event,
                None => return,
            },
            other => other,
        };
        let data = serde_json::to_string(&event);
        let data = data.unwrap_or_else(|error| unreachable!("an event serialises to JSON: {error}"));
        self.push(event_name(&event), data.into());
    }

    /// Adds the bytes held back earlier, and holds back an incomplete character at the end.
    fn whole_characters(&mut self, stream: Stream, bytes: Vec<u8>, offset: u64) -> Option<RunEvent> {
        let partial = match stream {
            Stream::Stdout => &mut self.partial_characters[0],
            Stream::Stderr => &mut self.partial_characters[1],
        };
        let mut whole = std::mem::take(partial);
        let offset = offset.saturating_sub(whole.len() as u64);
        whole.extend(bytes);
        let end = match std::str::from_utf8(&whole) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => whole.len(),
        };
        *partial = whole.split_off(end);
        (!whole.is_empty()).then_some(RunEvent::Output {
            stream,
            bytes: OutputBytes(whole),
            offset,
        })
    }

    fn push(&mut self, name: &'static str, data: Arc<str>) {
        self.last_id += 1;
        self.bytes += data.len();
        self.entries.push_back(LoggedEvent {
            id: self.last_id,
            name,
            data,
        });
        while self.bytes > MAX_BYTES && self.entries.len() > 1 {
            let dropped = self.entries.pop_front();
            self.bytes -= dropped.map_or(0, |entry| entry.data.len());
        }
    }

    fn events_after(&self, id: u64) -> Vec<LoggedEvent> {
        let newer = self.entries.iter().filter(|entry| entry.id > id).cloned();
        let mut found: Vec<LoggedEvent> = newer.collect();
        if let Some(first) = found.first()
            && first.id > id + 1
        {
            let dropped = first.id - id - 1;
            let notice = LoggedEvent {
                id: first.id - 1,
                name: "left_out",
                data: json!({"event": "left_out", "events": dropped}).to_string().into(),
            };
            found.insert(0, notice);
        }
        found
    }
}

fn event_name(event: &RunEvent) -> &'static str {
    match event {
        RunEvent::Accepted { .. } => "accepted",
        RunEvent::BuildingEnvironment { .. } => "building_environment",
        RunEvent::Staged { .. } => "staged",
        RunEvent::Started => "started",
        RunEvent::Output { .. } => "output",
        RunEvent::Ended { .. } => "ended",
        RunEvent::Collected { .. } => "collected",
        RunEvent::Saved { .. } => "saved",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stdout_event(bytes: &[u8], offset: u64) -> RunEvent {
        RunEvent::Output {
            stream: Stream::Stdout,
            bytes: OutputBytes(bytes.to_vec()),
            offset,
        }
    }

    #[tokio::test]
    async fn listeners_receive_new_events_and_then_the_end() {
        let log = EventLog::default();
        log.append(RunEvent::Started);
        log.append(stdout_event(&"ü".as_bytes()[..1], 0));
        log.append(stdout_event(&"ü".as_bytes()[1..], 1));
        log.close("done", "{}".into());
        let all = log.events_after(0).await.unwrap();
        let received: Vec<_> = all.iter().map(|entry| (entry.id, entry.name)).collect();
        assert_eq!(received, [(1, "started"), (2, "output"), (3, "done")]);
        assert_eq!(
            &*all[1].data,
            r#"{"event":"output","stream":"stdout","text":"ü","offset":0}"#
        );
        assert_eq!(log.events_after(2).await.unwrap().len(), 1);
        assert_eq!(log.events_after(3).await, None);
    }

    #[tokio::test]
    async fn many_events_are_bounded_and_dropped_ones_are_counted() {
        let log = EventLog::default();
        for offset in 0..1_000 {
            log.append(stdout_event(&[b'x'; 1024], offset * 1024));
        }
        assert!(log.bytes() <= MAX_BYTES);
        let all = log.events_after(10).await.unwrap();
        assert_eq!(all[0].name, "left_out");
        let dropped = all[1].id - 11;
        assert_eq!(*all[0].data, format!(r#"{{"event":"left_out","events":{dropped}}}"#));
        assert_eq!(all.last().unwrap().id, 1_000);
    }
}
