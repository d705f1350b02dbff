//! Many clients at once, for a while: every run must succeed, and none may wait much longer than the others.
#![expect(clippy::print_stdout, reason = "a measuring program prints what it measured")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::Http;
use super::server::Server;

/// How much slower the slowest hundredth may be than the middle.
const SPREAD: f64 = 10.0;

pub(crate) struct Crowd {
    clients: usize,
    took: Duration,
    times: Vec<Duration>,
    errors: Vec<String>,
}

pub(crate) fn measure(server: &Server, clients: usize, how_long: Duration) -> anyhow::Result<Crowd> {
    let begin = Instant::now();
    let one = || {
        let (mut times, mut errors) = (Vec::new(), Vec::new());
        let mut client = Http::connect(&server.place);
        while begin.elapsed() < how_long {
            let asked = Instant::now();
            let ran = match &mut client {
                Ok(client) => client.skill_run(),
                Err(error) => Err(anyhow::anyhow!("{error}")),
            };
            match ran {
                Ok(()) => times.push(asked.elapsed()),
                Err(error) => {
                    errors.push(error.to_string());
                    client = Http::connect(&server.place);
                }
            }
        }
        (times, errors)
    };
    let (mut times, mut errors) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(one)).collect();
        for thread in threads {
            let (own_times, own_errors) = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            times.extend(own_times);
            errors.extend(own_errors);
        }
    });
    times.sort_unstable();
    Ok(Crowd {
        clients,
        took: begin.elapsed(),
        times,
        errors,
    })
}

impl Crowd {
    fn percentile(&self, percent: usize) -> Duration {
        let place = (self.times.len() * percent / 100).min(self.times.len().saturating_sub(1));
        self.times.get(place).copied().unwrap_or_default()
    }

    fn spread(&self) -> f64 {
        self.percentile(99).as_secs_f64() / self.percentile(50).as_secs_f64().max(f64::MIN_POSITIVE)
    }

    pub(crate) fn is_met(&self) -> bool {
        self.errors.is_empty() && !self.times.is_empty() && self.spread() <= SPREAD
    }

    pub(crate) fn print(&self) {
        let verdict = if self.is_met() { "met" } else { "MISSED" };
        let millis = |percent| self.percentile(percent).as_secs_f64() * 1e3;
        println!(
            "\n{} clients at once for {:.0} s over HTTP",
            self.clients,
            self.took.as_secs_f64()
        );
        println!(
            "  {} runs, {:.0} a second, {} errors",
            self.times.len(),
            self.times.len() as f64 / self.took.as_secs_f64(),
            self.errors.len()
        );
        println!(
            "  p50 {:.1} ms, p95 {:.1} ms, p99 {:.1} ms",
            millis(50),
            millis(95),
            millis(99)
        );
        println!(
            "  p99 is {:.1}x p50 (at most {SPREAD:.0}x), no error: {verdict}",
            self.spread()
        );
        if let Some(error) = self.errors.first() {
            println!("  the first error: {error}");
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "clients": self.clients, "seconds": self.took.as_secs_f64(), "runs": self.times.len(),
            "errors": self.errors.len(), "spread": self.spread(), "spread_at_most": SPREAD,
            "p50_ms": self.percentile(50).as_secs_f64() * 1e3, "p99_ms": self.percentile(99).as_secs_f64() * 1e3,
        })
    }
}
