//! Freezing skills: what was hashed is what runs.

mod copy;
mod frozen;
mod watched;

pub(crate) use frozen::Frozen;
