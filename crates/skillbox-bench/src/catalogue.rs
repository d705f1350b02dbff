//! `catalogue`: how fast skills are found and kept up to date, and what remembering them costs.

mod generate;
pub(crate) mod memory;
mod peers;
mod table;
mod targets;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use skillbox_repository::{CatalogChange, Repository, ScanOptions, Scope, Source, WatchMode, WatchOptions};

use crate::measure::Samples;
use generate::Numbers;
use memory::Memory;
use peers::PythonTime;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many skills are generated
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    skills: usize,
    /// How many times everything is measured; the table gives medians
    #[arg(long, default_value_t = 7, value_name = "N")]
    rounds: usize,
    /// Where the skills are generated; they are removed afterwards
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Makes the same skills each time
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// A Python that may have the packages `skills-ref` and `deepagents`
    #[arg(long, default_value = "python3", value_name = "PATH")]
    python: PathBuf,
    /// How many of the skills the Python parsers are given; their time is scaled up
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    python_skills: usize,
    /// How many rounds the Python parsers take part in
    #[arg(long, default_value_t = 3, value_name = "N")]
    python_rounds: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Fail when a target is missed
    #[arg(long)]
    check: bool,
}

/// All that was measured.
#[derive(Default)]
struct Measured {
    skills: usize,
    bytes: u64,
    rounds: usize,
    cold: Samples,
    /// A cold scan of some of the collections, and how many skills these have.
    part: Samples,
    part_skills: usize,
    rescan: Samples,
    watched: Samples,
    cat: Samples,
    peers: Vec<Peer>,
    memory: Option<Memory>,
}

/// One of the Python parsers; its times are scaled to all skills.
struct Peer {
    package: &'static str,
    title: &'static str,
    samples: Samples,
    missing: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let parent = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
    let directory = tempfile::Builder::new().prefix("skillbox-bench-").tempdir_in(parent)?;
    let root = directory.path().join("skills");
    let files = generate::generate(&root, arguments.skills, arguments.seed).context("the skills were not generated")?;
    let lists = Lists::write(directory.path(), &files, arguments.python_skills)?;
    let measured = measure(arguments, &root, &files, &lists)?;
    let targets = targets::judge(&measured)?;
    if arguments.json {
        table::print_json(&measured, &targets)?;
    } else {
        table::print(&measured, &targets)?;
    }
    ensure!(
        !arguments.check || targets.iter().all(|target| target.is_met()),
        "a target was missed"
    );
    Ok(())
}

struct Lists {
    all: PathBuf,
    sample: PathBuf,
    /// How many times the sample goes into all.
    scale: f64,
}

impl Lists {
    fn write(directory: &Path, files: &[PathBuf], sample: usize) -> anyhow::Result<Self> {
        let lists = Self {
            all: directory.join("all"),
            sample: directory.join("sample"),
            scale: files.len() as f64 / sample.clamp(1, files.len().max(1)) as f64,
        };
        peers::write_list(&lists.all, files)?;
        peers::write_list(&lists.sample, &files[..sample.min(files.len())])?;
        Ok(lists)
    }
}

fn open(root: &Path) -> Repository {
    open_all(&[root.to_owned()])
}

fn open_all(roots: &[PathBuf]) -> Repository {
    let sources = roots.iter().map(|root| Source::Directory {
        path: root.clone(),
        scope: Scope::Project,
    });
    Repository::open(sources.collect(), ScanOptions::default())
}

/// Every fourth collection: scanning it should take a fourth of the time.
fn part_of(root: &Path) -> Vec<PathBuf> {
    generate::collections(root).step_by(4).collect()
}

fn measure(arguments: &Arguments, root: &Path, files: &[PathBuf], lists: &Lists) -> anyhow::Result<Measured> {
    let mut measured = Measured {
        skills: files.len(),
        rounds: arguments.rounds,
        peers: vec![
            Peer::new("skills-ref", "Python: skills-ref, the reference"),
            Peer::new("deepagents", "Python: the parser of deepagents"),
        ],
        ..Measured::default()
    };
    for file in files {
        measured.bytes += file.metadata()?.len();
    }
    // One turn that does not count brings every page into the cache, for everyone alike.
    peers::cat(&lists.all)?;
    let kept = Arc::new(open(root));
    ensure!(
        kept.catalog().len() == files.len(),
        "only {} skills were found",
        kept.catalog().len()
    );

    let mut numbers = Numbers::seeded(arguments.seed);
    for round in 0..arguments.rounds {
        let cold = measured.cold.time(|| open(root));
        ensure!(cold.catalog().len() == files.len(), "a cold scan lost skills");
        drop(cold);
        let part = measured.part.time(|| open_all(&part_of(root)));
        measured.part_skills = part.catalog().len();
        drop(part);
        measured.cat.time(|| peers::cat(&lists.all))?;

        edit_one(files, &mut numbers)?;
        expect_one_change(&measured.rescan.time(|| kept.refresh()))?;
        refresh_watched(&kept, files, &mut numbers, &mut measured.watched)?;

        if round < arguments.python_rounds {
            for peer in &mut measured.peers {
                peer.measure(&arguments.python, lists)?;
            }
        }
    }
    drop(kept);
    measured.memory = Some(memory::measure(root)?);
    Ok(measured)
}

/// Times a refresh that the kernel's events lead. The watch lives for this one refresh: while it does, every file that
/// the others read is an event too.
fn refresh_watched(
    repository: &Arc<Repository>,
    files: &[PathBuf],
    numbers: &mut Numbers,
    samples: &mut Samples,
) -> anyhow::Result<()> {
    // Without a pause that is ever reached, the background does not do the work before it is timed.
    let options = WatchOptions {
        pause: Duration::from_secs(3600),
        patience: Duration::from_secs(3600),
        poll: Duration::from_secs(3600),
    };
    let handle = repository.watch_with(options)?;
    let mode = handle.wait_until_ready(Duration::from_secs(120));
    ensure!(matches!(mode, WatchMode::Events { .. }), "no watches: {mode:?}");
    edit_one(files, numbers)?;
    expect_one_change(&samples.time(|| repository.refresh()))
}

fn expect_one_change(change: &CatalogChange) -> anyhow::Result<()> {
    ensure!(change.changed.len() == 1, "one edit was seen as {change:?}");
    Ok(())
}

fn edit_one(files: &[PathBuf], numbers: &mut Numbers) -> anyhow::Result<()> {
    let file = &files[numbers.below(files.len())];
    writeln!(OpenOptions::new().append(true).open(file)?, "One more line.")?;
    Ok(())
}

impl Peer {
    fn new(package: &'static str, title: &'static str) -> Self {
        Self {
            package,
            title,
            samples: Samples::default(),
            missing: None,
        }
    }

    fn measure(&mut self, python: &Path, lists: &Lists) -> anyhow::Result<()> {
        if self.missing.is_some() {
            return Ok(());
        }
        match peers::parse_with_python(python, self.package, &lists.sample)? {
            PythonTime::Took(time) => self
                .samples
                .push(Duration::from_secs_f64(time.as_secs_f64() * lists.scale)),
            PythonTime::Missing(reason) => self.missing = Some(reason),
        }
        Ok(())
    }
}
