//! `skillbox batch`: many runs from one list of jobs, with results that survive a crash.

mod arguments;
mod command;
mod job_preview;
mod job_source;
mod progress_display;
mod queue_arguments;
mod queue_run;
mod queue_state;
mod results;
mod run;
mod status;
mod summary_page;

pub use command::{BatchArgs, run};
pub use queue_arguments::{QueueArgs, queue_failure};
