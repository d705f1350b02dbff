//! What a run tells while it goes on, gathered between two notifications.
//!
//! The run never waits for the client: what comes faster than the client takes it is left out, and how much is said.

use std::sync::Mutex;

use serde_json::json;
use skillbox_model::{RunEvent, Stream};
use tokio::sync::Notify;

use crate::host::locked;

/// Text that may wait for a client; more is left out.
const MAX_WAITING: usize = 16 << 10;

/// The news of one run.
#[derive(Debug, Default)]
pub(crate) struct News {
    waiting: Mutex<Waiting>,
    ready: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    text: String,
    left_out: u64,
    /// Beginnings of characters whose end has not come yet, by stream.
    cut: [Vec<u8>; 2],
}

impl News {
    /// Takes an event in. Never waits.
    pub(crate) fn take(&self, event: &RunEvent) {
        {
            let mut waiting = locked(&self.waiting);
            match event {
                RunEvent::Output { stream, text, .. } => waiting.output(*stream, &text.0),
                other => waiting.line(other),
            }
        }
        self.ready.notify_one();
    }

    /// The next text for the client.
    pub(crate) async fn next(&self) -> String {
        loop {
            self.ready.notified().await;
            if let Some(text) = self.rest() {
                return text;
            }
        }
    }

    /// What is waiting now.
    pub(crate) fn rest(&self) -> Option<String> {
        let mut waiting = locked(&self.waiting);
        let mut text = std::mem::take(&mut waiting.text);
        let left_out = std::mem::take(&mut waiting.left_out);
        if left_out > 0 {
            text.push_str(&format!("\n[{left_out} bytes left out]\n"));
        }
        (!text.is_empty()).then_some(text)
    }
}

impl Waiting {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        let cut = match stream {
            Stream::Stdout => &mut self.cut[0],
            Stream::Stderr => &mut self.cut[1],
        };
        let mut whole = std::mem::take(cut);
        whole.extend_from_slice(bytes);
        // A character that is cut off at the end waits for the rest of it.
        let end = match std::str::from_utf8(&whole) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => whole.len(),
        };
        *cut = whole.split_off(end);
        if self.text.len() + whole.len() > MAX_WAITING {
            self.left_out += whole.len() as u64;
        } else {
            self.text.push_str(&String::from_utf8_lossy(&whole));
        }
    }

    fn line(&mut self, event: &RunEvent) {
        let line = match event {
            RunEvent::Accepted { run_id } => format!("[run {run_id} accepted]"),
            RunEvent::Staged { inputs } => format!("[{inputs} inputs staged]"),
            RunEvent::Started => "[started]".to_owned(),
            RunEvent::Ended { ended_by } => format!("[ended by {}]", json!(ended_by).as_str().unwrap_or_default()),
            RunEvent::Collected { files } => format!("[{files} files collected]"),
            RunEvent::Saved { name, version } => format!("[saved {name}@{version}]"),
            RunEvent::Output { .. } => return,
        };
        if self.text.len() + line.len() <= MAX_WAITING {
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

    fn out(bytes: &[u8]) -> RunEvent {
        RunEvent::Output {
            stream: Stream::Stdout,
            text: OutputBytes(bytes.to_vec()),
            offset: 0,
        }
    }

    #[test]
    fn characters_are_never_cut_and_floods_are_counted() {
        let news = News::default();
        news.take(&out("grü".as_bytes().split_last().unwrap().1));
        assert_eq!(news.rest().unwrap(), "gr");
        news.take(&out(&"ü".as_bytes()[1..]));
        assert_eq!(news.rest().unwrap(), "ü");
        for _ in 0..100 {
            news.take(&out(&[b'x'; 1024]));
        }
        let text = news.rest().unwrap();
        assert!(text.len() < MAX_WAITING + 100, "{}", text.len());
        assert!(text.ends_with(&format!("[{} bytes left out]\n", 84 * 1024)), "{text}");
        assert!(news.rest().is_none());
    }
}
