//! Where the microseconds of a run go, told by its own events.
#![expect(clippy::print_stdout, reason = "a measuring program prints what it measured")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use skillbox_executor::EventSink;
use skillbox_model::RunEvent;

use super::Ready;

const NAMES: [&str; 6] = [
    "accept the request",
    "freeze the skill, make the workspace, stage",
    "sandbox, up to the script's first instruction",
    "the script itself, up to the death of everything",
    "collect",
    "report and clean up",
];

const PAUSE: Duration = Duration::from_millis(20);

/// Medians of each stage.
pub(crate) struct Stages {
    medians: Vec<Duration>,
}

pub(crate) fn measure(ready: &Ready, rounds: usize) -> anyhow::Result<Stages> {
    let mut times = vec![Vec::with_capacity(rounds); NAMES.len()];
    for _ in 0..rounds.max(1) {
        // As between the requests of one agent: the spawner has had time to park a slot.
        std::thread::sleep(PAUSE);
        let begin = Instant::now();
        let mut marks = vec![begin];
        let mut listen = |event: RunEvent| {
            if !matches!(event, RunEvent::Output { .. } | RunEvent::Saved { .. }) {
                marks.push(Instant::now());
            }
        };
        ready.listened("true", EventSink::to(&mut listen))?;
        marks.push(Instant::now());
        anyhow::ensure!(marks.len() == NAMES.len() + 1, "a run told {} events", marks.len() - 2);
        for (list, pair) in times.iter_mut().zip(marks.windows(2)) {
            list.push(pair[1] - pair[0]);
        }
    }
    let median = |mut list: Vec<Duration>| {
        list.sort_unstable();
        list[list.len() / 2]
    };
    Ok(Stages {
        medians: times.into_iter().map(median).collect(),
    })
}

impl Stages {
    pub(crate) fn print(&self) {
        println!("\nwhere the time of one run goes, after a pause (medians)");
        for (name, time) in NAMES.iter().zip(&self.medians) {
            println!("  {name:<50} {:>8.0} µs", time.as_secs_f64() * 1e6);
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        let micros = self.medians.iter().map(|time| time.as_secs_f64() * 1e6);
        NAMES
            .iter()
            .zip(micros)
            .map(|(name, micros)| json!({"stage": name, "micros": micros}))
            .collect()
    }
}
