//! Decides what an agent sees of skills, and when: the overview, the instructions, the selected documents.
//!
//! The second step of the flow, after discovery: a catalog entry becomes a loaded skill and a delta of the
//! session's state. A [`Session`] offers the hooks that a host calls. Below it, an [`Engine`] offers the operations
//! behind the tools. Both support five dialects. This crate starts no process, does not know Docker, and writes no
//! file. It reads skills only through the catalog.

mod agent;
mod cached_field;
mod call_arguments;
mod catalog_snapshot;
mod delta;
mod dialect;
mod dynamic_tools;
mod engine;
mod fire_hooks;
#[cfg(test)]
mod fixture;
mod hooks;
mod loader_error;
mod operations;
mod policy;
mod prompt;
mod prompt_template;
mod sanitize;
mod session;
mod settings;
mod skill_view;
mod snapshot_cache;
mod source_view;
mod state;
mod tool;
mod tool_call;
mod tool_interface;
mod turn_start;
mod turn_text_cache;

pub use agent::{AgentName, AgentNameError, AgentStart, Inheritance, SkillFilter};
pub use call_arguments::{CallArguments, find_invalid_field};
pub use catalog_snapshot::{CatalogSnapshot, SnapshotDiff};
pub use delta::{StateDelta, StateOperation};
pub use dialect::{Dialect, DialectError, changed_keys, executor_not_configured, state_keys};
pub use dynamic_tools::DynamicTools;
pub use engine::{Answer, Caller, Engine};
pub use hooks::{FiredHook, HookEvent, HookHandler, HookKey, SkillHooks};
pub use loader_error::LoaderError;
pub use policy::{PolicyKind, default_always_allowed};
pub use prompt_template::{PromptTemplate, TemplateError};
pub use session::{FiredHooks, History, PromptSection, Session};
pub use settings::{AtLimit, Delivery, PromptFrame, Settings, ShownPaths};
pub use skill_view::{FirstLocation, InvocationView, Owner, SkillView};
pub use snapshot_cache::SnapshotCache;
pub use source_view::SourceView;
pub use state::{DocSelection, LoadMode, LoadedSkill, PromptNote, ResourceType, ResourceView, SkillsState};
pub use tool::Tool;
pub use tool_call::Reply;
pub use tool_interface::{
    DisableResult, DocText, DocsMode, ListInput, ListResult, ListedSkill, LoadInput, LoadResult, ReadInput, ReadResult,
    SearchHit, SearchInput, SearchResult, SelectDocsInput, SelectDocsResult, SkillInput, SkillNameOrPath,
    ToolDefinition, ToolFormat, UnloadResult,
};
pub use turn_start::{TurnStart, compute_skills_update};
pub use turn_text_cache::TurnTextCache;
