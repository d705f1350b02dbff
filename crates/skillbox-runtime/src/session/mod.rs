//! Sessions: the state on disk between runs, shared by the command line and servers, across restarts.

mod error;
mod file_cache;
mod forks;
mod image;
mod open;
mod ownership;
mod pins;
mod record;
mod scratch;
mod state_store;
mod store;
mod usage;

pub use error::SessionError;
pub use forks::Fork;
pub(crate) use forks::{
    ForkOrigin, MAX_OPEN_FORKS, add_fork, list_forks, mark_returned, read_fork_origin, remove_fork,
    try_change_fork_origin, write_fork_origin,
};
pub use open::{NewWorkspace, OpenSession, RunLock};
pub use ownership::Ownership;
pub use pins::Pins;
pub use record::SessionRecord;
pub(crate) use scratch::ScratchSession;
pub(crate) use state_store::{Persist, StateStore, read_skills_state};
pub use store::SessionStore;
