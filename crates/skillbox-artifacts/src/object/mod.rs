//! The store in a bucket, spoken to on a thread of its own.

mod bridge;
mod client;
mod connection;
mod download;
mod keys;
mod options;
mod records;
mod remote_store;
mod upload;

pub(crate) use download::Download;
pub use options::BucketOptions;
pub(crate) use remote_store::RemoteStore;
