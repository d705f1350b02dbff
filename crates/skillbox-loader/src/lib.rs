//! What an agent is shown of skills, and when: overview, instructions, chosen documents.
//!
//! The second step of the flow, after discovery: an entry of the catalogue becomes a loaded skill and a delta of
//! the session's state. A [`Session`] offers the hooks that a host calls; below it an [`Engine`] offers the
//! operations behind the tools. Both speak five dialects. This crate starts no process, knows no Docker, and
//! writes no file; it reads skills only through the catalogue.

mod agent;
mod call;
mod call_arguments;
mod delta;
mod derived;
mod dialect;
mod dynamic_tools;
mod engine;
#[cfg(test)]
mod fixture;
mod loader_error;
mod one_line;
mod operations;
mod policy;
mod prompt;
mod session;
mod settings;
mod skill_view;
mod snapshot;
mod state;
mod steering;
mod tools;
mod turn;
mod turn_texts;
mod views;

pub use agent::{AgentName, AgentNameError, AgentStart, Inheritance, SkillFilter};
pub use call::Reply;
pub use call_arguments::{CallArguments, wrong_field};
pub use delta::{StateDelta, StateOperation};
pub use dialect::{Dialect, DialectError, changed_keys, executor_not_configured, state_keys};
pub use dynamic_tools::DynamicTools;
pub use engine::{Answer, Caller, Engine};
pub use loader_error::LoaderError;
pub use policy::{PolicyKind, default_always_allowed};
pub use prompt::{PromptTemplate, SourceView, TemplateError};
pub use session::{History, PromptSection, Session, ToolPass};
pub use settings::{AtLimit, Delivery, PromptFrame, Settings, ShownPaths};
pub use skill_view::{FirstSeen, Owner, SkillView, SteeringView};
pub use snapshot::{Snapshot, SnapshotChange};
pub use state::{DocSelection, LoadMode, LoadedSkill, PromptNote, ResourceType, ResourceView, SkillsState};
pub use steering::{FiredHook, HookEvent, HookHandler, HookKey, SkillHooks};
pub use tools::{
    DisableResult, DocText, DocsMode, ListInput, ListResult, ListedSkill, LoadInput, LoadResult, ReadInput, ReadResult,
    SearchHit, SearchInput, SearchResult, SelectDocsInput, SelectDocsResult, SkillInput, SkillPointer, Tool,
    ToolDefinition, ToolFormat, UnloadResult,
};
pub use turn::{TurnStart, refresh};
pub use turn_texts::TurnTexts;
pub use views::ViewCache;
