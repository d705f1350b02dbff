//! Arguments and measurements of the subcommand `catalog`.

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
use crate::samples::Samples;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Number of generated skills
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    skills: usize,
    /// Number of rounds; the table contains medians
    #[arg(long, default_value_t = 7, value_name = "N")]
    rounds: usize,
    /// Parent of the temporary directory for the generated skills
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Seed of the generated skills
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Python interpreter; a comparison with `skills-ref` or `deepagents` needs that package installed in it
    #[arg(long, default_value = "python3", value_name = "PATH")]
    python: PathBuf,
    /// Number of skills that the Python parsers read; their times are scaled to all skills
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
    let files =
        generate::write_skills(&root, arguments.skills, arguments.seed).context("cannot generate the skills")?;
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

/// Files with lists of SKILL.md paths, which other programs read.
struct PathLists {
    /// The list of all paths.
    all: PathBuf,
    /// The list for the Python parsers.
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

fn open_repository(root: &Path) -> Repository {
    open_collections(&[root.to_owned()])
}

fn open_collections(roots: &[PathBuf]) -> Repository {
    let sources = roots.iter().map(|root| Source::Directory {
        path: root.clone(),
        scope: Scope::Project,
    });
    Repository::open(sources.collect(), ScanOptions::default())
}

/// Returns every fourth collection. Their scan should take a quarter of the time.
fn every_fourth_collection(root: &Path) -> Vec<PathBuf> {
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
    // An unmeasured first pass brings every file into the page cache.
    peers::cat(&lists.all)?;
    let repository = Arc::new(open_repository(root));
    ensure!(
        repository.catalog().len() == files.len(),
        "the scan found {} skills",
        repository.catalog().len()
    );

    let mut random = Random::seeded(arguments.seed);
    for round in 0..arguments.rounds {
        let cold_scan = measured.cold_scan.time(|| open_repository(root));
        ensure!(
            cold_scan.catalog().len() == files.len(),
            "a cold scan did not find every skill"
        );
        drop(cold_scan);
        let quarter = measured
            .quarter_scan
            .time(|| open_collections(&every_fourth_collection(root)));
        measured.quarter_skills = quarter.catalog().len();
        drop(quarter);
        measured.cat.time(|| peers::cat(&lists.all))?;

        edit_random_file(files, &mut random)?;
        expect_one_change(&measured.refresh_by_rescan.time(|| repository.refresh()))?;
        measure_refresh_by_events(&repository, files, &mut random, &mut measured.refresh_by_events)?;

        if round < arguments.python_rounds {
            for peer in &mut measured.peers {
                peer.measure(&arguments.python, &lists.sample, lists.scale)?;
            }
        }
    }
    drop(repository);
    measured.memory = Some(memory::measure(root)?);
    Ok(measured)
}

/// Measures a refresh that uses kernel events to find the changed file. The watch exists only during this refresh;
/// otherwise every file that another measurement reads would cause an event too.
fn measure_refresh_by_events(
    repository: &Arc<Repository>,
    files: &[PathBuf],
    random: &mut Random,
    samples: &mut Samples,
) -> anyhow::Result<()> {
    // The long delays keep the background thread from refreshing the catalog before the measured refresh.
    let options = WatchOptions {
        quiet_period: Duration::from_secs(3600),
        max_delay: Duration::from_secs(3600),
        poll_interval: Duration::from_secs(3600),
    };
    let handle = repository.watch_with(options)?;
    let mode = handle.wait_until_ready(Duration::from_secs(120));
    ensure!(
        matches!(mode, WatchMode::Events { .. }),
        "the watch mode is {mode:?}, not events"
    );
    edit_random_file(files, random)?;
    expect_one_change(&samples.time(|| repository.refresh()))
}

fn expect_one_change(change: &CatalogChange) -> anyhow::Result<()> {
    ensure!(change.changed.len() == 1, "one edit was reported as {change:?}");
    Ok(())
}

fn edit_random_file(files: &[PathBuf], random: &mut Random) -> anyhow::Result<()> {
    let file = &files[random.below(files.len())];
    writeln!(OpenOptions::new().append(true).open(file)?, "One more line.")?;
    Ok(())
}
