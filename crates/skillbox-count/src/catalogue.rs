//! From skills on disk to what agents are told of them, and to the digest that a run is known by.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, ensure};
use skillbox_loader::{AgentName, AgentStart, Dialect, History, Session, Settings, ViewCache};
use skillbox_model::Digest;
use skillbox_repository::{Catalog, Repository, ScanOptions, Scope, Source};

const SKILLS: usize = 200;
const FILES: usize = 100;

/// Finding skills and telling an agent what each is for.
pub(crate) fn catalogue() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    for number in 0..SKILLS {
        write_skill(directory.path(), number, 1)?;
    }
    let told = counted_catalogue(directory.path());
    ensure!(told > SKILLS * 20, "only {told} bytes were told");
    Ok(())
}

#[inline(never)]
fn counted_catalogue(root: &Path) -> usize {
    let catalog = find(root);
    let mut settings = Settings::new(Dialect::Skillbox);
    settings.description_budget = 1 << 20;
    let session = Session::new(settings, Arc::new(ViewCache::default()));
    let agent = AgentName::default();
    session.before_agent(&catalog, &AgentStart::main());
    let section = session.modify_request(&catalog, &agent, History::Whole, &[]);
    section.map_or(0, |section| section.text.len())
}

/// Hashing everything in a skill.
pub(crate) fn digest() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    write_skill(directory.path(), 0, FILES)?;
    let catalog = find(directory.path());
    let digest = counted_digest(&catalog).context("the skill has no digest")?;
    ensure!(digest.to_string().starts_with("sha256:"), "{digest} is no digest");
    Ok(())
}

#[inline(never)]
fn counted_digest(catalog: &Catalog) -> Option<Digest> {
    catalog.get("skill-000")?.open().ok()?.digest().ok()
}

fn find(root: &Path) -> Catalog {
    let source = Source::Directory {
        path: root.to_owned(),
        scope: Scope::Project,
    };
    // Callgrind counts in the thread that it looks at; how two would share the work is never the same twice.
    let options = ScanOptions {
        threads: NonZeroUsize::MIN,
        ..ScanOptions::default()
    };
    Repository::open(vec![source], options).catalog()
}

fn write_skill(root: &Path, number: usize, files: usize) -> anyhow::Result<()> {
    let skill = root.join(format!("skill-{number:03}"));
    fs::create_dir_all(skill.join("scripts"))?;
    let text = format!(
        "---\nname: skill-{number:03}\ndescription: Reads documents of kind {number}, fills in forms, merges and splits \
         files. Use when the user mentions such documents.\nlicense: Apache-2.0\nallowed-tools: Bash(git:*) Read\n---\n\n\
         # Skill {number}\n\nInstructions.\n"
    );
    fs::write(skill.join("SKILL.md"), text)?;
    for file in 0..files {
        let content = format!("print({file})\n").repeat(64);
        fs::write(skill.join(format!("scripts/{file:03}.py")), content)?;
    }
    Ok(())
}
