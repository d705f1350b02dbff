//! The sessions, skills and tool calls that are measured.

use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};
use skillbox_loader::{
    AgentSpec, CatalogSnapshotCache, LoadMode, Session, Settings, SkillView, SkillsState, StateOperation,
};
use skillbox_model::SkillName;
use skillbox_repository::{Catalog, Repository, ScanOptions, Scope, Source};
use tempfile::TempDir;

/// Returns a session with this number of skills, whose descriptions have a typical length.
pub(crate) fn session_with_skills(settings: Settings, skills: usize) -> anyhow::Result<Session> {
    let changed = (0..skills).map(|n| skill_view(n, &[])).collect::<anyhow::Result<_>>()?;
    let mut state = SkillsState::default();
    state.apply(
        &StateOperation::UpdateSkills {
            changed,
            removed: Vec::new(),
        }
        .into(),
    );
    Ok(Session::resume(
        settings,
        Arc::new(CatalogSnapshotCache::default()),
        state,
    ))
}

/// Returns a session with ten loaded skills that declare ten tools each.
pub(crate) fn session_with_loaded_skills(settings: Settings) -> anyhow::Result<Session> {
    let declared_tools = |skill: usize| {
        let plain = (0..8).map(move |tool| format!("tool_{skill}_{tool}"));
        plain.chain([format!("Bash(program{skill}:*)"), format!("Bash(git sub{skill} *)")])
    };
    let changed = (0..10)
        .map(|n| skill_view(n, &declared_tools(n).collect::<Vec<_>>()))
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
    Ok(Session::resume(
        settings,
        Arc::new(CatalogSnapshotCache::default()),
        state,
    ))
}

fn skill_view(n: usize, tools: &[String]) -> anyhow::Result<Arc<SkillView>> {
    let name = format!("skill-{n:05}");
    let path = format!("/srv/skills/{name}/SKILL.md");
    let mut skill = SkillView::new(SkillName::parse(name)?, description(n), path);
    skill.allowed_tools = tools.iter().map(|tool| Box::from(tool.as_str())).collect();
    Ok(Arc::new(skill))
}

/// Returns a description of about 260 characters, the average of published skills.
pub(crate) fn description(n: usize) -> String {
    format!(
        "Extract text, tables and metadata from documents of kind {n}, fill in forms, merge and split files. Use when \
         the user mentions such documents, asks to convert them, or wants to know what they contain; not for images, \
         recordings or anything that needs a network connection to be read."
    )
}

/// A tool call that the policy checks.
#[derive(Clone, Copy)]
pub(crate) enum ToolCall {
    /// A call of a tool that a loaded skill declares.
    Listed,
    /// A call of a tool that no skill declares, which the policy blocks.
    Unlisted,
    /// A shell pipeline of declared commands.
    Pipeline,
}

impl ToolCall {
    pub(crate) const ALL: &'static [Self] = &[Self::Listed, Self::Unlisted, Self::Pipeline];

    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Listed => "a listed tool",
            Self::Unlisted => "a tool that is blocked",
            Self::Pipeline => "a pipeline of three commands",
        }
    }

    pub(crate) fn is_allowed(self) -> bool {
        !matches!(self, Self::Unlisted)
    }

    pub(crate) fn tool_and_input(self) -> (&'static str, Value) {
        match self {
            Self::Listed => ("tool_9_7", json!({})),
            Self::Unlisted => ("tool_9_9", json!({})),
            Self::Pipeline => {
                let command = "program3 --all 'in put' | git sub9 x | program9 > /dev/null";
                ("skill_run", json!({"skill": "skill-00001", "command": command}))
            }
        }
    }
}

/// Writes a skill whose SKILL.md has about `bytes` bytes, with a few other files. Returns its directory and catalog.
pub(crate) fn write_large_skill(bytes: usize) -> anyhow::Result<(TempDir, Catalog)> {
    let directory = tempfile::tempdir()?;
    let skill = directory.path().join("big");
    for subdirectory in ["scripts", "references", "assets"] {
        fs::create_dir_all(skill.join(subdirectory))?;
        fs::write(skill.join(subdirectory).join("file.md"), "A file.\n")?;
    }
    let line = "Read the input line by line, check every field, and write what is wrong into the report.\n";
    let frontmatter = "---\nname: big\ndescription: A long one.\n---\n";
    fs::write(
        skill.join("SKILL.md"),
        frontmatter.to_owned() + &line.repeat(bytes / line.len()),
    )?;
    let source = Source::Directory {
        path: directory.path().to_owned(),
        scope: Scope::Project,
    };
    let catalog = Repository::open(vec![source], ScanOptions::default()).catalog();
    Ok((directory, catalog))
}

/// Starts a session and its first turn.
pub(crate) fn start_session(catalog: &Catalog) -> Session {
    let session = Session::new(Settings::default(), Arc::new(CatalogSnapshotCache::default()));
    session.before_agent(catalog, &AgentSpec::main());
    session
}
