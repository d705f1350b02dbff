//! Versioned, content-addressed storage of what runs produce: the last room a file enters.
//!
//! Blobs are written once under their digest; a version of a name is claimed by creating its record, which
//! either succeeds or finds the number taken. That needs put-if-absent and nothing more, so the same store lies below
//! a local directory or in a bucket of an object store. A file is stored whole or not at all.
//! This crate never reads a workspace, never interprets content, and reads no variable of the environment: what an
//! object store asks for is handed in.

mod artifact_name;
mod blobs;
mod content;
mod error;
mod garbage;
mod layout;
mod local;
mod location;
mod object;
mod record;
mod store;

pub use artifact_name::{ArtifactName, ArtifactNameError, ArtifactRef, ArtifactRefError};
pub use content::{CheckedContent, RangeContent};
pub use error::{RemoteCause, StoreError, Trouble};
pub use garbage::Freed;
pub use location::{Bucket, Location, LocationError, Provider};
pub use object::BucketOptions;
pub use record::{Artifact, Origin, Scope};
pub use store::Store;
