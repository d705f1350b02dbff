//! Measures each stage of a run, from one event of the run to the next.

use std::time::{Duration, Instant};

use skillbox_executor::EventSink;
use skillbox_model::RunEvent;

use crate::bench_runtime::{BenchRuntime, RunSpec};

const STAGES: [&str; 6] = [
    "accept the request",
    "freeze the skill, create the workspace, stage",
    "sandbox, up to the script's first instruction",
    "the script itself, up to the end of every process",
    "collect",
    "report and clean up",
];

const PAUSE_BEFORE_RUN: Duration = Duration::from_millis(4);

/// Returns one line for each stage, with its median.
pub(crate) fn measure(runtime: &BenchRuntime, rounds: usize) -> anyhow::Result<Vec<String>> {
    let mut times = vec![Vec::with_capacity(rounds); STAGES.len()];
    for _ in 0..rounds.max(1) {
        // As between the requests of an agent, the spawner has time to park a sandbox.
        std::thread::sleep(PAUSE_BEFORE_RUN);
        let begin = Instant::now();
        let mut timestamps = vec![begin];
        let mut record = |event: RunEvent| {
            if !matches!(event, RunEvent::Output { .. } | RunEvent::Saved { .. }) {
                timestamps.push(Instant::now());
            }
        };
        let spec = RunSpec {
            command: "true",
            ..RunSpec::default()
        };
        runtime.run_with_events(spec, EventSink::with_listener(&mut record))?;
        timestamps.push(Instant::now());
        anyhow::ensure!(
            timestamps.len() == STAGES.len() + 1,
            "a run sent {} stage events",
            timestamps.len() - 2
        );
        for (samples, interval) in times.iter_mut().zip(timestamps.windows(2)) {
            samples.push(interval[1] - interval[0]);
        }
    }
    let median = |samples: &mut Vec<Duration>| {
        samples.sort_unstable();
        samples[samples.len() / 2]
    };
    let lines = STAGES.iter().zip(&mut times).map(|(name, samples)| {
        let micros = median(samples).as_secs_f64() * 1e6;
        format!("  {name:<50} {micros:>8.0} µs")
    });
    Ok(["stages of one run (medians)".to_owned()]
        .into_iter()
        .chain(lines)
        .collect())
}
