//! What a model is told when a skill was loaded.

use std::fmt::Write as _;

use crate::dialect::Dialect;
use crate::one_line::one_line;
use crate::prompt::{BodyText, DocBody, loaded_block, resource_summary, shown_directory};
use crate::settings::Settings;
use crate::skill_view::SkillView;
use crate::state::ResourceView;

pub(crate) fn already_loaded_text(skill: &SkillView) -> String {
    let name = one_line(skill.name.as_str());
    format!("Skill '{name}' is already loaded. Its instructions are already active.")
}

/// The instructions with what belongs to them, as the dialect delivers them.
pub(crate) fn load_text(
    settings: &Settings,
    skill: &SkillView,
    said: &str,
    docs: &[DocBody],
    resources: &[ResourceView],
    already_loaded: bool,
) -> String {
    match settings.dialect {
        Dialect::Deepagents => with_resource_paths(said, skill, resources),
        Dialect::Saa => said.to_owned(),
        Dialect::Trpc => {
            let again = if already_loaded { " (again)" } else { "" };
            format!("loaded: {}{again}", one_line(skill.name.as_str()))
        }
        Dialect::Skillbox | Dialect::Agentskills if !settings.delivery().in_result() => {
            format!(
                "loaded: {}; its instructions stand in the system prompt",
                one_line(skill.name.as_str())
            )
        }
        Dialect::Skillbox | Dialect::Agentskills => {
            let body = BodyText {
                name: skill.name.to_string(),
                directory: shown_directory(settings, skill).into_owned(),
                text: Ok(said.to_owned()),
                allowed_tools: skill.allowed_tools.iter().map(|tool| tool.to_string()).collect(),
                docs: docs.to_vec(),
            };
            let summary = resource_summary(resources);
            let files = if summary.is_empty() {
                String::new()
            } else {
                format!("\nFiles: {summary}\n")
            };
            format!("{}{files}", loaded_block(&body))
        }
    }
}

/// The text, then the full path of every resource.
fn with_resource_paths(said: &str, skill: &SkillView, resources: &[ResourceView]) -> String {
    let mut text = said.to_owned();
    if resources.is_empty() {
        return text;
    }
    text.push_str("\n\n\n---\n**Skill Resources:**\n");
    for resource in resources {
        let path = format!("{}/{}", skill.directory(), resource.path);
        let _ = write!(text, "\n- [{}] `{}`", resource.kind.as_str(), one_line(&path));
    }
    text
}
