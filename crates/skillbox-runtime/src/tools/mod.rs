//! The tools that a model calls, and the hooks that a host of any language can call in the same way.
//!
//! What the loader can answer by itself stands there, one verb one file. Here is what needs more: the way of a call
//! through policy and hooks to its answer, the run in the sandbox, and the verbs of hosts.

mod after_tool_call;
mod before_agent;
mod call;
mod error;
mod hook_outcome;
mod hook_run;
mod load;
mod outcome;
mod run;
mod wrap_tool_call;

pub use call::{HostVerb, ToolCall};
pub use error::ToolError;
pub use hook_outcome::{Carried, HookOutcome, HookRun};
pub use outcome::ToolOutcome;
