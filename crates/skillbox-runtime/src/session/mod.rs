//! Sessions: what is kept between runs, on disk, for the command line and for a restarted server alike.

mod error;
mod open;
mod pins;
mod record;
mod scratch;
mod store;

pub use error::SessionError;
pub use open::{OpenSession, RunLock};
pub use pins::Pins;
pub use record::SessionRecord;
pub(crate) use scratch::Scratch;
pub use store::SessionStore;
