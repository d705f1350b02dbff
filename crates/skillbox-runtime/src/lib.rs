//! Runs skills. This is the only crate that knows all steps, from discovery to the report.
//!
//! `pipeline` is the sequence of a run, `tools` the sequence of a tool call, and `session` the state between them. Agent
//! backends use an [`AgentSession`]; front ends use that or [`Runtime::run`]. Each takes a request and returns a report, or an error
//! with a stable code. This crate prints nothing and reads no environment variables.

mod agent;
mod ended_run;
mod environment;
mod error;
mod export;
mod extracted_skills;
mod freeze;
mod hint;
mod history;
mod host_directories;
mod inputs;
mod kept_output;
mod network;
mod output_limits;
mod pipeline;
mod portable_run;
mod provide;
mod report;
mod request_checks;
mod request_digest;
mod run_id;
mod run_records;
mod run_workspace;
mod runtime;
mod save;
mod secrets;
pub mod session;
mod settings;
mod skill_changes;
mod state_usage;
mod stored_bytes;
mod tools;
mod trust;

pub use agent::{AgentOptions, AgentSession, HookRunner, RefreshPolicy, ToolError};
pub use ended_run::{EndedRun, PhaseDurations, RunOrigin};
pub use environment::{EnvironmentError, EnvironmentMode, EnvironmentSettings, RegistrySources};
pub use error::RunError;
pub use export::{ExistingFiles, ExportTarget};
pub use history::{
    HistoryError, HistoryLimits, PastRun, RunFilter, RunHistory, RunList, RunStatus, RunSummary, TenantFilter,
};
pub use host_directories::HostDirectories;
pub use kept_output::KeptOutput;
pub use network::{network_access, select_profile};
pub use pipeline::{CompletedRun, RunContext};
pub use portable_run::{PortableInput, PortableSource};
pub use provide::SkillEnvironment;
pub use request_digest::{RequestDigest, RequestDigests};
pub use run_id::new_run_id;
pub use run_workspace::Cleanup;
pub use runtime::{CollectedGarbage, Runtime};
pub use secrets::{ConfiguredSecret, ConfiguredSecrets, ReadSecret, SecretError, SecretSourceError, SkillSelector};
pub use settings::{DEFAULT_SESSION_LOCK_TIMEOUT, RuntimeSettings, SkillDirKeep};
pub use state_usage::{StateKind, StateUsage};
pub use tools::{HookOutcome, HookRun, HookStatus, HostMethod, ToolCall, ToolOutcome};
pub use trust::{SkillFiles, Trust, TrustSettings, declared_needs, read_skill_files};

// How far the receiver of audit records is behind, for the metrics of a server.
pub use skillbox_trust::ForwardStatus;

// The types of the agent interface, so that a backend depends on this crate alone.
pub use skillbox_loader::{
    AgentName, AgentNameError, AgentSpec, AtLimit, BlockingExit, Caller, Delivery, Dialect, DocSelection, DynamicTools,
    FiredBy, ForkedSession, ForkedSkills, HistoryCompleteness, HookEvent, HookHandler, HostTool, HostToolError,
    Inheritance, LoadInput, LoadMode, LoaderError, MatchedHook, PolicyKind, PromptFrame, PromptSection, PromptTemplate,
    RegisterToolsInput, Settings, ShownPaths, SkillFilter, SkillsState, SourceView, StateDelta, StateOperation,
    TemplateError, Tool, ToolDefinition, ToolFormat, ToolOwner, accept_error, find_invalid_field, hook_diagnostics,
    make_portable, render_state,
};
