//! Signatures of skills: minisign over the manifest, and OpenSSF Model Signing bundles.

mod check;
mod error;
mod key_algorithms;
mod minisign_manifest;
mod oms;
mod publisher;

pub use check::{SignatureFiles, check_signatures};
pub use error::SignatureError;
pub use minisign_manifest::sign_manifest;
pub use oms::{BundleSigner, sign_bundle};
pub use publisher::{Publisher, SignatureMethod, SignatureStatus, ValidSignature};

/// The signed manifest of a skill, next to SKILL.md.
pub const MANIFEST_FILE: &str = "skill.manifest";
/// The minisign signature of the manifest.
pub const MANIFEST_SIGNATURE_FILE: &str = "skill.manifest.minisig";
/// The OpenSSF Model Signing bundle of a skill.
pub const BUNDLE_FILE: &str = "skill.oms.sig";
