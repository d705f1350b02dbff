//! Metrics in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::Method;
use skillbox_model::RunReport;

use crate::lock::lock;

/// Upper bounds of the histogram buckets, in seconds.
const BUCKET_BOUNDS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 300.0,
];

/// Counters of the whole server, without tenant labels.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<(String, String, u16), u64>>,
    request_durations: Histogram,
    runs: Mutex<BTreeMap<String, u64>>,
    run_durations: Histogram,
    rejected_runs: AtomicU64,
    pub connections: AtomicU64,
}

#[derive(Debug, Default)]
struct Histogram {
    buckets: [AtomicU64; BUCKET_BOUNDS.len()],
    count: AtomicU64,
    sum_micros: AtomicU64,
}

/// Values that are read when the metrics are requested.
pub(crate) struct CurrentLoad {
    pub running: usize,
    pub queued: usize,
    pub sessions: usize,
    pub resident_bytes: Option<u64>,
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

    /// Counts a finished run. A run without a report was refused.
    pub(crate) fn record_run(&self, report: Option<&RunReport>, duration: Duration) {
        let outcome = match report {
            Some(report) => serde_json::json!(report.ended_by)
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            None => "refused".to_owned(),
        };
        *lock(&self.runs).entry(outcome).or_default() += 1;
        self.run_durations.observe(duration);
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
            .render(&mut out, name, "Time until the response started.");
        write_header(
            &mut out,
            "skillbox_runs_total",
            "counter",
            "Number of ended runs, by outcome.",
        );
        for (outcome, count) in lock(&self.runs).iter() {
            write_sample(
                &mut out,
                "skillbox_runs_total",
                &format!("outcome=\"{outcome}\""),
                *count,
            );
        }
        let name = "skillbox_run_duration_seconds";
        self.run_durations
            .render(&mut out, name, "Duration of runs, without waiting in the queue.");
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
        if let Some(bytes) = load.resident_bytes {
            write_header(
                &mut out,
                "process_resident_memory_bytes",
                "gauge",
                "Resident memory of the server.",
            );
            write_sample(&mut out, "process_resident_memory_bytes", "", bytes);
        }
        out
    }
}

impl Histogram {
    fn observe(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        if let Some(bucket) = BUCKET_BOUNDS.iter().position(|bound| seconds <= *bound) {
            self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.sum_micros.fetch_add(micros, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    fn render(&self, out: &mut String, name: &str, help: &str) {
        write_header(out, name, "histogram", help);
        let mut cumulative = 0;
        for (bound, bucket) in BUCKET_BOUNDS.iter().zip(&self.buckets) {
            cumulative += bucket.load(Ordering::Relaxed);
            write_sample(out, &format!("{name}_bucket"), &format!("le=\"{bound}\""), cumulative);
        }
        // An observation may be added while the buckets are read, but no bucket may exceed the total.
        let count = self.count.load(Ordering::Relaxed).max(cumulative);
        write_sample(out, &format!("{name}_bucket"), "le=\"+Inf\"", count);
        let seconds = self.sum_micros.load(Ordering::Relaxed) as f64 / 1e6;
        write_sample(out, &format!("{name}_sum"), "", seconds);
        write_sample(out, &format!("{name}_count"), "", count);
    }
}

fn write_header(out: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn write_sample(out: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    let _ = if labels.is_empty() {
        writeln!(out, "{name} {value}")
    } else {
        writeln!(out, "{name}{{{labels}}} {value}")
    };
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
        };
        let text = metrics.render(&load);
        for expected in [
            "skillbox_http_requests_total{method=\"other\",route=\"/x\",status=\"200\"} 3",
            "skillbox_http_request_duration_seconds_bucket{le=\"0.0025\"} 1",
            "skillbox_http_request_duration_seconds_bucket{le=\"300\"} 2",
            "skillbox_http_request_duration_seconds_bucket{le=\"+Inf\"} 3",
            "skillbox_http_request_duration_seconds_sum 400.032",
            "skillbox_runs_queued 2",
        ] {
            assert!(text.lines().any(|line| line == expected), "{expected} in\n{text}");
        }
    }
}
