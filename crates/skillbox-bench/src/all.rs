//! `all`: makes every measurement and lists all targets together.
#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]
#![expect(
    clippy::disallowed_methods,
    reason = "subcommands with their own reports run as separate processes"
)]

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::peers::PeerOptions;
use crate::report::{OutputOptions, Report};
use crate::target::{Bound, Target};
use crate::{chart, collect, run, serve, session, stdout, throughput, trust};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Number of rounds
    #[arg(long, default_value_t = 200, value_name = "N")]
    rounds: usize,
    /// Number of consecutive runs; the first and the last hundred are compared
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    sequence: usize,
    /// The skillbox program for one-shot runs; by default the one in the directory of this program
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Write a bar chart of the times to this file, as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Skip the subcommands `catalog`, `prompt` and `docker`
    #[arg(long)]
    runs_only: bool,
    #[command(flatten)]
    peers: PeerOptions,
    #[command(flatten)]
    output: OutputOptions,
}

/// Subcommands that print reports of their own format, with their arguments.
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
    report.append(trust::measure(&trust::Arguments {
        rounds,
        records: 100_000,
        approvals: 10_000,
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
    let mut separate_results = serde_json::Map::new();
    for (name, args) in SEPARATE_COMMANDS {
        if arguments.runs_only {
            continue;
        }
        let (target, result) = run_separately(name, args)?;
        report.targets.push(target);
        separate_results.insert(name.to_owned(), result);
    }
    print_report_and_results(&report, Value::Object(separate_results), arguments.output)
}

/// Runs a subcommand in a separate process. The returned target is met if the subcommand succeeds; with `--check` it
/// succeeds only if it meets its own targets.
fn run_separately(name: &str, args: &[&str]) -> anyhow::Result<(Target, Value)> {
    let output = Command::new(std::env::current_exe()?)
        .args(args)
        .stdin(Stdio::null())
        .output()?;
    let result = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    // Without JSON the measurement was not possible, for example without a Docker daemon or image.
    let score = if output.status.success() { 1.0 } else { 0.0 };
    let target = Target {
        subject: format!("targets of {name}"),
        reference: "their limits".to_owned(),
        measured: (!result.is_null()).then_some(score),
        bound: Bound::RatioAtLeast(1.0),
    };
    Ok((target, result))
}

fn print_report_and_results(report: &Report, separate_results: Value, output: OutputOptions) -> anyhow::Result<()> {
    if output.json {
        let mut whole = report.to_json();
        whole["others"] = separate_results;
        println!("{whole:#}");
    } else {
        report.print();
        println!("\n{}", describe_machine());
    }
    anyhow::ensure!(!output.check || report.is_met(), "a target was missed");
    Ok(())
}

/// Returns the number of cores and the kernel version as one line of JSON.
fn describe_machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    json!({"cores": cores, "kernel": kernel.trim()}).to_string()
}
