//! The routes, one file for each part of the API.

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

pub(crate) use table::{route_tables, router};
