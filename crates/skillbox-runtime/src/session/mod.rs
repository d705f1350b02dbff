//! Sessions: what is kept between runs, on disk, for the command line and for a restarted server alike.

mod error;
mod open;
mod owned;
mod pins;
mod record;
mod remembered;
mod scratch;
mod store;
mod uses;

pub use error::SessionError;
pub use open::{OpenSession, RunLock};
pub use owned::Ownership;
pub use pins::Pins;
pub use record::SessionRecord;
pub(crate) use remembered::Remembered;
pub(crate) use scratch::Scratch;
pub use store::SessionStore;
