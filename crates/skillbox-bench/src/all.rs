//! `all`: everything in one go, and one table of all targets.
#![expect(clippy::print_stdout, reason = "a measuring program prints what it measured")]
#![expect(
    clippy::disallowed_methods,
    reason = "the parts with reports of their own are processes of their own"
)]

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::claim::{Bound, Claim};
use crate::peers::Peers;
use crate::report::{How, Report};
use crate::{chart, collect, run, serve, session, stdout, throughput};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many times every way is taken
    #[arg(long, default_value_t = 200, value_name = "N")]
    rounds: usize,
    /// How many runs in sequence are compared, first hundred with last hundred
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    sequence: usize,
    /// The skillbox program for one-shot runs; by default the one beside this program
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Draw the times as SVG into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Leave out what has nothing to do with runs: the catalogue and the prompts
    #[arg(long)]
    runs_only: bool,
    #[command(flatten)]
    peers: Peers,
    #[command(flatten)]
    how: How,
}

/// Subcommands that print reports of their own; another is another line.
const ON_THEIR_OWN: [(&str, &[&str]); 3] = [
    ("catalogue", &["catalogue", "--json", "--check"]),
    ("prompt", &["prompt", "--json"]),
    ("docker", &["docker", "--json", "--check"]),
];

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let (rounds, how) = (arguments.rounds, How::default());
    let mut report = run::measure(&run::Arguments {
        rounds,
        sequence: arguments.sequence,
        program: arguments.program.clone(),
        peers: arguments.peers.clone(),
        how,
    })?;
    report.take(session::measure(&session::Arguments { rounds, how })?);
    report.take(throughput::measure(&throughput::Arguments {
        rounds: 10,
        turn: 500,
        workers: None,
        how,
    })?);
    report.take(collect::measure(&collect::Arguments {
        rounds: rounds.min(15),
        how,
    })?);
    report.take(stdout::measure()?);
    report.take(serve::measure(&serve::Arguments {
        rounds,
        clients: 64,
        seconds: 60,
        program: arguments.program.clone(),
        how,
    })?);
    if let Some(path) = &arguments.svg {
        std::fs::write(path, chart::draw(&report.tables))?;
    }
    let mut others = serde_json::Map::new();
    for (name, words) in ON_THEIR_OWN {
        if arguments.runs_only {
            continue;
        }
        let (claim, told) = on_its_own(name, words)?;
        report.claims.push(claim);
        others.insert(name.to_owned(), told);
    }
    tell(&report, Value::Object(others), arguments.how)
}

/// Runs a subcommand; whether it met its own targets is one claim.
fn on_its_own(name: &str, words: &[&str]) -> anyhow::Result<(Claim, Value)> {
    let output = Command::new(std::env::current_exe()?)
        .args(words)
        .stdin(Stdio::null())
        .output()?;
    let told = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    // Without a result there was nothing to measure with: no daemon, no image.
    let share = if output.status.success() { 1.0 } else { 0.0 };
    let claim = Claim {
        what: format!("targets of {name}"),
        against: "what they should be".to_owned(),
        measured: (!told.is_null()).then_some(share),
        bound: Bound::AtLeast(1.0),
    };
    Ok((claim, told))
}

fn tell(report: &Report, others: Value, how: How) -> anyhow::Result<()> {
    if how.json {
        let mut whole = report.to_json();
        whole["others"] = others;
        println!("{whole:#}");
    } else {
        report.print();
        println!("\n{}", machine());
    }
    anyhow::ensure!(!how.check || report.is_met(), "a target was missed");
    Ok(())
}

/// What it was measured on, in one line.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    json!({"cores": cores, "kernel": kernel.trim()}).to_string()
}
