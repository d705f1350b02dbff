//! Tool calls: the tools of a model, and the methods that a host in any language calls by name.
//!
//! The loader implements the operations behind the tools. This module adds the policy, the hooks, the run in the sandbox
//! and the host's methods.

mod after_tool_call;
mod before_agent;
mod call_steps;
mod fire_event;
mod fork_skill;
mod hook_outcome;
mod load_for_user;
mod register_tools;
mod return_result;
mod run_hooks;
mod short_result;
mod skill_run;
mod tool_call;
mod tool_outcome;
mod wrap_tool_call;

pub use hook_outcome::{HookOutcome, HookRun, HookStatus};
pub use tool_call::{HostMethod, ToolCall};
pub use tool_outcome::ToolOutcome;
