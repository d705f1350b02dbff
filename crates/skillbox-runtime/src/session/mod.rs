//! Sessions: what is kept between runs, on disk, for the command line and for a restarted server alike.

mod error;
mod open;
mod pins;
mod record;
mod store;

pub use error::SessionError;
pub use open::{OpenSession, RunLock};
pub use pins::Pins;
pub use record::SessionRecord;
pub use store::SessionStore;
