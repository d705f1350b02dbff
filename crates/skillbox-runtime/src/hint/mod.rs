//! Hints: why a run failed, and the one option, setting or grant that changes it. Pure functions over the finished run.

mod cause_text;
mod find;
mod finished_run;
mod limit_text;
mod package_names;
mod stderr_patterns;

pub(crate) use find::find_hint;
pub(crate) use finished_run::FinishedRun;
