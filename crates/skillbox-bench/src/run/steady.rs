//! Many runs in sequence: the last must cost what the first cost.
#![expect(clippy::print_stdout, reason = "a measuring program prints what it measured")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Ready;

const WINDOW: usize = 100;
const TOLERANCE: f64 = 1.2;

pub(crate) struct Steady {
    runs: usize,
    first: Duration,
    last: Duration,
}

pub(crate) fn measure(ready: &Ready, runs: usize) -> anyhow::Result<Steady> {
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs.max(2 * WINDOW) {
        let begin = Instant::now();
        ready.run("true")?;
        times.push(begin.elapsed());
    }
    let median = |window: &[Duration]| {
        let mut window = window.to_vec();
        window.sort_unstable();
        window[window.len() / 2]
    };
    Ok(Steady {
        runs: times.len(),
        first: median(&times[..WINDOW]),
        last: median(&times[times.len() - WINDOW..]),
    })
}

impl Steady {
    fn ratio(&self) -> f64 {
        self.last.as_secs_f64() / self.first.as_secs_f64()
    }

    pub(crate) fn is_met(&self) -> bool {
        self.ratio() <= TOLERANCE
    }

    pub(crate) fn print(&self) {
        let verdict = if self.is_met() { "met" } else { "MISSED" };
        println!("\n{} runs in sequence", self.runs);
        println!(
            "  median of the last {WINDOW} is {:.2}x that of the first {WINDOW} ({:.3} ms; at most {TOLERANCE:.2}x): {verdict}",
            self.ratio(),
            self.first.as_secs_f64() * 1e3
        );
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({"runs": self.runs, "ratio": self.ratio(), "at_most": TOLERANCE})
    }
}
