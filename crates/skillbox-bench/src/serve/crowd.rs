//! Many clients at once, for a while: every run must succeed, and none may wait much longer than the others.

use std::time::{Duration, Instant};

use super::client::Http;
use super::server::Server;
use crate::claim::{Bound, Claim};

/// How much slower the slowest hundredth may be than the middle.
const SPREAD: f64 = 10.0;

pub(crate) struct Crowd {
    clients: usize,
    took: Duration,
    times: Vec<Duration>,
    errors: Vec<String>,
}

pub(crate) fn measure(server: &Server, clients: usize, how_long: Duration) -> Crowd {
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
    Crowd {
        clients,
        took: begin.elapsed(),
        times,
        errors,
    }
}

impl Crowd {
    fn percentile(&self, percent: usize) -> Duration {
        let place = (self.times.len() * percent / 100).min(self.times.len().saturating_sub(1));
        self.times.get(place).copied().unwrap_or_default()
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
        let crowd = format!("{} clients", self.clients);
        let share = self.times.len() as f64 / all.max(1) as f64;
        [
            claim(
                format!("answers of {crowd}"),
                "their requests",
                share,
                Bound::AtLeast(1.0),
            ),
            claim(
                format!("p99 of {crowd}"),
                "their p50",
                self.spread(),
                Bound::AtMost(SPREAD),
            ),
        ]
    }

    pub(crate) fn remarks(&self) -> Vec<String> {
        let millis = |percent| self.percentile(percent).as_secs_f64() * 1e3;
        let (count, seconds) = (self.times.len(), self.took.as_secs_f64());
        let mut remarks = vec![format!(
            "{} clients at once for {seconds:.0} s: {count} runs, {:.0} a second, {} errors; p50 {:.1} ms, p95 {:.1} ms, p99 {:.1} ms",
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
