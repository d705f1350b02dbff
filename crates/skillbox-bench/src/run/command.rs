//! Arguments and comparisons of the subcommand `run`.

use std::path::{Path, PathBuf};

use super::{sequence, skill_directory, stages};
use crate::bench_runtime::{BenchRuntime, SandboxMode};
use crate::comparison::{Comparison, Timings};
use crate::peers::{self, PeerOptions};
use crate::report::{OutputOptions, Report};
use crate::stepped_server::SteppedServer;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Number of rounds
    #[arg(long, default_value_t = 200, value_name = "N")]
    pub rounds: usize,
    /// Number of consecutive runs; the first and the last hundred are compared
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pub sequence: usize,
    /// The skillbox program for one-shot runs; by default the one in the directory of this program
    #[arg(long, value_name = "PATH")]
    pub program: Option<PathBuf>,
    #[command(flatten)]
    pub peers: PeerOptions,
    #[command(flatten)]
    pub output: OutputOptions,
}

const BARE: &str = "bare bash -c true";
const BWRAP: &str = "bwrap --unshare-all";
const PARKED: &str = "skill_run, parked";
const ON_DEMAND: &str = "skill_run, on demand";
const ONE_SHOT: &str = "skillbox run, whole process";

pub(crate) fn measure(arguments: &Arguments) -> anyhow::Result<Report> {
    let program = match &arguments.program {
        Some(program) => program.clone(),
        None => std::env::current_exe()?.with_file_name("skillbox"),
    };
    let parked = BenchRuntime::new(SandboxMode::Parked)?;
    let mut report = Report::default();
    report.append(compare_small_run(&parked, &program, arguments)?);
    report.append(compare_python_script(&parked, arguments.rounds)?);
    report.append(compare_conditions(arguments.rounds)?);
    report.append(skill_directory::compare(arguments.rounds)?);
    report.remarks = stages::measure(&parked, arguments.rounds.min(100))?;
    report.targets.push(sequence::measure(&parked, arguments.sequence)?);
    Ok(report)
}

/// Compares a complete run of `true` (every isolation layer, staging, collection and report) with its alternatives.
fn compare_small_run(parked: &BenchRuntime, program: &Path, arguments: &Arguments) -> anyhow::Result<Report> {
    let on_demand = BenchRuntime::new(SandboxMode::OnDemand)?;
    let mut comparison =
        Comparison::new("one run of `true`, with every isolation layer, staging, collection and report");
    comparison.add(BARE, || peers::run_bare("true"));
    comparison.add(PARKED, || parked.run("true"));
    comparison.add(ON_DEMAND, || on_demand.run("true"));
    if peers::is_bwrap_available() {
        comparison.add(BWRAP, || peers::run_in_bwrap("true"));
    }
    if program.is_file() {
        comparison.add(ONE_SHOT, || parked.run_cli(program));
    }
    let times = comparison.measure(arguments.rounds)?;
    let targets = vec![
        times.target(PARKED, BARE, 1.25),
        times.target(ON_DEMAND, BARE, 1.8),
        times.target(PARKED, BWRAP, 0.4),
        times.target(ON_DEMAND, BWRAP, 0.5),
        times.target(ONE_SHOT, BWRAP, 1.25),
    ];
    let mut tables = vec![times];
    tables.extend(compare_slow_peers(parked, arguments)?);
    Ok(Report {
        tables,
        targets,
        remarks: Vec::new(),
    })
}

/// Compares the run with slow alternatives, in fewer rounds.
fn compare_slow_peers(parked: &BenchRuntime, arguments: &Arguments) -> anyhow::Result<Option<Timings>> {
    let (srt, container) = (arguments.peers.find_srt(), arguments.peers.start_container());
    if srt.is_none() && container.is_none() {
        return Ok(None);
    }
    let mut comparison = Comparison::new("the same run, compared with slower alternatives");
    comparison.add(PARKED, || parked.run("true"));
    if let Some(srt) = &srt {
        comparison.add("sandbox-runtime (srt)", || peers::run_in_srt(srt));
    }
    if let Some(container) = &container {
        comparison.add("docker exec", || container.exec());
        comparison.add("docker run --rm --network none", || {
            peers::run_in_new_container(&arguments.peers.docker_image)
        });
    }
    comparison.measure(arguments.rounds.min(20)).map(Some)
}

/// Compares runs of a Python script, whose interpreter takes longer to start than the sandbox.
fn compare_python_script(parked: &BenchRuntime, rounds: usize) -> anyhow::Result<Report> {
    let bare = format!("python3 {} 10", parked.fibonacci_script().display());
    let mut comparison = Comparison::new("python3 scripts/fib.py 10");
    comparison.add("python, bare", || peers::run_bare(&bare));
    comparison.add("python, parked", || parked.run("python3 scripts/fib.py 10"));
    if peers::is_bwrap_available() {
        comparison.add("python -c, bwrap", || peers::run_in_bwrap("python3 -c pass"));
    }
    let times = comparison.measure(rounds.min(100))?;
    Ok(Report {
        targets: vec![times.target("python, parked", "python, bare", 1.1)],
        tables: vec![times],
        remarks: Vec::new(),
    })
}

/// Compares conditions that must not affect the time of a run: the memory of the server, the files of the skill, and
/// the mounts of the host.
fn compare_conditions(rounds: usize) -> anyhow::Result<Report> {
    const BASELINE: &str = "small server, small skill, few mounts";
    let mut baseline = SteppedServer::start(&[])?;
    let conditions: [(&str, &[&str]); 3] = [
        ("1 GiB server", &["--ballast", "1073741824"]),
        ("500 more mounts on the host", &["--mounts", "500"]),
        ("1,000 files in the skill", &["--skill", "large"]),
    ];
    let mut comparison = Comparison::new("conditions that must not affect the time of a run");
    comparison.add(BASELINE, move || baseline.run_once());
    for (name, args) in conditions {
        // The server with more mounts needs root to start.
        let Ok(mut server) = SteppedServer::start(args) else {
            continue;
        };
        comparison.add(name, move || server.run_once());
    }
    let times = comparison.measure(rounds)?;
    let targets = conditions
        .iter()
        .map(|(name, _)| times.target(name, BASELINE, 1.1))
        .collect();
    Ok(Report {
        targets,
        tables: vec![times],
        remarks: Vec::new(),
    })
}
