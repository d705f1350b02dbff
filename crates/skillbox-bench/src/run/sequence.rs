//! Measures many consecutive runs: the last ones must not be slower than the first ones.

use std::time::{Duration, Instant};

use crate::bench_runtime::BenchRuntime;
use crate::target::{Bound, Target};

/// The number of runs at each end of the sequence that are compared.
const WINDOW_RUNS: usize = 100;

pub(crate) fn measure(runtime: &BenchRuntime, runs: usize) -> anyhow::Result<Target> {
    let runs = runs.max(2 * WINDOW_RUNS);
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs {
        let begin = Instant::now();
        runtime.run("true")?;
        times.push(begin.elapsed());
    }
    let median = |window: &[Duration]| {
        let mut window = window.to_vec();
        window.sort_unstable();
        window[window.len() / 2].as_secs_f64()
    };
    Ok(Target {
        subject: format!("the last {WINDOW_RUNS} of {runs} runs"),
        reference: format!("the first {WINDOW_RUNS}"),
        measured: Some(median(&times[runs - WINDOW_RUNS..]) / median(&times[..WINDOW_RUNS])),
        bound: Bound::RatioAtMost(1.1),
    })
}
