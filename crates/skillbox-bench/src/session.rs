//! `session`: the cost of the second and later runs of a session, which share its workspace.

use crate::bench_runtime::{BenchRuntime, RunSpec, SandboxMode};
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
    let (parked, on_demand) = (
        BenchRuntime::new(SandboxMode::Parked)?,
        BenchRuntime::new(SandboxMode::OnDemand)?,
    );
    let run_in_session = |runtime: &BenchRuntime| {
        let spec = RunSpec {
            command: "true",
            session: Some("measured"),
            ..RunSpec::default()
        };
        runtime.run_spec(spec).map(drop)
    };
    let mut comparison = Comparison::new("later runs of one session");
    comparison.add(BARE, || peers::run_bare("true"));
    comparison.add(PARKED, || run_in_session(&parked));
    comparison.add(ON_DEMAND, || run_in_session(&on_demand));
    let times = comparison.measure(arguments.rounds)?;
    Ok(Report {
        targets: vec![times.target(PARKED, BARE, 1.3), times.target(ON_DEMAND, BARE, 1.7)],
        tables: vec![times],
        remarks: Vec::new(),
    })
}
