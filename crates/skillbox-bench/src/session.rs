//! `session`: later runs of a session, which share its workspace.

use crate::bench_runtime::{BenchRuntime, RunSpec, Slots};
use crate::comparison::Comparison;
use crate::peers;
use crate::report::{OutputOptions, Report};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Number of rounds
    #[arg(long, default_value_t = 200, value_name = "N")]
    pub rounds: usize,
    #[command(flatten)]
    pub output: OutputOptions,
}

const BARE: &str = "bare bash -c true";
const PARKED: &str = "n-th run of a session, parked";
const ON_DEMAND: &str = "n-th run of a session, on demand";

pub(crate) fn measure(arguments: &Arguments) -> anyhow::Result<Report> {
    let (parked, on_demand) = (BenchRuntime::new(Slots::Parked)?, BenchRuntime::new(Slots::OnDemand)?);
    let later = |runtime: &BenchRuntime| {
        let spec = RunSpec {
            command: "true",
            session: Some("measured"),
            ..RunSpec::default()
        };
        runtime.run_spec(spec).map(drop)
    };
    let mut comparison = Comparison::new("later runs of one session");
    comparison.add(BARE, || peers::bare("true"));
    comparison.add(PARKED, || later(&parked));
    comparison.add(ON_DEMAND, || later(&on_demand));
    let times = comparison.measure(arguments.rounds)?;
    Ok(Report {
        claims: vec![times.claim(PARKED, BARE, 1.3), times.claim(ON_DEMAND, BARE, 1.7)],
        tables: vec![times],
        remarks: Vec::new(),
    })
}
