//! What is counted, and how Prometheus reads it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::Method;
use skillbox_model::RunReport;

use crate::runs::locked;

/// Upper bounds of the classes of durations, in seconds.
const CLASSES: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 300.0,
];

/// Counters of the whole server. Nothing in them tells one tenant from another.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<(String, String, u16), u64>>,
    request_times: Histogram,
    runs: Mutex<BTreeMap<String, u64>>,
    run_times: Histogram,
    sent_away: AtomicU64,
    pub connections: AtomicU64,
}

#[derive(Debug, Default)]
struct Histogram {
    classes: [AtomicU64; CLASSES.len()],
    count: AtomicU64,
    micros: AtomicU64,
}

/// What is true only at the moment of asking.
pub(crate) struct Now {
    pub running: usize,
    pub queued: usize,
    pub sessions: usize,
    pub resident_bytes: Option<u64>,
}

impl Metrics {
    pub(crate) fn request(&self, method: &Method, route: &str, status: u16, took: Duration) {
        // A method that we do not know is one more that clients invent.
        let known = [
            Method::GET,
            Method::HEAD,
            Method::POST,
            Method::PUT,
            Method::DELETE,
            Method::OPTIONS,
        ];
        let method = if known.contains(method) {
            method.as_str()
        } else {
            "other"
        };
        let key = (method.to_owned(), route.to_owned(), status);
        *locked(&self.requests).entry(key).or_default() += 1;
        self.request_times.note(took);
    }

    /// A run is over; without a report it was refused.
    pub(crate) fn run_over(&self, report: Option<&RunReport>, took: Duration) {
        let outcome = match report {
            Some(report) => serde_json::json!(report.ended_by)
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            None => "refused".to_owned(),
        };
        *locked(&self.runs).entry(outcome).or_default() += 1;
        self.run_times.note(took);
    }

    pub(crate) fn run_sent_away(&self) {
        self.sent_away.fetch_add(1, Ordering::Relaxed);
    }

    /// Everything, in the text format of Prometheus.
    pub(crate) fn render(&self, now: &Now) -> String {
        let mut out = String::new();
        head(
            &mut out,
            "skillbox_http_requests_total",
            "counter",
            "Requests answered.",
        );
        for ((method, route, status), count) in locked(&self.requests).iter() {
            let labels = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
            line(&mut out, "skillbox_http_requests_total", &labels, *count);
        }
        let name = "skillbox_http_request_duration_seconds";
        self.request_times.render(&mut out, name, "Time until an answer began.");
        head(
            &mut out,
            "skillbox_runs_total",
            "counter",
            "Runs that are over, by what ended them.",
        );
        for (outcome, count) in locked(&self.runs).iter() {
            line(
                &mut out,
                "skillbox_runs_total",
                &format!("outcome=\"{outcome}\""),
                *count,
            );
        }
        let name = "skillbox_run_duration_seconds";
        self.run_times
            .render(&mut out, name, "Time of a run, without the queue.");
        let sent_away = self.sent_away.load(Ordering::Relaxed);
        let single = [
            (
                "skillbox_runs_rejected_total",
                "counter",
                "Runs sent away because the queue was full.",
                sent_away,
            ),
            (
                "skillbox_runs_running",
                "gauge",
                "Runs and tool calls going on.",
                now.running as u64,
            ),
            (
                "skillbox_runs_queued",
                "gauge",
                "Runs and tool calls waiting for their turn.",
                now.queued as u64,
            ),
            ("skillbox_sessions", "gauge", "Sessions stored.", now.sessions as u64),
            (
                "skillbox_http_connections",
                "gauge",
                "Connections open.",
                self.connections.load(Ordering::Relaxed),
            ),
        ];
        for (name, kind, about, value) in single {
            head(&mut out, name, kind, about);
            line(&mut out, name, "", value);
        }
        if let Some(bytes) = now.resident_bytes {
            head(
                &mut out,
                "process_resident_memory_bytes",
                "gauge",
                "Resident memory of the server.",
            );
            line(&mut out, "process_resident_memory_bytes", "", bytes);
        }
        out
    }
}

impl Histogram {
    fn note(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        if let Some(class) = CLASSES.iter().position(|bound| seconds <= *bound) {
            self.classes[class].fetch_add(1, Ordering::Relaxed);
        }
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    fn render(&self, out: &mut String, name: &str, about: &str) {
        head(out, name, "histogram", about);
        let mut sum = 0;
        for (bound, class) in CLASSES.iter().zip(&self.classes) {
            sum += class.load(Ordering::Relaxed);
            line(out, &format!("{name}_bucket"), &format!("le=\"{bound}\""), sum);
        }
        // Noted meanwhile or not: no class may hold more than all together.
        let count = self.count.load(Ordering::Relaxed).max(sum);
        line(out, &format!("{name}_bucket"), "le=\"+Inf\"", count);
        let seconds = self.micros.load(Ordering::Relaxed) as f64 / 1e6;
        line(out, &format!("{name}_sum"), "", seconds);
        line(out, &format!("{name}_count"), "", count);
    }
}

fn head(out: &mut String, name: &str, kind: &str, about: &str) {
    // Writing to a text cannot fail.
    let _ = writeln!(out, "# HELP {name} {about}\n# TYPE {name} {kind}");
}

fn line(out: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
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
    fn classes_add_up() {
        let metrics = Metrics::default();
        for millis in [2, 30, 400_000] {
            let method = Method::from_bytes(b"INVENTED").unwrap();
            metrics.request(&method, "/x", 200, Duration::from_millis(millis));
        }
        let now = Now {
            running: 1,
            queued: 2,
            sessions: 3,
            resident_bytes: None,
        };
        let text = metrics.render(&now);
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
