//! One agent's session: what it has loaded, where that is kept, and the hooks that a host calls.

mod options;
mod session;
mod state_keeper;

pub use options::{AgentOptions, ChangesEnter, CommandHooks};
pub use session::AgentSession;
pub(crate) use session::{Entry, Stepped};
pub(crate) use state_keeper::{Keep, kept_state};
