//! Metrics in the text format of Prometheus.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::Method;

use skillbox_runtime::ForwardStatus;

use crate::histogram::{Histogram, write_header, write_sample};
use crate::lock::lock;
use crate::run_metrics::RunMetrics;

/// Counters of the whole server, without tenant labels.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<(String, String, u16), u64>>,
    request_durations: Histogram,
    pub runs: RunMetrics,
    rejected_runs: AtomicU64,
    pub connections: AtomicU64,
}

/// Values that are read when the metrics are requested.
pub(crate) struct CurrentLoad {
    pub running: usize,
    pub queued: usize,
    pub sessions: usize,
    pub resident_bytes: Option<u64>,
    pub parked_sandboxes: Option<u64>,
    pub audit_forward: Option<ForwardStatus>,
    pub stored_bytes: Vec<(&'static str, u64)>,
}

impl Metrics {
    pub(crate) fn record_request(&self, method: &Method, route: &str, status: u16, duration: Duration) {
        // Clients can send arbitrary methods, which must not become labels.
        let labelled_methods = [
            Method::GET,
            Method::HEAD,
            Method::POST,
            Method::PUT,
            Method::DELETE,
            Method::OPTIONS,
        ];
        let method = if labelled_methods.contains(method) {
            method.as_str()
        } else {
            "other"
        };
        let key = (method.to_owned(), route.to_owned(), status);
        *lock(&self.requests).entry(key).or_default() += 1;
        self.request_durations.observe(duration);
    }

    pub(crate) fn record_rejected_run(&self) {
        self.rejected_runs.fetch_add(1, Ordering::Relaxed);
    }

    /// All metrics as text.
    pub(crate) fn render(&self, load: &CurrentLoad) -> String {
        let mut out = String::new();
        write_header(
            &mut out,
            "skillbox_http_requests_total",
            "counter",
            "Number of requests.",
        );
        for ((method, route, status), count) in lock(&self.requests).iter() {
            let labels = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
            write_sample(&mut out, "skillbox_http_requests_total", &labels, *count);
        }
        let name = "skillbox_http_request_duration_seconds";
        self.request_durations
            .write(&mut out, name, "Time until the response started.");
        self.runs.write(&mut out);
        let rejected_runs = self.rejected_runs.load(Ordering::Relaxed);
        let unlabelled = [
            (
                "skillbox_runs_rejected_total",
                "counter",
                "Number of runs rejected because the queue was full.",
                rejected_runs,
            ),
            (
                "skillbox_runs_running",
                "gauge",
                "Running runs and tool calls.",
                load.running as u64,
            ),
            (
                "skillbox_runs_queued",
                "gauge",
                "Runs and tool calls waiting in the queue.",
                load.queued as u64,
            ),
            ("skillbox_sessions", "gauge", "Stored sessions.", load.sessions as u64),
            (
                "skillbox_http_connections",
                "gauge",
                "Open connections.",
                self.connections.load(Ordering::Relaxed),
            ),
        ];
        for (name, kind, help, value) in unlabelled {
            write_header(&mut out, name, kind, help);
            write_sample(&mut out, name, "", value);
        }
        if let Some(status) = &load.audit_forward {
            let forwarding = [
                (
                    "skillbox_audit_pending_records",
                    "Audit records that the receiver does not have yet.",
                    status.pending,
                ),
                (
                    "skillbox_audit_missing_records",
                    "Audit records that were removed before they could be forwarded.",
                    status.missing,
                ),
                (
                    "skillbox_audit_forward_failing",
                    "Whether the last attempt to forward audit records failed.",
                    u64::from(status.problem.is_some()),
                ),
            ];
            for (name, help, value) in forwarding {
                write_header(&mut out, name, "gauge", help);
                write_sample(&mut out, name, "", value);
            }
        }
        let optional = [
            (
                "skillbox_sandboxes_parked",
                "Sandboxes that wait for a run.",
                load.parked_sandboxes,
            ),
            (
                "process_resident_memory_bytes",
                "Resident memory of the server.",
                load.resident_bytes,
            ),
        ];
        for (name, help, value) in optional {
            if let Some(value) = value {
                write_header(&mut out, name, "gauge", help);
                write_sample(&mut out, name, "", value);
            }
        }
        let name = "skillbox_stored_bytes";
        write_header(&mut out, name, "gauge", "Bytes in the state directory, by kind.");
        for (kind, bytes) in &load.stored_bytes {
            write_sample(&mut out, name, &format!("kind=\"{kind}\""), bytes);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative() {
        let metrics = Metrics::default();
        for millis in [2, 30, 400_000] {
            let method = Method::from_bytes(b"INVENTED").unwrap();
            metrics.record_request(&method, "/x", 200, Duration::from_millis(millis));
        }
        let load = CurrentLoad {
            running: 1,
            queued: 2,
            sessions: 3,
            resident_bytes: None,
            parked_sandboxes: Some(4),
            audit_forward: Some(ForwardStatus {
                pending: 6,
                ..ForwardStatus::default()
            }),
            stored_bytes: vec![("sessions", 5)],
        };
        let text = metrics.render(&load);
        for expected in [
            "skillbox_http_requests_total{method=\"other\",route=\"/x\",status=\"200\"} 3",
            "skillbox_http_request_duration_seconds_bucket{le=\"0.0025\"} 1",
            "skillbox_http_request_duration_seconds_bucket{le=\"300\"} 2",
            "skillbox_http_request_duration_seconds_bucket{le=\"+Inf\"} 3",
            "skillbox_http_request_duration_seconds_sum 400.032",
            "skillbox_runs_queued 2",
            "skillbox_sandboxes_parked 4",
            "skillbox_audit_pending_records 6",
            "skillbox_audit_forward_failing 0",
            "skillbox_stored_bytes{kind=\"sessions\"} 5",
        ] {
            assert!(text.lines().any(|line| line == expected), "{expected} in\n{text}");
        }
    }
}
