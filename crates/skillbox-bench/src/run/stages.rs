//! The time of each stage of a run, measured by its events.

use std::time::{Duration, Instant};

use skillbox_executor::EventSink;
use skillbox_model::RunEvent;

use crate::bench_runtime::{BenchRuntime, RunSpec};

const STAGES: [&str; 6] = [
    "accept the request",
    "freeze the skill, make the workspace, stage",
    "sandbox, up to the script's first instruction",
    "the script itself, up to the end of every process",
    "collect",
    "report and clean up",
];

const PAUSE: Duration = Duration::from_millis(4);

/// Returns one line for each stage, with its median.
pub(crate) fn measure(runtime: &BenchRuntime, rounds: usize) -> anyhow::Result<Vec<String>> {
    let mut times = vec![Vec::with_capacity(rounds); STAGES.len()];
    for _ in 0..rounds.max(1) {
        // As between the requests of an agent, the spawner has the time to park a slot.
        std::thread::sleep(PAUSE);
        let begin = Instant::now();
        let mut marks = vec![begin];
        let mut record = |event: RunEvent| {
            if !matches!(event, RunEvent::Output { .. } | RunEvent::Saved { .. }) {
                marks.push(Instant::now());
            }
        };
        let spec = RunSpec {
            command: "true",
            ..RunSpec::default()
        };
        runtime.run_with_events(spec, EventSink::with_listener(&mut record))?;
        marks.push(Instant::now());
        anyhow::ensure!(marks.len() == STAGES.len() + 1, "a run had {} events", marks.len() - 2);
        for (list, pair) in times.iter_mut().zip(marks.windows(2)) {
            list.push(pair[1] - pair[0]);
        }
    }
    let median = |list: &mut Vec<Duration>| {
        list.sort_unstable();
        list[list.len() / 2]
    };
    let lines = STAGES.iter().zip(&mut times).map(|(name, list)| {
        let micros = median(list).as_secs_f64() * 1e6;
        format!("  {name:<50} {micros:>8.0} µs")
    });
    Ok(["stages of one run (medians)".to_owned()]
        .into_iter()
        .chain(lines)
        .collect())
}
