//! The arguments of `catalog`, and the measurement.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use skillbox_repository::{CatalogChange, Repository, ScanOptions, Scope, Source, WatchMode, WatchOptions};

use super::generate::{self, Random};
use super::measurements::{Measurements, PythonPeer};
use super::{memory, peers, table, targets};
use crate::measure::Samples;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Number of generated skills
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    skills: usize,
    /// Number of rounds; the table contains medians
    #[arg(long, default_value_t = 7, value_name = "N")]
    rounds: usize,
    /// Directory for the generated skills, which are removed afterwards
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Seed of the generated skills
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Python interpreter, with the packages `skills-ref` and `deepagents` where they are to be compared
    #[arg(long, default_value = "python3", value_name = "PATH")]
    python: PathBuf,
    /// Number of skills for the Python parsers, whose times are scaled up
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    python_skills: usize,
    /// Number of rounds for the Python parsers
    #[arg(long, default_value_t = 3, value_name = "N")]
    python_rounds: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Fail when a target is missed
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let parent = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
    let directory = tempfile::Builder::new().prefix("skillbox-bench-").tempdir_in(parent)?;
    let root = directory.path().join("skills");
    let files = generate::generate(&root, arguments.skills, arguments.seed).context("the skills were not generated")?;
    let lists = PathLists::write(directory.path(), &files, arguments.python_skills)?;
    let measured = measure(arguments, &root, &files, &lists)?;
    let targets = targets::evaluate(&measured)?;
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

/// Files with lists of paths, for other programs.
struct PathLists {
    all: PathBuf,
    sample: PathBuf,
    /// The ratio of all files to those in the sample.
    scale: f64,
}

impl PathLists {
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

/// Every fourth collection: its scan should take a fourth of the time.
fn part_of(root: &Path) -> Vec<PathBuf> {
    generate::collections(root).step_by(4).collect()
}

fn measure(arguments: &Arguments, root: &Path, files: &[PathBuf], lists: &PathLists) -> anyhow::Result<Measurements> {
    let mut measured = Measurements {
        skills: files.len(),
        rounds: arguments.rounds,
        peers: vec![
            PythonPeer::new("skills-ref", "Python: skills-ref, the reference"),
            PythonPeer::new("deepagents", "Python: the parser of deepagents"),
        ],
        ..Measurements::default()
    };
    for file in files {
        measured.bytes += file.metadata()?.len();
    }
    // A first pass, which is not measured, brings every page into the cache.
    peers::cat(&lists.all)?;
    let kept = Arc::new(open(root));
    ensure!(
        kept.catalog().len() == files.len(),
        "only {} skills were found",
        kept.catalog().len()
    );

    let mut random = Random::seeded(arguments.seed);
    for round in 0..arguments.rounds {
        let cold = measured.cold.time(|| open(root));
        ensure!(cold.catalog().len() == files.len(), "a cold scan lost skills");
        drop(cold);
        let part = measured.part.time(|| open_all(&part_of(root)));
        measured.part_skills = part.catalog().len();
        drop(part);
        measured.cat.time(|| peers::cat(&lists.all))?;

        edit_one(files, &mut random)?;
        expect_one_change(&measured.rescan.time(|| kept.refresh()))?;
        refresh_watched(&kept, files, &mut random, &mut measured.watched)?;

        if round < arguments.python_rounds {
            for peer in &mut measured.peers {
                peer.measure(&arguments.python, &lists.sample, lists.scale)?;
            }
        }
    }
    drop(kept);
    measured.memory = Some(memory::measure(root)?);
    Ok(measured)
}

/// Times a refresh by events of the kernel. The watch exists only during this refresh: otherwise every file that the
/// other measurements read would be an event as well.
fn refresh_watched(
    repository: &Arc<Repository>,
    files: &[PathBuf],
    random: &mut Random,
    samples: &mut Samples,
) -> anyhow::Result<()> {
    // The long delays keep the background thread from refreshing before the measurement.
    let options = WatchOptions {
        quiet_period: Duration::from_secs(3600),
        max_delay: Duration::from_secs(3600),
        poll_interval: Duration::from_secs(3600),
    };
    let handle = repository.watch_with(options)?;
    let mode = handle.wait_until_ready(Duration::from_secs(120));
    ensure!(matches!(mode, WatchMode::Events { .. }), "no watches: {mode:?}");
    edit_one(files, random)?;
    expect_one_change(&samples.time(|| repository.refresh()))
}

fn expect_one_change(change: &CatalogChange) -> anyhow::Result<()> {
    ensure!(change.changed.len() == 1, "one edit was seen as {change:?}");
    Ok(())
}

fn edit_one(files: &[PathBuf], random: &mut Random) -> anyhow::Result<()> {
    let file = &files[random.below(files.len())];
    writeln!(OpenOptions::new().append(true).open(file)?, "One more line.")?;
    Ok(())
}
