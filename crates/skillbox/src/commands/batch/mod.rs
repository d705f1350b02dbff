//! `skillbox batch`: many runs from one list of jobs, with results that survive a crash.

mod arguments;
mod command;
mod job_preview;
mod job_source;
mod progress_display;
mod results;
mod run;
mod status;
mod summary_page;

pub use command::{BatchArgs, run};
