//! Sessions and skills for the measurements.

use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};
use skillbox_loader::{AgentSpec, LoadMode, Session, Settings, SkillView, SkillsState, SnapshotCache, StateOperation};
use skillbox_model::SkillName;
use skillbox_repository::{Catalog, Repository, ScanOptions, Scope, Source};
use tempfile::TempDir;

/// A session with many skills whose descriptions have a usual length.
pub(crate) fn session_of(settings: Settings, skills: usize) -> anyhow::Result<Session> {
    let changed = (0..skills).map(|n| view(n, &[])).collect::<anyhow::Result<_>>()?;
    let mut state = SkillsState::default();
    state.apply(
        &StateOperation::UpdateSkills {
            changed,
            removed: Vec::new(),
        }
        .into(),
    );
    Ok(Session::resume(settings, Arc::new(SnapshotCache::default()), state))
}

/// A session with ten loaded skills that declare ten tools each.
pub(crate) fn loaded_session(settings: Settings) -> anyhow::Result<Session> {
    let declared = |skill: usize| {
        let plain = (0..8).map(move |tool| format!("tool_{skill}_{tool}"));
        plain.chain([format!("Bash(program{skill}:*)"), format!("Bash(git sub{skill} *)")])
    };
    let changed = (0..10)
        .map(|n| view(n, &declared(n).collect::<Vec<_>>()))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut state = SkillsState::default();
    let names: Vec<SkillName> = changed.iter().map(|skill| skill.name.clone()).collect();
    state.apply(
        &StateOperation::UpdateSkills {
            changed,
            removed: Vec::new(),
        }
        .into(),
    );
    for skill in names {
        let load = StateOperation::Load {
            agent: Default::default(),
            skill,
            mode: LoadMode::Session,
            arguments: None,
        };
        state.apply(&load.into());
    }
    Ok(Session::resume(settings, Arc::new(SnapshotCache::default()), state))
}

fn view(n: usize, tools: &[String]) -> anyhow::Result<Arc<SkillView>> {
    let name = format!("skill-{n:05}");
    let path = format!("/srv/skills/{name}/SKILL.md");
    let mut skill = SkillView::new(SkillName::parse(name)?, description(n), path);
    skill.allowed_tools = tools.iter().map(|tool| Box::from(tool.as_str())).collect();
    Ok(Arc::new(skill))
}

/// About 260 characters, the average of published skills.
pub(crate) fn description(n: usize) -> String {
    format!(
        "Extract text, tables and metadata from documents of kind {n}, fill in forms, merge and split files. Use when \
         the user mentions such documents, asks to convert them, or wants to know what they contain; not for images, \
         recordings or anything that needs a network connection to be read."
    )
}

/// The tool calls that the policy checks.
#[derive(Clone, Copy)]
pub(crate) enum ToolCall {
    Named,
    Unlisted,
    Command,
}

impl ToolCall {
    pub(crate) const ALL: &'static [Self] = &[Self::Named, Self::Unlisted, Self::Command];

    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Named => "a listed tool",
            Self::Unlisted => "a tool that is blocked",
            Self::Command => "a pipeline of three commands",
        }
    }

    pub(crate) fn is_allowed(self) -> bool {
        !matches!(self, Self::Unlisted)
    }

    pub(crate) fn tool_and_input(self) -> (&'static str, Value) {
        match self {
            Self::Named => ("tool_9_7", json!({})),
            Self::Unlisted => ("tool_9_9", json!({})),
            Self::Command => {
                let command = "program3 --all 'in put' | git sub9 x | program9 > /dev/null";
                ("skill_run", json!({"skill": "skill-00001", "command": command}))
            }
        }
    }
}

/// A skill on disk whose SKILL.md has about `bytes` bytes, with a few other files.
pub(crate) fn skill_on_disk(bytes: usize) -> anyhow::Result<(TempDir, Catalog)> {
    let directory = tempfile::tempdir()?;
    let skill = directory.path().join("big");
    for below in ["scripts", "references", "assets"] {
        fs::create_dir_all(skill.join(below))?;
        fs::write(skill.join(below).join("file.md"), "A file.\n")?;
    }
    let line = "Read the input line by line, check every field, and write what is wrong into the report.\n";
    let head = "---\nname: big\ndescription: A long one.\n---\n";
    fs::write(
        skill.join("SKILL.md"),
        head.to_owned() + &line.repeat(bytes / line.len()),
    )?;
    let source = Source::Directory {
        path: directory.path().to_owned(),
        scope: Scope::Project,
    };
    let catalog = Repository::open(vec![source], ScanOptions::default()).catalog();
    Ok((directory, catalog))
}

/// A session at the start of its first turn.
pub(crate) fn first_turn(catalog: &Catalog) -> Session {
    let session = Session::new(Settings::default(), Arc::new(SnapshotCache::default()));
    session.before_agent(catalog, &AgentSpec::main());
    session
}
