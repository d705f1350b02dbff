//! The arguments of `run`, and the comparisons.

use std::path::{Path, PathBuf};

use super::{sequence, stages};
use crate::bench_runtime::{BenchRuntime, Slots};
use crate::comparison::{Comparison, Timings};
use crate::peers::{self, Peers};
use crate::report::{OutputOptions, Report};
use crate::stepped_server::SteppedServer;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Number of rounds
    #[arg(long, default_value_t = 200, value_name = "N")]
    pub rounds: usize,
    /// Number of runs in sequence, whose first and last hundred are compared
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pub sequence: usize,
    /// The skillbox program for one-shot runs; by default the one beside this program
    #[arg(long, value_name = "PATH")]
    pub program: Option<PathBuf>,
    #[command(flatten)]
    pub peers: Peers,
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
    let parked = BenchRuntime::new(Slots::Parked)?;
    let mut report = Report::default();
    report.append(compare_small_run(&parked, &program, arguments)?);
    report.append(compare_python_script(&parked, arguments.rounds)?);
    report.append(compare_influences(arguments.rounds)?);
    report.remarks = stages::measure(&parked, arguments.rounds.min(100))?;
    report.claims.push(sequence::measure(&parked, arguments.sequence)?);
    Ok(report)
}

/// Compares runs of `true` with every layer, staging, collection and report.
fn compare_small_run(parked: &BenchRuntime, program: &Path, arguments: &Arguments) -> anyhow::Result<Report> {
    let on_demand = BenchRuntime::new(Slots::OnDemand)?;
    let mut comparison = Comparison::new("one run of `true`, with every layer, staging, collection and report");
    comparison.add(BARE, || peers::bare("true"));
    comparison.add(PARKED, || parked.run("true"));
    comparison.add(ON_DEMAND, || on_demand.run("true"));
    if peers::has_bwrap() {
        comparison.add(BWRAP, || peers::bwrap("true"));
    }
    if program.is_file() {
        comparison.add(ONE_SHOT, || parked.run_cli(program));
    }
    let times = comparison.measure(arguments.rounds)?;
    let claims = vec![
        times.claim(PARKED, BARE, 1.25),
        times.claim(ON_DEMAND, BARE, 1.8),
        times.claim(PARKED, BWRAP, 0.4),
        times.claim(ON_DEMAND, BWRAP, 0.5),
        times.claim(ONE_SHOT, BWRAP, 1.25),
    ];
    let mut tables = vec![times];
    tables.extend(compare_slow_peers(parked, arguments)?);
    Ok(Report {
        tables,
        claims,
        remarks: Vec::new(),
    })
}

/// Compares with slow alternatives, in fewer rounds.
fn compare_slow_peers(parked: &BenchRuntime, arguments: &Arguments) -> anyhow::Result<Option<Timings>> {
    let (srt, container) = (arguments.peers.srt(), arguments.peers.container());
    if srt.is_none() && container.is_none() {
        return Ok(None);
    }
    let mut comparison = Comparison::new("the same run beside slower alternatives");
    comparison.add(PARKED, || parked.run("true"));
    if let Some(srt) = &srt {
        comparison.add("sandbox-runtime (srt)", || peers::srt(srt));
    }
    if let Some(container) = &container {
        comparison.add("docker exec", || container.exec());
        comparison.add("docker run --rm --network none", || {
            peers::docker_run(&arguments.peers.docker_image)
        });
    }
    comparison.measure(arguments.rounds.min(20)).map(Some)
}

/// Compares runs of a Python script, whose interpreter takes longer to start than the sandbox.
fn compare_python_script(parked: &BenchRuntime, rounds: usize) -> anyhow::Result<Report> {
    let bare = format!("python3 {} 10", parked.fib_script().display());
    let mut comparison = Comparison::new("python3 scripts/fib.py 10");
    comparison.add("python, bare", || peers::bare(&bare));
    comparison.add("python, parked", || parked.run("python3 scripts/fib.py 10"));
    if peers::has_bwrap() {
        comparison.add("python -c, bwrap", || peers::bwrap("python3 -c pass"));
    }
    let times = comparison.measure(rounds.min(100))?;
    Ok(Report {
        claims: vec![times.claim("python, parked", "python, bare", 1.1)],
        tables: vec![times],
        remarks: Vec::new(),
    })
}

/// Compares circumstances that must not matter: the size of the server, of the skill, and the mounts of the host.
fn compare_influences(rounds: usize) -> anyhow::Result<Report> {
    const PLAIN: &str = "small server, small skill, few mounts";
    let mut plain = SteppedServer::start(&[])?;
    let others: [(&str, &[&str]); 3] = [
        ("1 GiB server", &["--ballast", "1073741824"]),
        ("500 more mounts on the host", &["--mounts", "500"]),
        ("1,000 files in the skill", &["--skill", "large"]),
    ];
    let mut comparison = Comparison::new("circumstances that must not matter");
    comparison.add(PLAIN, move || plain.run_once());
    let mut names = Vec::new();
    for (name, words) in others {
        // Mounting needs root.
        let Ok(mut server) = SteppedServer::start(words) else {
            continue;
        };
        comparison.add(name, move || server.run_once());
        names.push(name);
    }
    let times = comparison.measure(rounds)?;
    let claims = others.iter().map(|(name, _)| times.claim(name, PLAIN, 1.1)).collect();
    Ok(Report {
        claims,
        tables: vec![times],
        remarks: Vec::new(),
    })
}
