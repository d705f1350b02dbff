//! `throughput`: runs per second with every core busy, compared with bare spawns per second.

use std::time::{Duration, Instant};

use crate::bench_runtime::{BenchRuntime, Slots};
use crate::claim::{Bound, Claim};
use crate::peers;
use crate::report::{OutputOptions, Report};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Number of rounds
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub rounds: usize,
    /// Duration of one turn
    #[arg(long, default_value_t = 500, value_name = "MS")]
    pub turn: u64,
    /// Number of concurrent workers; by default two for each core
    #[arg(long, value_name = "N")]
    pub workers: Option<usize>,
    #[command(flatten)]
    pub output: OutputOptions,
}

pub(crate) fn measure(arguments: &Arguments) -> anyhow::Result<Report> {
    let runtime = BenchRuntime::new(Slots::Parked)?;
    let cores = std::thread::available_parallelism()?.get();
    let workers = arguments.workers.unwrap_or(2 * cores);
    let turn = Duration::from_millis(arguments.turn);
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds.max(1) {
        bare.push(per_second(workers, turn, &|| peers::bare("true"))?);
        ours.push(per_second(workers, turn, &|| runtime.run("true"))?);
    }
    let (bare, ours) = (median(bare), median(ours));
    Ok(Report {
        remarks: vec![format!(
            "{workers} workers on {cores} cores: {bare:.0} bare spawns and {ours:.0} runs a second"
        )],
        claims: vec![Claim {
            what: "runs a second, every core busy".to_owned(),
            against: "bare spawns a second".to_owned(),
            measured: Some(ours / bare),
            bound: Bound::AtLeast(0.5),
        }],
        tables: Vec::new(),
    })
}

fn per_second(workers: usize, turn: Duration, work: &(dyn Fn() -> anyhow::Result<()> + Sync)) -> anyhow::Result<f64> {
    let begin = Instant::now();
    let counts: Vec<anyhow::Result<usize>> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..workers)
            .map(|_| {
                scope.spawn(move || {
                    let mut count = 0;
                    while begin.elapsed() < turn {
                        work()?;
                        count += 1;
                    }
                    Ok(count)
                })
            })
            .collect();
        let joined = started.into_iter().map(|thread| thread.join());
        joined
            .map(|result| result.unwrap_or_else(|_| Err(anyhow::anyhow!("a worker panicked"))))
            .collect()
    });
    let total: usize = counts.into_iter().sum::<anyhow::Result<usize>>()?;
    Ok(total as f64 / begin.elapsed().as_secs_f64())
}

fn median(mut list: Vec<f64>) -> f64 {
    list.sort_by(f64::total_cmp);
    list[list.len() / 2]
}
