//! Concurrent clients for some time: every run must succeed, and none may wait much longer than the others.

use std::time::{Duration, Instant};

use super::client::HttpClient;
use super::server::Server;
use crate::claim::{Bound, Claim};

/// The limit of the ratio of the 99th percentile to the median.
const SPREAD_LIMIT: f64 = 10.0;

pub(crate) struct LoadTest {
    clients: usize,
    took: Duration,
    times: Vec<Duration>,
    errors: Vec<String>,
}

pub(crate) fn measure(server: &Server, clients: usize, duration: Duration) -> LoadTest {
    let begin = Instant::now();
    let run_client = || {
        let (mut times, mut errors) = (Vec::new(), Vec::new());
        let mut client = HttpClient::connect(&server.address);
        while begin.elapsed() < duration {
            let asked = Instant::now();
            let ran = match &mut client {
                Ok(client) => client.skill_run(),
                Err(error) => Err(anyhow::anyhow!("{error}")),
            };
            match ran {
                Ok(()) => times.push(asked.elapsed()),
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
        took: begin.elapsed(),
        times,
        errors,
    }
}

impl LoadTest {
    fn percentile(&self, percent: usize) -> Duration {
        let index = (self.times.len() * percent / 100).min(self.times.len().saturating_sub(1));
        self.times.get(index).copied().unwrap_or_default()
    }

    fn spread(&self) -> f64 {
        self.percentile(99).as_secs_f64() / self.percentile(50).as_secs_f64().max(f64::MIN_POSITIVE)
    }

    pub(crate) fn claims(&self) -> [Claim; 2] {
        let all = self.times.len() + self.errors.len();
        let claim = |what: String, against: &str, measured, bound| Claim {
            what,
            against: against.to_owned(),
            measured: Some(measured),
            bound,
        };
        let clients = format!("{} clients", self.clients);
        let share = self.times.len() as f64 / all.max(1) as f64;
        [
            claim(
                format!("answers of {clients}"),
                "their requests",
                share,
                Bound::AtLeast(1.0),
            ),
            claim(
                format!("p99 of {clients}"),
                "their p50",
                self.spread(),
                Bound::AtMost(SPREAD_LIMIT),
            ),
        ]
    }

    pub(crate) fn remarks(&self) -> Vec<String> {
        let millis = |percent| self.percentile(percent).as_secs_f64() * 1e3;
        let (count, seconds) = (self.times.len(), self.took.as_secs_f64());
        let mut remarks = vec![format!(
            "{} concurrent clients for {seconds:.0} s: {count} runs, {:.0} a second, {} errors; p50 {:.1} ms, p95 {:.1} ms, p99 {:.1} ms",
            self.clients,
            count as f64 / seconds,
            self.errors.len(),
            millis(50),
            millis(95),
            millis(99)
        )];
        remarks.extend(self.errors.first().map(|error| format!("the first error: {error}")));
        remarks
    }
}
