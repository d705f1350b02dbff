//! The text that a model gets after loading a skill.

use std::fmt::Write as _;

use crate::dialect::Dialect;
use crate::prompt::{LoadedSkillText, PromptDoc, render_plain, render_tagged, resource_summary, shown_directory};
use crate::sanitize::sanitize_markdown_line;
use crate::settings::Settings;
use crate::skill_view::SkillView;
use crate::state::ResourceView;

pub(crate) fn render_already_loaded_text(skill: &SkillView) -> String {
    let name = sanitize_markdown_line(skill.name.as_str());
    format!("Skill '{name}' is already loaded. Its instructions are already active.")
}

/// Renders the instructions with their documents and resources, in the form of the dialect.
pub(crate) fn render_loaded_text(
    settings: &Settings,
    skill: &SkillView,
    instructions: &str,
    docs: &[PromptDoc],
    resources: &[ResourceView],
    already_loaded: bool,
) -> String {
    match settings.dialect {
        Dialect::Deepagents => append_resource_paths(instructions, skill, resources),
        Dialect::Saa => instructions.to_owned(),
        Dialect::Trpc => {
            let suffix = if already_loaded { " (again)" } else { "" };
            let line = format!("loaded: {}{suffix}", sanitize_markdown_line(skill.name.as_str()));
            if settings.delivery().in_prompt() {
                return line;
            }
            // No later prompt repeats the texts, so the model gets them here.
            format!(
                "{line}\n\n{}",
                render_plain(&loaded_text(settings, skill, instructions, docs))
            )
        }
        Dialect::Skillbox | Dialect::Agentskills if !settings.delivery().in_result() => {
            format!(
                "loaded: {}; its instructions are in the system prompt",
                sanitize_markdown_line(skill.name.as_str())
            )
        }
        Dialect::Skillbox | Dialect::Agentskills => {
            let loaded = loaded_text(settings, skill, instructions, docs);
            let summary = resource_summary(resources);
            let files = if summary.is_empty() {
                String::new()
            } else {
                format!("\nFiles: {summary}\n")
            };
            format!("{}{files}", render_tagged(&loaded))
        }
    }
}

fn loaded_text(settings: &Settings, skill: &SkillView, instructions: &str, docs: &[PromptDoc]) -> LoadedSkillText {
    LoadedSkillText {
        name: skill.name.to_string(),
        directory: shown_directory(settings, skill).into_owned(),
        instructions: Ok(instructions.to_owned()),
        allowed_tools: skill.allowed_tools.iter().map(|tool| tool.to_string()).collect(),
        docs: docs.to_vec(),
    }
}

/// Appends the full path of every resource to the instructions.
fn append_resource_paths(instructions: &str, skill: &SkillView, resources: &[ResourceView]) -> String {
    let mut text = instructions.to_owned();
    if resources.is_empty() {
        return text;
    }
    text.push_str("\n\n\n---\n**Skill Resources:**\n");
    for resource in resources {
        let path = format!("{}/{}", skill.directory(), resource.path);
        let _ = write!(
            text,
            "\n- [{}] `{}`",
            resource.kind.as_str(),
            sanitize_markdown_line(&path)
        );
    }
    text
}
