//! Versioned, content-addressed storage for the outputs of runs.
//!
//! A blob is written once under its digest. A version of a name is claimed by creating its record, which fails if the
//! version exists. That needs only put-if-absent, so a store can be a local directory or a bucket of an object store. A
//! file is stored completely or not at all. This crate never reads a workspace, never interprets content, and reads no
//! environment variables: the caller passes the options of an object store.

mod artifact_name;
mod blobs;
mod bucket;
mod content;
mod endpoint;
mod error;
mod garbage;
mod layout;
mod local_objects;
mod local_store;
mod location;
mod object_key;
mod quota;
mod record;
mod remote_objects;
mod remote_store;
mod sparse_file;
mod store;
mod url_display;

pub use artifact_name::{ArtifactName, ArtifactNameError, ArtifactRef, ArtifactRefError};
pub use bucket::BucketOptions;
pub use content::{CheckedContent, RangeContent};
pub use endpoint::{Endpoint, EndpointError};
pub use error::{RemoteCause, RemoteFailure, StoreError};
pub use garbage::FreedContent;
pub use location::{Bucket, Location, LocationError, Provider};
pub use object_key::{ObjectKey, ObjectKeyError};
pub use record::{Artifact, ArtifactMetadata, Scope};
pub use store::Store;
