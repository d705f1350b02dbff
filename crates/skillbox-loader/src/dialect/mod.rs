//! Dialects: the names, texts and state keys of the systems that people come from.

mod kind;
mod messages;
mod state_keys;

pub use kind::{Dialect, DialectError};
pub use messages::executor_not_configured;
pub use state_keys::{changed_keys, state_keys};
