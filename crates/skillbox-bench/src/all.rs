//! `all`: every measurement, and one table of all targets.
#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]
#![expect(
    clippy::disallowed_methods,
    reason = "subcommands with their own reports run as separate processes"
)]

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::claim::{Bound, Claim};
use crate::peers::Peers;
use crate::report::{OutputOptions, Report};
use crate::{chart, collect, run, serve, session, stdout, throughput};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Number of rounds
    #[arg(long, default_value_t = 200, value_name = "N")]
    rounds: usize,
    /// Number of runs in sequence, whose first and last hundred are compared
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    sequence: usize,
    /// The skillbox program for one-shot runs; by default the one beside this program
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Draw the times as SVG into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Measure runs only, without catalog, prompts and Docker
    #[arg(long)]
    runs_only: bool,
    #[command(flatten)]
    peers: Peers,
    #[command(flatten)]
    output: OutputOptions,
}

/// Subcommands with their own reports.
const SEPARATE_COMMANDS: [(&str, &[&str]); 3] = [
    ("catalog", &["catalog", "--json", "--check"]),
    ("prompt", &["prompt", "--json"]),
    ("docker", &["docker", "--json", "--check"]),
];

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let (rounds, output) = (arguments.rounds, OutputOptions::default());
    let mut report = run::measure(&run::Arguments {
        rounds,
        sequence: arguments.sequence,
        program: arguments.program.clone(),
        peers: arguments.peers.clone(),
        output,
    })?;
    report.append(session::measure(&session::Arguments { rounds, output })?);
    report.append(throughput::measure(&throughput::Arguments {
        rounds: 10,
        turn: 500,
        workers: None,
        output,
    })?);
    report.append(collect::measure(&collect::Arguments {
        rounds: rounds.min(15),
        output,
    })?);
    report.append(stdout::measure()?);
    report.append(serve::measure(&serve::Arguments {
        rounds,
        clients: 64,
        seconds: 60,
        program: arguments.program.clone(),
        output,
    })?);
    if let Some(path) = &arguments.svg {
        std::fs::write(path, chart::draw(&report.tables))?;
    }
    let mut others = serde_json::Map::new();
    for (name, args) in SEPARATE_COMMANDS {
        if arguments.runs_only {
            continue;
        }
        let (claim, result) = run_separately(name, args)?;
        report.claims.push(claim);
        others.insert(name.to_owned(), result);
    }
    print_all(&report, Value::Object(others), arguments.output)
}

/// Runs a subcommand. Whether it met its own targets is one claim.
fn run_separately(name: &str, args: &[&str]) -> anyhow::Result<(Claim, Value)> {
    let output = Command::new(std::env::current_exe()?)
        .args(args)
        .stdin(Stdio::null())
        .output()?;
    let result = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    // No result means that the measurement is not possible: no daemon, no image.
    let share = if output.status.success() { 1.0 } else { 0.0 };
    let claim = Claim {
        what: format!("targets of {name}"),
        against: "their limits".to_owned(),
        measured: (!result.is_null()).then_some(share),
        bound: Bound::AtLeast(1.0),
    };
    Ok((claim, result))
}

fn print_all(report: &Report, others: Value, output: OutputOptions) -> anyhow::Result<()> {
    if output.json {
        let mut whole = report.to_json();
        whole["others"] = others;
        println!("{whole:#}");
    } else {
        report.print();
        println!("\n{}", machine());
    }
    anyhow::ensure!(!output.check || report.is_met(), "a target was missed");
    Ok(())
}

/// The machine of the measurement, in one line.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    json!({"cores": cores, "kernel": kernel.trim()}).to_string()
}
