//! The messages of a dialect for refused calls.

use std::collections::BTreeSet;
use std::sync::Arc;

use skillbox_model::ErrorBody;
use skillbox_repository::SkillReadError;

use super::dialects::Dialect;
use crate::loader_error::{LoaderError, NotLoadedReason};
use crate::sanitize::{error_excerpt, quote_argument, sanitize_markdown_line};
use crate::skill_view::SkillView;
use crate::tool::Tool;

impl LoaderError {
    /// The error object with the message of a dialect.
    pub fn to_error_body(&self, dialect: Dialect) -> ErrorBody {
        let message = match dialect {
            Dialect::Deepagents => deepagents_message(self),
            Dialect::Saa => saa_message(self),
            Dialect::Skillbox | Dialect::Trpc | Dialect::Agentskills => None,
        };
        let mut body = ErrorBody::new(self.code(), message.unwrap_or_else(|| default_message(self)));
        if let Some(hint) = hint(self, dialect) {
            body.hint = Some(hint);
        }
        body.field = field(self, dialect);
        body
    }
}

/// The tools that the skills declare, sorted and without duplicates.
fn sorted_declared_tools(skills: &[Arc<SkillView>]) -> Vec<String> {
    let declared: BTreeSet<&str> = skills
        .iter()
        .flat_map(|skill| &skill.allowed_tools)
        .map(|entry| &**entry)
        .collect();
    declared.into_iter().map(str::to_owned).collect()
}

fn join_names(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    join_as_python(names)
}

/// Joins names as `', '.join(names)` does: nothing for an empty list.
fn join_as_python(names: &[String]) -> String {
    let names: Vec<_> = names.iter().map(|name| sanitize_markdown_line(name)).collect();
    names.join(", ")
}

/// Lists the most similar names, if there are any.
fn describe_suggestions(names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| format!("the nearest are: {}", join_names(names)))
}

fn default_message(error: &LoaderError) -> String {
    match error {
        LoaderError::UnknownSkill {
            name,
            not_loaded: Some(not_loaded),
            ..
        } => {
            let reason = sanitize_markdown_line(&not_loaded.reason);
            format!(
                "unknown skill {:?}: it exists but did not load: {reason}",
                error_excerpt(name)
            )
        }
        LoaderError::UnknownSkill { name, suggestions, .. } => {
            format!(
                "unknown skill {:?}; {}",
                error_excerpt(name),
                describe_suggestions(suggestions).unwrap_or_else(|| "no skills are available".to_owned())
            )
        }
        LoaderError::LoadLimit { name, limit, loaded } => format!(
            "cannot load the skill {:?}: the limit of {limit} loaded skills is reached; loaded skills: {}",
            error_excerpt(name),
            join_names(loaded)
        ),
        LoaderError::Unreadable { name, source, .. } => {
            format!(
                "the skill {:?} cannot be read: {}",
                error_excerpt(name),
                sanitize_markdown_line(&describe_cause(source))
            )
        }
        LoaderError::UnknownDoc {
            skill,
            path,
            suggestions,
        } => {
            let (skill, path) = (error_excerpt(skill), error_excerpt(path));
            let suggestions = describe_suggestions(suggestions);
            let suggestions = suggestions.map(|text| format!("; {text}")).unwrap_or_default();
            format!("the skill {skill:?} has no {path:?}{suggestions}")
        }
        LoaderError::InvalidPath { source, .. } => sanitize_markdown_line(&source.to_string()).into_owned(),
        LoaderError::ToolNotAllowed { tool, skills, reason } => {
            let reason = reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
            format!(
                "the loaded skills do not allow the tool {:?}{reason}; allowed tools: {}",
                error_excerpt(tool),
                join_names(&sorted_declared_tools(skills))
            )
        }
        LoaderError::UnknownTool { tool, available } => {
            let available: Vec<String> = available.iter().map(|name| (*name).to_owned()).collect();
            let (tool, available) = (error_excerpt(tool), join_names(&available));
            format!("unknown tool {tool:?}; available tools: {available}")
        }
        LoaderError::SkillCalledAsTool { skill, .. } => format!("{:?} is a skill, not a tool", error_excerpt(skill)),
        LoaderError::InvalidArguments { tool, source, .. } => {
            format!(
                "invalid arguments for {tool}: {}",
                sanitize_markdown_line(&source.to_string())
            )
        }
        other => sanitize_markdown_line(&other.to_string()).into_owned(),
    }
}

/// The messages of deepagents.
fn deepagents_message(error: &LoaderError) -> Option<String> {
    Some(match error {
        LoaderError::UnknownSkill { name, suggestions, .. } => {
            format!(
                "Error: Skill '{}' not found. Available skills: {}",
                error_excerpt(name),
                join_as_python(suggestions)
            )
        }
        LoaderError::LoadLimit { name, limit, loaded } => format!(
            "Error: Cannot load skill '{}'. Maximum number of simultaneously loaded skills reached ({limit}). \
             Currently loaded: {}. Consider whether all loaded skills are still needed for the current task.",
            error_excerpt(name),
            join_as_python(loaded)
        ),
        LoaderError::SkillMissing { path, .. } => {
            format!(
                "Error: Failed to read skill file at {}: file_not_found",
                sanitize_markdown_line(&path.to_string_lossy())
            )
        }
        LoaderError::Unreadable { path, source, .. } => {
            let path = path.to_string_lossy();
            let path = sanitize_markdown_line(&path);
            match source {
                SkillReadError::TooLarge { limit, .. } => {
                    format!("Error: Skill file at {path} exceeds maximum size ({limit} bytes)")
                }
                SkillReadError::NotUtf8 { source, .. } => format!("Error: Failed to decode skill file: {source}"),
                other => format!(
                    "Error: Failed to read skill file at {path}: {}",
                    sanitize_markdown_line(&describe_cause(other))
                ),
            }
        }
        LoaderError::ManualOnly(name) => {
            format!(
                "Error: Skill '{}' is manual only. It is loaded by the user, not by the model.",
                error_excerpt(name)
            )
        }
        LoaderError::ModelOnly(name) => {
            format!(
                "Error: Skill '{}' is not user invocable. It is loaded by the model, not by the user.",
                error_excerpt(name)
            )
        }
        LoaderError::ToolNotAllowed { tool, skills, .. } => format!(
            "Tool '{}' is not in the allowed-tools list for the currently loaded skills. Allowed tools: {}. If you \
             believe this tool is necessary, explain your reasoning.",
            error_excerpt(tool),
            join_as_python(&sorted_declared_tools(skills))
        ),
        _ => return None,
    })
}

