//! The runs of this state directory: those that run now, in any process, and those that ended.

mod error;
mod kill_listener;
mod past_run;
mod private_files;
mod run_filter;
mod run_history;
mod running_runs;
mod segments;

pub use error::HistoryError;
pub use past_run::{PastRun, RunStatus, RunSummary};
pub use run_filter::{RunFilter, TenantFilter};
pub use run_history::{HistoryLimits, RunHistory, RunList};
pub(crate) use run_history::{RegisteredRun, RunStart};
