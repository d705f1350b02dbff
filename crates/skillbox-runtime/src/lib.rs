//! The one place that knows all steps of a run: discover, load, stage, run, collect, save, report.
//!
//! `pipeline` tells the story of a run, `tools` that of a tool call; `session` keeps what outlives both. Agent
//! backends use an [`AgentSession`], front doors that too or [`Runtime::run`]: a request goes in, a report or an error
//! with a stable code comes out. This crate prints nothing and reads no environment.

mod agent;
mod error;
mod export;
mod freeze;
mod host_directories;
mod inputs;
mod pipeline;
mod refusals;
mod report;
mod runtime;
mod save;
pub mod session;
mod tools;

pub use agent::{AgentOptions, AgentSession, ChangesEnter, CommandHooks};
pub use error::RunError;
pub use host_directories::HostDirectories;
pub use pipeline::{DEFAULT_SESSION_WAIT, Left, Ran, RunContext, new_run_id};
pub use runtime::{Garbage, Runtime, RuntimeSettings};
pub use tools::{Carried, HookOutcome, HookRun, HostVerb, ToolCall, ToolError, ToolOutcome};

// What the interface for agents is made of, so that a backend needs this crate alone for it.
pub use skillbox_loader::{
    AgentName, AgentNameError, AgentStart, AtLimit, Caller, Delivery, Dialect, DocSelection, DynamicTools, FiredHook,
    History, HookEvent, HookHandler, Inheritance, LoadInput, LoadMode, PolicyKind, PromptFrame, PromptSection,
    PromptTemplate, Settings, ShownPaths, SkillFilter, SkillsState, SourceView, StateDelta, StateOperation, Tool,
    ToolDefinition, ToolFormat, state_keys, wrong_field,
};
