//! Decides what an agent sees of skills, and when: the overview, the instructions, the selected documents.
//!
//! The second step from a skill on disk to its run, after discovery in `skillbox-repository`: a catalog entry becomes a
//! loaded skill and a delta of the session's state. A [`Session`] has the methods that a host calls before a turn,
//! before a model call, and before and after a tool call. A [`CallContext`] has the operations behind the tools. Both
//! support five dialects. This crate starts no process, does not know Docker, and writes no file. It reads skills only
//! through the catalog.

mod agent;
mod cached_field;
mod call_arguments;
mod call_context;
mod catalog_snapshot;
mod catalog_snapshot_cache;
mod delta;
mod dialect;
mod dynamic_tools;
mod fire_hooks;
#[cfg(test)]
mod fixture;
mod hook_diagnostics;
mod hooks;
mod host_tools;
mod loader_error;
mod operations;
mod policy;
mod prompt;
mod prompt_template;
mod sanitize;
mod session;
mod settings;
mod skill_view;
mod source_view;
mod state;
mod tool;
mod tool_call;
mod tool_interface;
mod turn_start;
mod turn_text_cache;

pub use agent::{AgentName, AgentNameError, AgentSpec, Inheritance, SkillFilter};
pub use call_arguments::{CallArguments, find_invalid_field};
pub use call_context::{CallContext, Caller, OperationOutcome};
pub use catalog_snapshot::{CatalogSnapshot, SnapshotDiff};
pub use catalog_snapshot_cache::CatalogSnapshotCache;
pub use delta::{StateDelta, StateOperation};
pub use dialect::{Dialect, DialectError, render_state, render_state_changes};
pub use fire_hooks::FiredHooks;
pub use hook_diagnostics::hook_diagnostics;
pub use hooks::{BlockingExit, FiredBy, HookEvent, HookHandler, HookKey, MatchedHook, SkillHooks};
pub use host_tools::{DynamicTools, HostTool, HostToolError};
pub use loader_error::{LoaderError, NotLoadedReason};
pub use policy::{PolicyKind, default_always_allowed};
pub use prompt_template::{PromptTemplate, TemplateError};
pub use session::{HistoryCompleteness, PromptSection, Session};
pub use settings::{AtLimit, Delivery, ForkedSkills, PromptFrame, Settings, ShownPaths};
pub use skill_view::{InvocationSettings, ShadowedLocation, SkillGroup, SkillView};
pub use source_view::SourceView;
pub use state::{DocSelection, LoadMode, LoadedSkill, NoteKind, PromptNote, ResourceType, ResourceView, SkillsState};
pub use tool::Tool;
pub use tool_call::{ForkRequest, ToolCallReply};
pub use tool_interface::{
    DocsMode, ForkedSession, ListInput, ListResult, ListedSkill, LoadInput, LoadResult, ReadInput, ReadResult,
    RegisterToolsInput, RegisterToolsResult, ResultDoc, SaaSkillInput, SearchHit, SearchInput, SearchResult,
    SelectDocsInput, SelectDocsResult, SetDisabledResult, SkillInput, ToolDefinition, ToolFormat, ToolOwner,
    UnloadResult, accept_error, make_portable,
};
pub use turn_start::{TurnStartEffects, compute_skills_update};
pub use turn_text_cache::{StoredTurnTexts, TurnTextCache};
