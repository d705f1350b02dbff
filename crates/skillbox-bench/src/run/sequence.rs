//! Many runs in sequence: the last must cost what the first cost.

use std::time::{Duration, Instant};

use crate::claim::{Bound, Claim};
use crate::ready::Ready;

const WINDOW: usize = 100;

pub(crate) fn measure(ready: &Ready, runs: usize) -> anyhow::Result<Claim> {
    let runs = runs.max(2 * WINDOW);
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs {
        let begin = Instant::now();
        ready.run("true")?;
        times.push(begin.elapsed());
    }
    let median = |window: &[Duration]| {
        let mut window = window.to_vec();
        window.sort_unstable();
        window[window.len() / 2].as_secs_f64()
    };
    Ok(Claim {
        what: format!("the last {WINDOW} of {runs} runs"),
        against: format!("the first {WINDOW}"),
        measured: Some(median(&times[runs - WINDOW..]) / median(&times[..WINDOW])),
        bound: Bound::AtMost(1.1),
    })
}
