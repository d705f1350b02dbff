//! The cases `catalog`, from skills on disk to the prompt of an agent, and `digest`, the digest of a skill.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, ensure};
use skillbox_loader::{AgentName, AgentSpec, CatalogSnapshotCache, Dialect, HistoryCompleteness, Session, Settings};
use skillbox_model::Digest;
use skillbox_repository::{Catalog, Repository, ScanOptions, Scope, Source};

/// The number of skills in the case `catalog`.
const SKILL_COUNT: usize = 200;
/// The number of scripts in the skill of the case `digest`.
const FILE_COUNT: usize = 100;

/// Scans skills and renders the prompt section that lists them.
pub(crate) fn run_catalog_case() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    for number in 0..SKILL_COUNT {
        write_skill(directory.path(), number, 1)?;
    }
    let prompt_bytes = counted_scan_and_prompt(directory.path());
    ensure!(
        prompt_bytes > SKILL_COUNT * 20,
        "the prompt has only {prompt_bytes} bytes"
    );
    Ok(())
}

#[inline(never)]
fn counted_scan_and_prompt(root: &Path) -> usize {
    let catalog = scan(root);
    let mut settings = Settings::new(Dialect::Skillbox);
    settings.max_list_chars = 1 << 20;
    let session = Session::new(settings, Arc::new(CatalogSnapshotCache::default()));
    let agent = AgentName::default();
    session.before_agent(&catalog, &AgentSpec::main());
    let section = session.modify_request(&catalog, &agent, HistoryCompleteness::Complete, &[]);
    section.map_or(0, |section| section.text.len())
}

/// Computes the digest of a skill.
pub(crate) fn run_digest_case() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    write_skill(directory.path(), 0, FILE_COUNT)?;
    let catalog = scan(directory.path());
    let digest = counted_digest(&catalog).context("the skill has no digest")?;
    ensure!(digest.to_string().starts_with("sha256:"), "{digest} is not a digest");
    Ok(())
}

#[inline(never)]
fn counted_digest(catalog: &Catalog) -> Option<Digest> {
    catalog.get("skill-000")?.open().ok()?.digest().ok()
}

fn scan(root: &Path) -> Catalog {
    let source = Source::Directory {
        path: root.to_owned(),
        scope: Scope::Project,
    };
    // With one thread the count is reproducible. Two threads would divide the work differently each time.
    let options = ScanOptions {
        threads: NonZeroUsize::MIN,
        ..ScanOptions::default()
    };
    Repository::open(vec![source], options).catalog()
}

fn write_skill(root: &Path, number: usize, script_count: usize) -> anyhow::Result<()> {
    let skill = root.join(format!("skill-{number:03}"));
    fs::create_dir_all(skill.join("scripts"))?;
    let text = format!(
        "---\nname: skill-{number:03}\ndescription: Reads documents of kind {number}, fills in forms, merges and splits \
         files. Use when the user mentions such documents.\nlicense: Apache-2.0\nallowed-tools: Bash(git:*) Read\n---\n\n\
         # Skill {number}\n\nInstructions.\n"
    );
    fs::write(skill.join("SKILL.md"), text)?;
    for script in 0..script_count {
        let content = format!("print({script})\n").repeat(64);
        fs::write(skill.join(format!("scripts/{script:03}.py")), content)?;
    }
    Ok(())
}
