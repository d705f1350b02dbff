//! What a dialect says when a call is refused.

use std::collections::BTreeSet;
use std::sync::Arc;

use skillbox_model::ErrorBody;
use skillbox_repository::SkillReadError;

use super::kind::Dialect;
use crate::loader_error::LoaderError;
use crate::one_line::{one_line, shown};
use crate::skill_view::SkillView;
use crate::tools::Tool;

impl LoaderError {
    /// The error object in the words of a dialect.
    pub fn body(&self, dialect: Dialect) -> ErrorBody {
        let message = match dialect {
            Dialect::Deepagents => deepagents(self),
            Dialect::Saa => saa(self),
            Dialect::Skillbox | Dialect::Trpc | Dialect::Agentskills => None,
        };
        let mut body = ErrorBody::new(self.code(), message.unwrap_or_else(|| plain(self)));
        if let Some(hint) = hint(self, dialect) {
            body.hint = Some(hint);
        }
        body.field = field(self, dialect);
        body
    }
}

/// What `skill_run` says in a host that can run nothing.
pub fn executor_not_configured() -> &'static str {
    "executor is not configured"
}

/// Everything that the skills declare, sorted, each once.
fn allowed_by(skills: &[Arc<SkillView>]) -> Vec<String> {
    let declared: BTreeSet<&str> = skills
        .iter()
        .flat_map(|skill| &skill.allowed_tools)
        .map(|entry| &**entry)
        .collect();
    declared.into_iter().map(str::to_owned).collect()
}

fn names(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let names: Vec<_> = names.iter().map(|name| one_line(name)).collect();
    names.join(", ")
}

fn plain(error: &LoaderError) -> String {
    match error {
        LoaderError::UnknownSkill { name, known } => {
            format!("unknown skill {:?}; the nearest are: {}", shown(name), names(known))
        }
        LoaderError::LoadLimit { name, limit, loaded } => format!(
            "cannot load the skill {:?}: {limit} skills are loaded, which is the limit: {}",
            shown(name),
            names(loaded)
        ),
        LoaderError::Unreadable { name, source, .. } => {
            format!(
                "the skill {:?} cannot be read: {}",
                shown(name),
                one_line(&reason(source))
            )
        }
        LoaderError::UnknownDoc { skill, path, nearest } => format!(
            "the skill {:?} has no {:?}; the nearest are: {}",
            shown(skill),
            shown(path),
            names(nearest)
        ),
        LoaderError::BadPath { source, .. } => one_line(&source.to_string()).into_owned(),
        LoaderError::ToolNotAllowed { tool, skills, because } => {
            let because = because
                .as_ref()
                .map(|because| format!(" ({because})"))
                .unwrap_or_default();
            format!(
                "the tool {:?} is not allowed by the loaded skills{because}; allowed are: {}",
                shown(tool),
                names(&allowed_by(skills))
            )
        }
        LoaderError::UnknownTool { tool, known } => {
            let known: Vec<String> = known.iter().map(|name| (*name).to_owned()).collect();
            format!("unknown tool {:?}; there are: {}", shown(tool), names(&known))
        }
        LoaderError::SkillIsNoTool { skill, .. } => format!("{:?} is a skill, not a tool", shown(skill)),
        LoaderError::WrongArguments { tool, source, .. } => {
            format!("wrong arguments for {tool}: {}", one_line(&source.to_string()))
        }
        other => one_line(&other.to_string()).into_owned(),
    }
}

