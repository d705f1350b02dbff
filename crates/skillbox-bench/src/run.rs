//! `run`: what a fully isolated run costs beside a bare spawn, bubblewrap and others.

mod sequence;
mod stages;

use std::path::{Path, PathBuf};

use crate::contest::{Contest, Times};
use crate::pace::Pacer;
use crate::peers::{self, Peers};
use crate::ready::{Ready, Slots};
use crate::report::{How, Report};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many times every way is taken
    #[arg(long, default_value_t = 200, value_name = "N")]
    pub rounds: usize,
    /// How many runs in sequence are compared, first hundred with last hundred
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pub sequence: usize,
    /// The skillbox program for one-shot runs; by default the one beside this program
    #[arg(long, value_name = "PATH")]
    pub program: Option<PathBuf>,
    #[command(flatten)]
    pub peers: Peers,
    #[command(flatten)]
    pub how: How,
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
    let parked = Ready::new(Slots::Parked)?;
    let mut report = Report::default();
    report.take(small(&parked, &program, arguments)?);
    report.take(python(&parked, arguments.rounds)?);
    report.take(influences(arguments.rounds)?);
    report.remarks = stages::measure(&parked, arguments.rounds.min(100))?;
    report.claims.push(sequence::measure(&parked, arguments.sequence)?);
    Ok(report)
}

/// `true`, with every layer, staging, collection and report.
fn small(parked: &Ready, program: &Path, arguments: &Arguments) -> anyhow::Result<Report> {
    let on_demand = Ready::new(Slots::OnDemand)?;
    let mut contest = Contest::new("one run of `true`, with every layer, staging, collection and report");
    contest.way(BARE, || peers::bare("true"));
    contest.way(PARKED, || parked.run("true"));
    contest.way(ON_DEMAND, || on_demand.run("true"));
    if peers::has_bwrap() {
        contest.way(BWRAP, || peers::bwrap("true"));
    }
    if program.is_file() {
        contest.way(ONE_SHOT, || parked.one_shot(program));
    }
    let times = contest.hold(arguments.rounds)?;
    let claims = vec![
        times.claim(PARKED, BARE, 1.25),
        times.claim(ON_DEMAND, BARE, 1.8),
        times.claim(PARKED, BWRAP, 0.4),
        times.claim(ON_DEMAND, BWRAP, 0.5),
        times.claim(ONE_SHOT, BWRAP, 1.25),
    ];
    let mut tables = vec![times];
    tables.extend(slow_peers(parked, arguments)?);
    Ok(Report {
        tables,
        claims,
        remarks: Vec::new(),
    })
}

/// Those that take so long that fewer rounds have to do.
fn slow_peers(parked: &Ready, arguments: &Arguments) -> anyhow::Result<Option<Times>> {
    let (srt, container) = (arguments.peers.srt(), arguments.peers.container());
    if srt.is_none() && container.is_none() {
        return Ok(None);
    }
    let mut contest = Contest::new("the same beside slower ways");
    contest.way(PARKED, || parked.run("true"));
    if let Some(srt) = &srt {
        contest.way("sandbox-runtime (srt)", || peers::srt(srt));
    }
    if let Some(container) = &container {
        contest.way("docker exec", || container.exec());
        contest.way("docker run --rm --network none", || {
            peers::docker_run(&arguments.peers.docker_image)
        });
    }
    contest.hold(arguments.rounds.min(20)).map(Some)
}

/// A script of Python, whose interpreter takes longer than everything of ours.
fn python(parked: &Ready, rounds: usize) -> anyhow::Result<Report> {
    let bare = format!("python3 {} 10", parked.fib().display());
    let mut contest = Contest::new("python3 scripts/fib.py 10");
    contest.way("python, bare", || peers::bare(&bare));
    contest.way("python, parked", || parked.run("python3 scripts/fib.py 10"));
    if peers::has_bwrap() {
        contest.way("python -c, bwrap", || peers::bwrap("python3 -c pass"));
    }
    let times = contest.hold(rounds.min(100))?;
    Ok(Report {
        claims: vec![times.claim("python, parked", "python, bare", 1.1)],
        tables: vec![times],
        remarks: Vec::new(),
    })
}

/// What must not matter: the size of the server, of the skill, and the mounts of the host.
fn influences(rounds: usize) -> anyhow::Result<Report> {
    const PLAIN: &str = "small server, small skill, few mounts";
    let mut plain = Pacer::start(&[])?;
    let others: [(&str, &[&str]); 3] = [
        ("1 GiB server", &["--ballast", "1073741824"]),
        ("500 more mounts on the host", &["--mounts", "500"]),
        ("1,000 files in the skill", &["--skill", "large"]),
    ];
    let mut contest = Contest::new("what must not matter");
    contest.way(PLAIN, move || plain.step());
    let mut names = Vec::new();
    for (name, words) in others {
        // Mounts need rights that not everybody has.
        let Ok(mut pacer) = Pacer::start(words) else { continue };
        contest.way(name, move || pacer.step());
        names.push(name);
    }
    let times = contest.hold(rounds)?;
    let claims = others.iter().map(|(name, _)| times.claim(name, PLAIN, 1.1)).collect();
    Ok(Report {
        claims,
        tables: vec![times],
        remarks: Vec::new(),
    })
}
