//! `run`: what a fully isolated run costs beside a bare spawn and beside bubblewrap.
#![expect(clippy::print_stdout, reason = "a measuring program prints what it measured")]

mod collect;
mod peers;
pub(crate) mod ready;
mod stages;
mod stdout;
mod steady;

use std::path::PathBuf;

use serde_json::json;

use crate::contest::Contest;
use ready::Ready;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many times every way is taken
    #[arg(long, default_value_t = 300, value_name = "N")]
    rounds: usize,
    /// How many runs in sequence are compared, first hundred with last hundred
    #[arg(long, default_value_t = 2_000, value_name = "N")]
    sequence: usize,
    /// The skillbox program for one-shot runs; by default the one beside this program
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Fail when a target is missed
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let program = match &arguments.program {
        Some(program) => program.clone(),
        None => std::env::current_exe()?.with_file_name("skillbox"),
    };
    let ready = Ready::new()?;
    let parts = [
        small(&ready, &program, arguments.rounds)?,
        influences(&ready, arguments.rounds)?,
        collect::measure(&ready, arguments.rounds.min(15))?,
    ];
    let stages = stages::measure(&ready, arguments.rounds)?;
    let steady = steady::measure(&ready, arguments.sequence)?;
    let flood = stdout::measure(&ready)?;
    let is_met = parts.iter().all(Contest::is_met) && steady.is_met() && flood.is_met();
    if arguments.json {
        let contests: Vec<_> = parts.iter().map(Contest::to_json).collect();
        println!(
            "{:#}",
            json!({"contests": contests, "stages": stages.to_json(), "sequence": steady.to_json(), "stdout": flood.to_json(), "met": is_met})
        );
    } else {
        for part in &parts {
            part.print()?;
        }
        stages.print();
        steady.print();
        flood.print();
    }
    anyhow::ensure!(is_met || !arguments.check, "a target was missed");
    Ok(())
}

/// `true`, from scratch, with every layer, staging and collection.
fn small<'a>(ready: &'a Ready, program: &'a std::path::Path, rounds: usize) -> anyhow::Result<Contest<'a>> {
    let mut contest = Contest::new("one run of `true`, built from scratch with every layer, staging and collection");
    contest.way("bare bash -c true", peers::bare);
    contest.way("skill_run in process", || ready.run("true"));
    contest.way("bwrap --unshare-all", peers::bwrap);
    if program.is_file() {
        contest.way("skillbox run, whole process", || ready.one_shot(program));
    }
    contest.target("skill_run in process", "bare bash -c true", 2.2);
    contest.target("skill_run in process", "bwrap --unshare-all", 0.65);
    contest.target("skillbox run, whole process", "bwrap --unshare-all", 1.5);
    contest.hold(rounds)?;
    Ok(contest)
}

/// What must not matter: the size of the server, of the skill, and the mounts of the host.
fn influences(ready: &Ready, rounds: usize) -> anyhow::Result<Contest<'_>> {
    let mut contest = Contest::new("what must not matter");
    let mut ballast: Vec<u8> = Vec::new();
    contest.way("small server, small skill", || ready.run("true"));
    contest.way("1,000 files in the skill", || ready.run_large_skill("true"));
    contest.target("1,000 files in the skill", "small server, small skill", 1.2);
    contest.hold(rounds)?;
    // One GiB of touched pages cannot be taken in turns; the small runs are measured again beside it.
    ballast.resize(1 << 30, 1);
    let mut heavy = Contest::new("with 1 GiB resident in the server");
    heavy.way("1 GiB server", || ready.run("true"));
    heavy.way("bare from a 1 GiB process", peers::bare);
    heavy.hold(rounds)?;
    heavy.print()?;
    drop(ballast);
    Ok(contest)
}
