//! Secrets of runs: who has them, how the script gets them, and that their values leave a run nowhere.

mod grants;
mod hostile_scripts;
mod placeholders;
mod server;
mod sinks;
mod sources;
mod support;
