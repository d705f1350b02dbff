//! Records what a run did on the network, in bounded memory.

use std::sync::{Mutex, PoisonError};

use skillbox_model::{NetworkConnection, NetworkDenial, NetworkReport};

/// The most connections, denials and failures that a report lists each.
const MAX_ENTRIES: usize = 100;

/// A longer host or reason is cut: a script chooses both.
const MAX_TEXT_CHARS: usize = 300;

/// The report of a run while it runs.
#[derive(Debug, Default)]
pub(crate) struct NetworkRecord(Mutex<NetworkReport>);

impl NetworkRecord {
    pub fn add_connection(&self, connection: NetworkConnection) {
        self.change(|report| {
            if report.connections.len() < MAX_ENTRIES {
                report.connections.push(connection);
            } else {
                report.omitted_connections += 1;
            }
        });
    }

    /// Adds a denial.
    pub fn add_denial(&self, host: &str, port: Option<u16>, reason: &str) {
        let mut is_new = false;
        self.change(|report| match count(&mut report.denials, host, port, reason) {
            Counted::New => is_new = true,
            Counted::Known => {}
            Counted::Omitted => report.omitted_denials += 1,
        });
        // A script can cause any number of denials; the log gets no more of them than the report.
        if is_new {
            tracing::info!(
                host = cut(host),
                port,
                reason = cut(reason),
                "the network of a run was denied"
            );
        }
    }

    /// Adds the failure of an allowed connection.
    pub fn add_failure(&self, host: &str, port: u16, reason: &str) {
        self.change(|report| {
            count(&mut report.failures, host, Some(port), reason);
        });
    }

    pub fn report(&self) -> NetworkReport {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, apply: impl FnOnce(&mut NetworkReport)) {
        apply(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// What became of an entry.
enum Counted {
    New,
    Known,
    /// The list is full.
    Omitted,
}

/// Counts an entry, or adds it.
fn count(entries: &mut Vec<NetworkDenial>, host: &str, port: Option<u16>, reason: &str) -> Counted {
    let (host, reason) = (cut(host), cut(reason));
    let known = entries
        .iter()
        .position(|entry| entry.host == host && entry.port == port && entry.reason == reason);
    if let Some(index) = known {
        entries[index].count += 1;
        return Counted::Known;
    }
    if entries.len() >= MAX_ENTRIES {
        return Counted::Omitted;
    }
    entries.push(NetworkDenial {
        host,
        port,
        reason,
        count: 1,
    });
    Counted::New
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_denials_are_counted_and_the_lists_are_bounded() {
        let record = NetworkRecord::default();
        for index in 0..250 {
            record.add_denial(&format!("h{index}.example"), Some(443), "no");
            record.add_denial("same.example", None, "no");
            record.add_connection(NetworkConnection {
                host: "a.example".to_owned(),
                port: 443,
                bytes_sent: index,
                bytes_received: 0,
                ms: 0,
            });
        }
        record.add_denial(&"x".repeat(5_000), None, "no");
        let report = record.report();
        assert_eq!((report.connections.len(), report.omitted_connections), (100, 150));
        assert_eq!((report.denials.len(), report.omitted_denials), (100, 152));
        let same = report.denials.iter().find(|denial| denial.host == "same.example");
        assert_eq!(same.map(|denial| denial.count), Some(250));
        let long = NetworkRecord::default();
        long.add_denial(&"x".repeat(5_000), None, "no");
        assert!(long.report().denials[0].host.len() < 400);
    }
}
