//! The client of a bucket, with its event loop on a separate thread.

mod client;
pub(crate) mod connection;
mod download;
mod event_loop;
pub(crate) mod keys;
mod options;
pub(crate) mod records;
mod upload;

pub(crate) use download::Download;
pub use options::BucketOptions;
pub(crate) use upload::SpooledContent;
