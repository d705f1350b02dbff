//! The API, one file for each part of it.

mod agent;
mod artifacts;
mod files;
mod run_events;
mod runs;
mod service;
mod sessions;
mod skills;
mod table;
mod tools;

pub(crate) use table::{router, tables};
