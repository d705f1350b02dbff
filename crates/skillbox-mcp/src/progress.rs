//! Collects the progress of a run between two notifications.
//!
//! The run never waits for the client. Output that arrives faster than the client reads it is dropped, and the number of
//! dropped bytes is reported.

use std::sync::Mutex;

use serde_json::json;
use skillbox_model::{RunEvent, Stream};
use tokio::sync::Notify;

use crate::lock::lock;

/// Maximum number of bytes of text that wait for the client.
const MAX_PENDING_BYTES: usize = 16 << 10;

/// The progress of one run.
#[derive(Debug, Default)]
pub(crate) struct ProgressBuffer {
    pending: Mutex<PendingText>,
    ready: Notify,
}

#[derive(Debug, Default)]
struct PendingText {
    text: String,
    dropped_bytes: u64,
    /// The first bytes of an incomplete character, for stdout and for stderr.
    partial: [Vec<u8>; 2],
}

impl ProgressBuffer {
    /// Adds an event. Never waits.
    pub(crate) fn push(&self, event: &RunEvent) {
        {
            let mut pending = lock(&self.pending);
            match event {
                RunEvent::Output { stream, bytes, .. } => pending.push_output(*stream, &bytes.0),
                other => pending.push_line(other),
            }
        }
        self.ready.notify_one();
    }

    /// Waits for text for the client.
    pub(crate) async fn next_text(&self) -> String {
        loop {
            self.ready.notified().await;
            if let Some(text) = self.take_text() {
                return text;
            }
        }
    }

    /// Takes the pending text.
    pub(crate) fn take_text(&self) -> Option<String> {
        let mut pending = lock(&self.pending);
        let mut text = std::mem::take(&mut pending.text);
        let dropped = std::mem::take(&mut pending.dropped_bytes);
        if dropped > 0 {
            text.push_str(&format!("\n[{dropped} bytes left out]\n"));
        }
        (!text.is_empty()).then_some(text)
    }
}

impl PendingText {
    fn push_output(&mut self, stream: Stream, bytes: &[u8]) {
        let partial = match stream {
            Stream::Stdout => &mut self.partial[0],
            Stream::Stderr => &mut self.partial[1],
        };
        let mut whole = std::mem::take(partial);
        whole.extend_from_slice(bytes);
        // An incomplete character at the end waits for its remaining bytes.
        let end = match std::str::from_utf8(&whole) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => whole.len(),
        };
        *partial = whole.split_off(end);
        if self.text.len() + whole.len() > MAX_PENDING_BYTES {
            self.dropped_bytes += whole.len() as u64;
        } else {
            self.text.push_str(&String::from_utf8_lossy(&whole));
        }
    }

    fn push_line(&mut self, event: &RunEvent) {
        let line = match event {
            RunEvent::Accepted { run_id } => format!("[run {run_id} accepted]"),
            RunEvent::BuildingEnvironment { declared } => format!("[installing {declared} packages]"),
            RunEvent::Staged { inputs } => format!("[{inputs} inputs staged]"),
            RunEvent::Started => "[started]".to_owned(),
            RunEvent::Ended { ended_by } => format!("[ended by {}]", json!(ended_by).as_str().unwrap_or_default()),
            RunEvent::Collected { files } => format!("[{files} files collected]"),
            RunEvent::Saved { name, version } => format!("[saved {name}@{version}]"),
            RunEvent::Output { .. } => return,
        };
        if self.text.len() + line.len() <= MAX_PENDING_BYTES {
            if !self.text.is_empty() && !self.text.ends_with('\n') {
                self.text.push('\n');
            }
            self.text.push_str(&line);
            self.text.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use skillbox_model::OutputBytes;

    use super::*;

    fn stdout_event(bytes: &[u8]) -> RunEvent {
        RunEvent::Output {
            stream: Stream::Stdout,
            bytes: OutputBytes(bytes.to_vec()),
            offset: 0,
        }
    }

    #[test]
    fn characters_stay_whole_and_dropped_bytes_are_counted() {
        let progress = ProgressBuffer::default();
        progress.push(&stdout_event("grü".as_bytes().split_last().unwrap().1));
        assert_eq!(progress.take_text().unwrap(), "gr");
        progress.push(&stdout_event(&"ü".as_bytes()[1..]));
        assert_eq!(progress.take_text().unwrap(), "ü");
        for _ in 0..100 {
            progress.push(&stdout_event(&[b'x'; 1024]));
        }
        let text = progress.take_text().unwrap();
        assert!(text.len() < MAX_PENDING_BYTES + 100, "{}", text.len());
        assert!(text.ends_with(&format!("[{} bytes left out]\n", 84 * 1024)), "{text}");
        assert!(progress.take_text().is_none());
    }
}
