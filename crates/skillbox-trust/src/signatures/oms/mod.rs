//! OpenSSF Model Signing: a Sigstore bundle with an in-toto statement that lists the SHA-256 of each file.

mod bundle;
mod check_bundle;
mod sign_bundle;
mod statement;

pub(super) use check_bundle::check_bundle;
pub use sign_bundle::{BundleSigner, sign_bundle};
