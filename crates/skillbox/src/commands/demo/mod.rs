//! `skillbox demo`: a guided tour on the built-in skills, built from the output of the commands themselves.
//!
//! Every step does real work on skills unpacked into a temporary directory. A step with an unexpected result fails the
//! demo.

mod catalog_steps;
mod command;
mod disclosure_step;
mod run_steps;
mod tour;
mod unpack;

pub use command::{DemoArgs, run};
