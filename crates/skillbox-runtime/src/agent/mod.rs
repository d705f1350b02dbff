//! The session of an agent: its state, its options and the methods that a host calls.

mod options;
mod session;
mod tool_error;

pub use options::{AgentOptions, HookRunner, RefreshPolicy};
pub use session::AgentSession;
pub(crate) use session::{CatalogRefresh, StepResult};
pub use tool_error::ToolError;
