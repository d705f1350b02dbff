//! Where the microseconds of a run go, told by its own events.

use std::time::{Duration, Instant};

use skillbox_executor::EventSink;
use skillbox_model::RunEvent;

use crate::ready::{Ready, Wish};

const NAMES: [&str; 6] = [
    "accept the request",
    "freeze the skill, make the workspace, stage",
    "sandbox, up to the script's first instruction",
    "the script itself, up to the death of everything",
    "collect",
    "report and clean up",
];

const PAUSE: Duration = Duration::from_millis(4);

/// One line for each stage, with its median.
pub(crate) fn measure(ready: &Ready, rounds: usize) -> anyhow::Result<Vec<String>> {
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
        let wish = Wish {
            command: "true",
            ..Wish::default()
        };
        ready.listened(wish, EventSink::to(&mut listen))?;
        marks.push(Instant::now());
        anyhow::ensure!(marks.len() == NAMES.len() + 1, "a run told {} events", marks.len() - 2);
        for (list, pair) in times.iter_mut().zip(marks.windows(2)) {
            list.push(pair[1] - pair[0]);
        }
    }
    let median = |list: &mut Vec<Duration>| {
        list.sort_unstable();
        list[list.len() / 2]
    };
    let lines = NAMES.iter().zip(&mut times).map(|(name, list)| {
        let micros = median(list).as_secs_f64() * 1e6;
        format!("  {name:<50} {micros:>8.0} µs")
    });
    Ok(["where the time of one run goes (medians)".to_owned()]
        .into_iter()
        .chain(lines)
        .collect())
}