/// The messages of Spring AI Alibaba.
fn saa_message(error: &LoaderError) -> Option<String> {
    Some(match error {
        LoaderError::UnknownSkill { name, suggestions, .. } => {
            let name = error_excerpt(name);
            match describe_suggestions(suggestions) {
                Some(suggestions) => format!("Error: Skill not found: {name}; {suggestions}"),
                None => format!("Error: Skill not found: {name}; no skills are available"),
            }
        }
        LoaderError::SkillNotNamed => "Error: skill_name or skill_path is required".to_owned(),
        LoaderError::SkillMismatch { .. } => "Error: skill_name and skill_path must refer to the same skill".to_owned(),
        _ => return None,
    })
}

/// Describes the cause at the end of the chain, including the message of the operating system.
fn describe_cause(error: &SkillReadError) -> String {
    match error {
        SkillReadError::Io { path, source } => format!("{}: {source}", path.display()),
        other => other.to_string(),
    }
}

fn hint(error: &LoaderError, dialect: Dialect) -> Option<String> {
    let name = |tool| dialect.tool_name(tool);
    match error {
        LoaderError::UnknownSkill {
            not_loaded: Some(not_loaded),
            ..
        } => hint_about_not_loaded(not_loaded, dialect),
        LoaderError::UnknownSkill { .. } => name(Tool::Search)
            .or(name(Tool::List))
            .map(|tool| format!("find the right name with `{tool}`")),
        LoaderError::AddedDuringTurn(_) => Some("it can be used in the next turn".to_owned()),
        LoaderError::HostToolNameTaken { .. } => Some("register it under another name".to_owned()),
        LoaderError::TooManyHostTools { .. } => Some("remove tools that are no longer needed".to_owned()),
        LoaderError::LoadLimit { .. } => Some(match name(Tool::Unload) {
            Some(tool) => format!("unload one with `{tool}`"),
            None => "continue with the loaded skills".to_owned(),
        }),
        LoaderError::UnknownDoc { .. } => name(Tool::ListDocs).map(|tool| format!("list them with `{tool}`")),
        LoaderError::NotLoaded(skill) => {
            name(Tool::Load).map(|tool| format!("load it first: {tool}({})", quote_argument(skill)))
        }
        LoaderError::SkillCalledAsTool { skill, load_tool } => Some(match load_tool {
            Some(load_tool) => format!("load it: {load_tool}({})", quote_argument(skill)),
            None => "read its SKILL.md".to_owned(),
        }),
        LoaderError::Disabled(_) => name(Tool::Enable).map(|tool| format!("enable it with `{tool}`")),
        LoaderError::ManualOnly(_) => Some("ask the user to load it".to_owned()),
        LoaderError::ModelOnly(_) => Some("describe the task, and let the model load it".to_owned()),
        LoaderError::UnknownTool { .. } => Some("call one of the tools that the message names".to_owned()),
        _ => None,
    }
}

/// The remedy for a skill that did not load. Where the message is fixed by the dialect, the hint contains the reason too.
fn hint_about_not_loaded(not_loaded: &NotLoadedReason, dialect: Dialect) -> Option<String> {
    let remedy = not_loaded.hint.as_deref().map(sanitize_markdown_line);
    match dialect {
        Dialect::Deepagents | Dialect::Saa => {
            let reason = sanitize_markdown_line(&not_loaded.reason);
            let remedy = remedy.map(|remedy| format!("; {remedy}")).unwrap_or_default();
            Some(format!("the skill exists but did not load: {reason}{remedy}"))
        }
        _ => remedy.map(|remedy| remedy.into_owned()),
    }
}

fn field(error: &LoaderError, dialect: Dialect) -> Option<String> {
    let skill = match dialect {
        Dialect::Deepagents | Dialect::Saa => "skill_name",
        _ => "skill",
    };
    match error {
        LoaderError::UnknownSkill { .. }
        | LoaderError::AddedDuringTurn(_)
        | LoaderError::Disabled(_)
        | LoaderError::ManualOnly(_)
        | LoaderError::ModelOnly(_)
        | LoaderError::NotLoaded(_) => Some(skill.to_owned()),
        LoaderError::InvalidPath { field, .. } => Some((*field).to_owned()),
        LoaderError::SkillMismatch { .. } => Some("skill_path".to_owned()),
        LoaderError::InvalidArguments { field, .. } => field.clone(),
        LoaderError::HostToolNameTaken { field, .. } => Some(field.clone()),
        _ => None,
    }
}
