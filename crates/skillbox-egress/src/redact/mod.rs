//! Removes the values of secrets from everything that leaves a run.

mod encodings;
mod pattern_set;
mod redactor;
mod stream;
mod unescape;
mod view;

#[cfg(test)]
mod property_tests;

pub use redactor::{Redactor, RedactorError};
pub use stream::RedactStream;
