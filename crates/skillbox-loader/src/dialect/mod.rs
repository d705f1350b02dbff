//! Dialects: the tool names, messages and state keys of other agent systems.

mod dialects;
mod messages;
mod render_state;

pub use dialects::{Dialect, DialectError};
pub use render_state::{render_state, render_state_changes};
