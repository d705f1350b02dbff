//! Dialects: the tool names, messages and state keys of other agent systems.

mod kind;
mod messages;
mod state_keys;

pub use kind::{Dialect, DialectError};
pub use messages::executor_not_configured;
pub use state_keys::{changed_keys, state_keys};
