//! `catalogue`: how fast skills are found and kept up to date, and what remembering them costs.

mod generate;
pub(crate) mod memory;
mod peers;
mod table;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use skillbox_repository::{Repository, ScanOptions, Scope, Source};

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
}

/// All that was measured.
#[derive(Default)]
struct Measured {
    skills: usize,
    bytes: u64,
    cold: Samples,
    rescan: Samples,
    watched: Samples,
    cat: Samples,
    peers: Vec<Peer>,
    memory: Option<Memory>,
}

/// One of the Python parsers; its times are scaled to all skills.
struct Peer {
    package: &'static str,
    samples: Samples,
    missing: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let parent = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
    if let Some(keep) = std::env::var_os("KEEP") {
        generate::generate(Path::new(&keep), arguments.skills, arguments.seed)?;
        return Ok(());
    }
    let directory = tempfile::Builder::new().prefix("skillbox-bench-").tempdir_in(parent)?;
    let root = directory.path().join("skills");
    let files = generate::generate(&root, arguments.skills, arguments.seed).context("the skills were not generated")?;
    let lists = Lists::write(directory.path(), &files, arguments.python_skills)?;
    let measured = measure(arguments, &root, &files, &lists)?;
    if arguments.json {
        table::print_json(&measured)
    } else {
        table::print(&measured)
    }
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
    let source = Source::Directory {
        path: root.to_owned(),
        scope: Scope::Project,
    };
    Repository::open(vec![source], ScanOptions::default())
}

fn measure(arguments: &Arguments, root: &Path, files: &[PathBuf], lists: &Lists) -> anyhow::Result<Measured> {
    let mut measured = Measured {
        skills: files.len(),
        peers: ["skills-ref", "deepagents"].map(Peer::of).into(),
        ..Measured::default()
    };
    for file in files {
        measured.bytes += file.metadata()?.len();
    }
    // One turn that does not count brings every page into the cache, for everyone alike.
    peers::cat(&lists.all)?;
    let kept = open(root);
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
        measured.cat.time(|| peers::cat(&lists.all))?;

        let edited = edit_one(files, &mut numbers)?;
        let change = measured.rescan.time(|| kept.refresh());
        ensure!(
            change.changed.len() == 1,
            "the edit of {} was not seen",
            edited.display()
        );

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

fn edit_one<'a>(files: &'a [PathBuf], numbers: &mut Numbers) -> anyhow::Result<&'a Path> {
    let file = &files[numbers.below(files.len())];
    writeln!(OpenOptions::new().append(true).open(file)?, "One more line.")?;
    Ok(file)
}

impl Peer {
    fn of(package: &'static str) -> Self {
        Self {
            package,
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
