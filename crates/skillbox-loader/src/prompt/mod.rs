//! The prompt section: how skills are presented to a model, in every dialect.

mod agentskills;
mod deepagents;
mod guidance;
mod input;
mod list_budget;
mod list_entry;
mod load_instructions;
mod load_warnings;
mod loaded_skill;
mod markdown_list;
mod resource_summary;
mod saa;
mod section;
mod skillbox;
mod source_locations;
mod trpc;

pub(crate) use input::PromptInput;
pub(crate) use list_entry::shown_directory;
pub(crate) use loaded_skill::{
    LoadedSkillText, PromptDoc, render_plain, render_plain_docs, render_tagged, render_tagged_docs,
};
pub(crate) use resource_summary::resource_summary;
pub(crate) use section::render_section;
