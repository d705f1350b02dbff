//! Versioned, content-addressed storage of what runs produce: the last room a file enters.
//!
//! Blobs are written once under their digest; a version of a name is claimed by creating its record, which
//! either succeeds or finds the number taken. Nothing is ever changed in place, so the layout carries over to
//! object stores that know put-if-absent and nothing more. A file is stored whole or not at all.
//! This crate never reads a workspace and never interprets content.

mod artifact_name;
mod checked_content;
mod layout;
mod record;
mod store;

pub use artifact_name::{ArtifactName, ArtifactNameError, ArtifactRef, ArtifactRefError};
pub use checked_content::CheckedContent;
pub use record::{Artifact, Origin, Scope};
pub use store::{Store, StoreError};
