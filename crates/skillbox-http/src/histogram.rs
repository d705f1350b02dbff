//! A histogram in the text format of Prometheus, and the format itself.

use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the histogram buckets, in seconds.
const BUCKET_BOUNDS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 300.0,
];

/// Counts durations by size.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BUCKET_BOUNDS.len()],
    count: AtomicU64,
    sum_micros: AtomicU64,
}

impl Histogram {
    pub(crate) fn observe(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        if let Some(bucket) = BUCKET_BOUNDS.iter().position(|bound| seconds <= *bound) {
            self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.sum_micros.fetch_add(micros, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Writes the samples; `labels` may be empty. The caller writes the header, once for all labels.
    pub(crate) fn write_samples(&self, out: &mut String, name: &str, labels: &str) {
        let separator = if labels.is_empty() { "" } else { "," };
        let mut cumulative = 0;
        for (bound, bucket) in BUCKET_BOUNDS.iter().zip(&self.buckets) {
            cumulative += bucket.load(Ordering::Relaxed);
            let labels = format!("{labels}{separator}le=\"{bound}\"");
            write_sample(out, &format!("{name}_bucket"), &labels, cumulative);
        }
        // An observation may be added while the buckets are read, but no bucket may exceed the total.
        let count = self.count.load(Ordering::Relaxed).max(cumulative);
        let infinite = format!("{labels}{separator}le=\"+Inf\"");
        write_sample(out, &format!("{name}_bucket"), &infinite, count);
        let seconds = self.sum_micros.load(Ordering::Relaxed) as f64 / 1e6;
        write_sample(out, &format!("{name}_sum"), labels, seconds);
        write_sample(out, &format!("{name}_count"), labels, count);
    }

    /// Writes the whole metric.
    pub(crate) fn write(&self, out: &mut String, name: &str, help: &str) {
        write_header(out, name, "histogram", help);
        self.write_samples(out, name, "");
    }
}

pub(crate) fn write_header(out: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

pub(crate) fn write_sample(out: &mut String, name: &str, labels: &str, value: impl Display) {
    let _ = if labels.is_empty() {
        writeln!(out, "{name} {value}")
    } else {
        writeln!(out, "{name}{{{labels}}} {value}")
    };
}
