//! `catalog-memory`: measures the memory of a catalog, in a process that does nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use skillbox_repository::{Repository, ScanOptions, Scope, SkillEntry, Source};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The directory of skills
    root: PathBuf,
}

/// The memory for all skills together, in bytes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct CatalogMemory {
    /// The growth of the resident memory when the repository is opened.
    pub(crate) growth: u64,
    /// The part of the growth that is frontmatter text.
    pub(crate) metadata: u64,
    /// The number of skills.
    pub(crate) skills: u64,
}

impl CatalogMemory {
    /// Bytes per skill beyond its metadata.
    pub(crate) fn beyond_metadata(&self) -> u64 {
        self.growth.saturating_sub(self.metadata) / self.skills.max(1)
    }
}

/// Measures the catalog of one directory in this process and prints the result as JSON.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    // Opening an empty directory first allocates the threads, buffers and tables that do not depend on the skills.
    let empty = tempfile::tempdir()?;
    drop(open_repository(empty.path()));
    let before = resident_bytes()?;
    let repository = open_repository(&arguments.root);
    let after = resident_bytes()?;
    let catalog = repository.catalog();
    let memory = CatalogMemory {
        growth: after.saturating_sub(before),
        metadata: catalog.skills().map(metadata_bytes).sum(),
        skills: catalog.len() as u64,
    };
    drop(repository);
    serde_json::to_writer(std::io::stdout(), &memory)?;
    Ok(())
}

/// Measures in a separate process.
#[expect(clippy::disallowed_methods, reason = "the benchmark starts itself, not a skill")]
pub(crate) fn measure(root: &Path) -> anyhow::Result<CatalogMemory> {
    let output = Command::new(std::env::current_exe()?)
        .arg("catalog-memory")
        .arg(root)
        .output()
        .context("cannot start `catalog-memory`")?;
    if !output.status.success() {
        bail!("`catalog-memory` failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn open_repository(root: &Path) -> Repository {
    let source = Source::Directory {
        path: root.to_owned(),
        scope: Scope::Project,
    };
    Repository::open(vec![source], ScanOptions::default())
}

fn metadata_bytes(entry: &SkillEntry) -> u64 {
    let meta = &entry.meta;
    let optional_len = |text: &Option<Box<str>>| text.as_ref().map_or(0, |text| text.len());
    let bytes = meta.name.as_str().len()
        + meta.description.len()
        + optional_len(&meta.license)
        + optional_len(&meta.compatibility)
        + meta
            .metadata
            .iter()
            .map(|(key, value)| key.len() + value.len())
            .sum::<usize>()
        + meta
            .allowed_tools
            .iter()
            .flatten()
            .map(|tool| tool.len())
            .sum::<usize>();
    bytes as u64
}

fn resident_bytes() -> anyhow::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .context("/proc/self/status has no VmRSS")?;
    Ok(kib.parse::<u64>()? * 1024)
}