/// The strings that users of deepagents know.
fn deepagents(error: &LoaderError) -> Option<String> {
    Some(match error {
        LoaderError::UnknownSkill { name, known } => {
            format!(
                "Error: Skill '{}' not found. Available skills: {}",
                shown(name),
                names(known)
            )
        }
        LoaderError::LoadLimit { name, limit, loaded } => format!(
            "Error: Cannot load skill '{}'. Maximum number of simultaneously loaded skills reached ({limit}). \
             Currently loaded: {}. Consider whether all loaded skills are still needed for the current task.",
            shown(name),
            names(loaded)
        ),
        LoaderError::Vanished { path, .. } => {
            format!(
                "Error: Failed to read skill file at {}: file_not_found",
                one_line(&path.to_string_lossy())
            )
        }
        LoaderError::Unreadable { path, source, .. } => {
            let path = path.to_string_lossy();
            let path = one_line(&path);
            match source {
                SkillReadError::TooLarge { limit, .. } => {
                    format!("Error: Skill file at {path} exceeds maximum size ({limit} bytes)")
                }
                SkillReadError::NotUtf8 { source, .. } => format!("Error: Failed to decode skill file: {source}"),
                other => format!(
                    "Error: Failed to read skill file at {path}: {}",
                    one_line(&reason(other))
                ),
            }
        }
        LoaderError::ManualOnly(name) => {
            format!(
                "Error: Skill '{}' is manual only. It is loaded by the user, not by the model.",
                shown(name)
            )
        }
        LoaderError::ToolNotAllowed { tool, skills, .. } => format!(
            "Tool '{}' is not in the allowed-tools list for the currently loaded skills. Allowed tools: {}. If you \
             believe this tool is necessary, explain your reasoning.",
            shown(tool),
            names(&allowed_by(skills))
        ),
        _ => return None,
    })
}

fn saa(error: &LoaderError) -> Option<String> {
    Some(match error {
        LoaderError::UnknownSkill { name, known } => {
            format!(
                "Error: Skill not found: {}. The nearest are: {}",
                shown(name),
                names(known)
            )
        }
        LoaderError::NothingNamed => "Error: skill_name or skill_path is required".to_owned(),
        LoaderError::NamesDiffer { .. } => "Error: skill_name and skill_path must refer to the same skill".to_owned(),
        _ => return None,
    })
}

/// The cause at the end of the chain: what the system said.
fn reason(error: &SkillReadError) -> String {
    match error {
        SkillReadError::Io { path, source } => format!("{}: {source}", path.display()),
        other => other.to_string(),
    }
}

fn hint(error: &LoaderError, dialect: Dialect) -> Option<String> {
    let name = |tool| dialect.tool_name(tool);
    match error {
        LoaderError::UnknownSkill { .. } => name(Tool::Search)
            .or(name(Tool::List))
            .map(|tool| format!("find the right name with `{tool}`")),
        LoaderError::LoadLimit { .. } => Some(match name(Tool::Unload) {
            Some(tool) => format!("drop one with `{tool}`"),
            None => "work with those that are loaded".to_owned(),
        }),
        LoaderError::UnknownDoc { .. } => name(Tool::ListDocs).map(|tool| format!("list them with `{tool}`")),
        LoaderError::NotLoaded(skill) => {
            name(Tool::Load).map(|tool| format!("load it first: {tool}({})", crate::one_line::quoted(skill)))
        }
        LoaderError::SkillIsNoTool { skill, load } => Some(match load {
            Some(load) => format!("load it: {load}({})", crate::one_line::quoted(skill)),
            None => "read its SKILL.md".to_owned(),
        }),
        LoaderError::Disabled(_) => name(Tool::Enable).map(|tool| format!("take it back with `{tool}`")),
        LoaderError::ManualOnly(_) => Some("ask the user to load it".to_owned()),
        LoaderError::UnknownTool { .. } => Some("call one of the tools that the message names".to_owned()),
        LoaderError::ToolNotAllowed { .. } => None,
        _ => None,
    }
}

fn field(error: &LoaderError, dialect: Dialect) -> Option<String> {
    let skill = match dialect {
        Dialect::Deepagents | Dialect::Saa => "skill_name",
        _ => "skill",
    };
    match error {
        LoaderError::UnknownSkill { .. }
        | LoaderError::Disabled(_)
        | LoaderError::ManualOnly(_)
        | LoaderError::NotLoaded(_) => Some(skill.to_owned()),
        LoaderError::BadPath { field, .. } => Some((*field).to_owned()),
        LoaderError::NamesDiffer { .. } => Some("skill_path".to_owned()),
        LoaderError::WrongArguments { field, .. } => field.clone(),
        _ => None,
    }
}
