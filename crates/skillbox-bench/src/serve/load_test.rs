//! A load test with concurrent clients: every run must succeed, and none may take much longer than the others.

use std::time::{Duration, Instant};

use super::client::HttpClient;
use super::server::ServerProcess;
use crate::target::{Bound, Target};

/// The limit for the ratio of the 99th percentile to the median.
const TAIL_RATIO_LIMIT: f64 = 10.0;

/// The result of a load test.
pub(crate) struct LoadTest {
    clients: usize,
    duration: Duration,
    /// The sorted times of successful runs.
    times: Vec<Duration>,
    errors: Vec<String>,
}

pub(crate) fn measure(server: &ServerProcess, clients: usize, duration: Duration) -> LoadTest {
    let begin = Instant::now();
    let run_client = || {
        let (mut times, mut errors) = (Vec::new(), Vec::new());
        let mut client = HttpClient::connect(&server.address);
        while begin.elapsed() < duration {
            let start = Instant::now();
            let result = match &mut client {
                Ok(client) => client.run_skill(),
                Err(error) => Err(anyhow::anyhow!("{error}")),
            };
            match result {
                Ok(()) => times.push(start.elapsed()),
                Err(error) => {
                    errors.push(error.to_string());
                    client = HttpClient::connect(&server.address);
                }
            }
        }
        (times, errors)
    };
    let (mut times, mut errors) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(run_client)).collect();
        for thread in threads {
            let (own_times, own_errors) = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            times.extend(own_times);
            errors.extend(own_errors);
        }
    });
    times.sort_unstable();
    LoadTest {
        clients,
        duration: begin.elapsed(),
        times,
        errors,
    }
}

impl LoadTest {
    fn percentile(&self, percent: usize) -> Duration {
        let index = (self.times.len() * percent / 100).min(self.times.len().saturating_sub(1));
        self.times.get(index).copied().unwrap_or_default()
    }

    /// The ratio of the 99th percentile to the median.
    fn tail_ratio(&self) -> f64 {
        self.percentile(99).as_secs_f64() / self.percentile(50).as_secs_f64().max(f64::MIN_POSITIVE)
    }

    pub(crate) fn targets(&self) -> [Target; 2] {
        let request_count = self.times.len() + self.errors.len();
        let target = |subject: String, reference: &str, measured, bound| Target {
            subject,
            reference: reference.to_owned(),
            measured: Some(measured),
            bound,
        };
        let clients = format!("{} clients", self.clients);
        let success_ratio = self.times.len() as f64 / request_count.max(1) as f64;
        [
            target(
                format!("successful runs of {clients}"),
                "all their requests",
                success_ratio,
                Bound::RatioAtLeast(1.0),
            ),
            target(
                format!("p99 of {clients}"),
                "their p50",
                self.tail_ratio(),
                Bound::RatioAtMost(TAIL_RATIO_LIMIT),
            ),
        ]
    }

    pub(crate) fn remarks(&self) -> Vec<String> {
        let millis = |percent| self.percentile(percent).as_secs_f64() * 1e3;
        let (count, seconds) = (self.times.len(), self.duration.as_secs_f64());
        let mut remarks = vec![format!(
            "{} concurrent clients for {seconds:.0} s: {count} runs, {:.0} per second, {} errors; p50 {:.1} ms, p95 {:.1} ms, p99 {:.1} ms",
            self.clients,
            count as f64 / seconds,
            self.errors.len(),
            millis(50),
            millis(95),
            millis(99)
        )];
        remarks.extend(self.errors.first().map(|error| format!("first error: {error}")));
        remarks
    }
}
