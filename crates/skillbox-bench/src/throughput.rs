//! `throughput`: runs per second with every core busy, compared with bare spawns per second.

use std::time::{Duration, Instant};

use crate::bench_runtime::{BenchRuntime, SandboxMode};
use crate::peers;
use crate::report::{OutputOptions, Report};
use crate::target::{Bound, Target};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Number of rounds
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub rounds: usize,
    /// Duration of one turn of a candidate, in milliseconds
    #[arg(long, default_value_t = 500, value_name = "MS")]
    pub turn: u64,
    /// Number of concurrent workers; by default two per core
    #[arg(long, value_name = "N")]
    pub workers: Option<usize>,
    #[command(flatten)]
    pub output: OutputOptions,
}

pub(crate) fn measure(arguments: &Arguments) -> anyhow::Result<Report> {
    let runtime = BenchRuntime::new(SandboxMode::Parked)?;
    let cores = std::thread::available_parallelism()?.get();
    let workers = arguments.workers.unwrap_or(2 * cores);
    let turn = Duration::from_millis(arguments.turn);
    let (mut spawns_per_second, mut runs_per_second) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds.max(1) {
        spawns_per_second.push(measure_rate(workers, turn, &|| peers::run_bare("true"))?);
        runs_per_second.push(measure_rate(workers, turn, &|| runtime.run("true"))?);
    }
    let (spawns_per_second, runs_per_second) = (median(spawns_per_second), median(runs_per_second));
    Ok(Report {
        remarks: vec![format!(
            "{workers} workers on {cores} cores: {spawns_per_second:.0} bare spawns and {runs_per_second:.0} runs per second"
        )],
        targets: vec![Target {
            subject: "runs per second, every core busy".to_owned(),
            reference: "bare spawns per second".to_owned(),
            measured: Some(runs_per_second / spawns_per_second),
            bound: Bound::RatioAtLeast(0.5),
        }],
        tables: Vec::new(),
    })
}

/// Returns how many times per second the workers together complete `work`, measured for the duration of one turn.
fn measure_rate(workers: usize, turn: Duration, work: &(dyn Fn() -> anyhow::Result<()> + Sync)) -> anyhow::Result<f64> {
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

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
