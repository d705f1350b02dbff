//! The skills in a prompt's list.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::agent::AgentName;
use crate::sanitize::sanitize_markdown_line;
use crate::settings::{Settings, ShownPaths};
use crate::skill_view::SkillView;
use crate::state::SkillsState;

/// A visible skill, and whether the agent has loaded it.
#[derive(Clone, Copy)]
pub(crate) struct ListEntry<'s> {
    pub(crate) skill: &'s Arc<SkillView>,
    pub(crate) is_loaded: bool,
}

/// Every skill that the agent can see, in catalog order.
pub(crate) fn list_entries<'s>(state: &'s SkillsState, agent: &AgentName) -> Vec<ListEntry<'s>> {
    let loaded: Vec<&str> = state.loaded(agent).map(|loaded| loaded.skill.as_str()).collect();
    let skills = state.visible(agent);
    skills
        .map(|skill| ListEntry {
            skill,
            is_loaded: loaded.contains(&skill.name.as_str()),
        })
        .collect()
}

/// Writes what to pass as arguments when loading the skill, if it documents that.
pub(crate) fn write_argument_hint(out: &mut dyn fmt::Write, skill: &SkillView) -> fmt::Result {
    match skill.argument_hint() {
        Some(hint) => write!(out, " (arguments: {})", sanitize_markdown_line(hint)),
        None => Ok(()),
    }
}

/// The directory of a skill as prompts show it.
pub(crate) fn shown_directory<'s>(settings: &Settings, skill: &'s SkillView) -> Cow<'s, str> {
    match settings.shown_paths() {
        ShownPaths::Workspace => Cow::Owned(format!("/workspace/skills/{}", skill.name)),
        ShownPaths::Catalog => Cow::Borrowed(skill.directory()),
    }
}
