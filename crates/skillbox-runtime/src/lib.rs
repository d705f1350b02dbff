//! Runs skills. This is the only crate that knows all steps, from discovery to the report.
//!
//! `pipeline` is the sequence of a run, `tools` the sequence of a tool call, and `session` the state between them. Agent
//! backends use an [`AgentSession`]; front ends use that or [`Runtime::run`]. Each takes a request and returns a report, or an error
//! with a stable code. This crate prints nothing and reads no environment variables.

mod agent;
mod error;
mod export;
mod freeze;
mod host_directories;
mod inputs;
mod pipeline;
mod refusals;
mod report;
mod run_workspace;
mod runtime;
mod save;
pub mod session;
mod settings;
mod tools;

pub use agent::{AgentOptions, AgentSession, HookRunner, RefreshPolicy, ToolError};
pub use error::RunError;
pub use host_directories::HostDirectories;
pub use pipeline::{CompletedRun, RunContext, new_run_id};
pub use run_workspace::Cleanup;
pub use runtime::{CollectedGarbage, Runtime};
pub use settings::{DEFAULT_SESSION_LOCK_TIMEOUT, RuntimeSettings};
pub use tools::{HookOutcome, HookRun, HookStatus, HostMethod, ToolCall, ToolOutcome};

// The types of the agent interface, so that a backend depends on this crate alone.
pub use skillbox_loader::{
    AgentName, AgentNameError, AgentSpec, AtLimit, Caller, Delivery, Dialect, DocSelection, DynamicTools,
    HistoryCompleteness, HookEvent, HookHandler, Inheritance, LoadInput, LoadMode, MatchedHook, PolicyKind,
    PromptFrame, PromptSection, PromptTemplate, Settings, ShownPaths, SkillFilter, SkillsState, SourceView, StateDelta,
    StateOperation, Tool, ToolDefinition, ToolFormat, find_invalid_field, render_state,
};
