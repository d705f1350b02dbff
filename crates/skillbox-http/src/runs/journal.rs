//! What a run has told so far, kept within bounds for those who listen now or come back later.
//!
//! The run never waits for a listener. What is too old for the bounds is left out, and how much is said.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::json;
use skillbox_model::{OutputBytes, RunEvent, Stream};
use tokio::sync::Notify;

use super::record::locked;

/// Bytes of events that are kept.
const MAX_BYTES: usize = 256 << 10;

/// One event as listeners get it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// Counted from 1.
    pub id: u64,
    pub name: &'static str,
    /// JSON on one line.
    pub data: Arc<str>,
}

/// The events of one run.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    kept: Mutex<Kept>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Kept {
    entries: VecDeque<Entry>,
    bytes: usize,
    last_id: u64,
    /// Beginnings of characters whose end has not come yet, by stream.
    cut: [Vec<u8>; 2],
    is_over: bool,
}

impl Journal {
    /// Takes an event in. Never waits.
    pub(crate) fn note(&self, event: RunEvent) {
        locked(&self.kept).note(event);
        self.news.notify_waiters();
    }

    /// Takes in the last event; nothing comes after it.
    pub(crate) fn end(&self, name: &'static str, data: Arc<str>) {
        {
            let mut kept = locked(&self.kept);
            kept.push(name, data);
            kept.is_over = true;
        }
        self.news.notify_waiters();
    }

    /// The events after one, or none where there will be no more. Waits for the next where it is not there yet.
    pub(crate) async fn after(&self, id: u64) -> Option<Vec<Entry>> {
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            // From now on no news is missed.
            news.as_mut().enable();
            {
                let kept = locked(&self.kept);
                let found = kept.after(id);
                if !found.is_empty() {
                    return Some(found);
                }
                if kept.is_over {
                    return None;
                }
            }
            news.await;
        }
    }

    /// What it takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        locked(&self.kept).bytes
    }
}

impl Kept {
    fn note(&mut self, event: RunEvent) {
        let event = match event {
            RunEvent::Output { stream, text, offset } => match self.whole_characters(stream, text.0, offset) {
                Some(event) => event,
                None => return,
            },
            other => other,
        };
        let data = serde_json::to_string(&event);
        let data = data.unwrap_or_else(|error| unreachable!("an event can be written as JSON: {error}"));
        self.push(name_of(&event), data.into());
    }

    /// A character that is cut off at the end waits for the rest of it.
    fn whole_characters(&mut self, stream: Stream, bytes: Vec<u8>, offset: u64) -> Option<RunEvent> {
        let cut = match stream {
            Stream::Stdout => &mut self.cut[0],
            Stream::Stderr => &mut self.cut[1],
        };
        let mut whole = std::mem::take(cut);
        let offset = offset.saturating_sub(whole.len() as u64);
        whole.extend(bytes);
        let end = match std::str::from_utf8(&whole) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => whole.len(),
        };
        *cut = whole.split_off(end);
        (!whole.is_empty()).then_some(RunEvent::Output {
            stream,
            text: OutputBytes(whole),
            offset,
        })
    }

    fn push(&mut self, name: &'static str, data: Arc<str>) {
        self.last_id += 1;
        self.bytes += data.len();
        self.entries.push_back(Entry {
            id: self.last_id,
            name,
            data,
        });
        while self.bytes > MAX_BYTES && self.entries.len() > 1 {
            let dropped = self.entries.pop_front();
            self.bytes -= dropped.map_or(0, |entry| entry.data.len());
        }
    }

    fn after(&self, id: u64) -> Vec<Entry> {
        let newer = self.entries.iter().filter(|entry| entry.id > id).cloned();
        let mut found: Vec<Entry> = newer.collect();
        if let Some(first) = found.first()
            && first.id > id + 1
        {
            let lost = first.id - id - 1;
            let told = Entry {
                id: first.id - 1,
                name: "left_out",
                data: json!({"event": "left_out", "events": lost}).to_string().into(),
            };
            found.insert(0, told);
        }
        found
    }
}

fn name_of(event: &RunEvent) -> &'static str {
    match event {
        RunEvent::Accepted { .. } => "accepted",
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

    fn out(bytes: &[u8], offset: u64) -> RunEvent {
        RunEvent::Output {
            stream: Stream::Stdout,
            text: OutputBytes(bytes.to_vec()),
            offset,
        }
    }

    #[tokio::test]
    async fn listeners_get_what_they_have_not_seen_and_then_the_end() {
        let journal = Journal::default();
        journal.note(RunEvent::Started);
        journal.note(out(&"ü".as_bytes()[..1], 0));
        journal.note(out(&"ü".as_bytes()[1..], 1));
        journal.end("done", "{}".into());
        let all = journal.after(0).await.unwrap();
        let told: Vec<_> = all.iter().map(|entry| (entry.id, entry.name)).collect();
        assert_eq!(told, [(1, "started"), (2, "output"), (3, "done")]);
        assert_eq!(
            &*all[1].data,
            r#"{"event":"output","stream":"stdout","text":"ü","offset":0}"#
        );
        assert_eq!(journal.after(2).await.unwrap().len(), 1);
        assert_eq!(journal.after(3).await, None);
    }

    #[tokio::test]
    async fn a_flood_is_bounded_and_what_is_lost_is_counted() {
        let journal = Journal::default();
        for offset in 0..1_000 {
            journal.note(out(&[b'x'; 1024], offset * 1024));
        }
        assert!(journal.bytes() <= MAX_BYTES);
        let all = journal.after(10).await.unwrap();
        assert_eq!(all[0].name, "left_out");
        let lost = all[1].id - 11;
        assert_eq!(*all[0].data, format!(r#"{{"event":"left_out","events":{lost}}}"#));
        assert_eq!(all.last().unwrap().id, 1_000);
    }
}
