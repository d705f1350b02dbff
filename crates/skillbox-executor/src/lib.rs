//! Stages, runs and collects one job: from a parsed request to what came back.
//!
//! `job` turns the request into types; `snapshot` freezes the skill; `workspace` is where inputs go in and outputs
//! come out; `local` runs it in the kernel's sandbox. Every step takes the value of the one before. This crate
//! does not know what a skill means, decides no policy and prints nothing.

mod capture;
pub mod job;
pub mod snapshot;
pub mod workspace;

pub use capture::{Capture, Captured};
