//! `skillbox search`: skills by what they are about.

use std::num::NonZeroUsize;

use clap::Args;
use serde::Serialize;
use skillbox_model::ExitCode;

use super::{Answer, Context};
use crate::catalogue;
use crate::render::{Page, Progress, Span, Terminal, Tone, plural};

/// Search skills by name, description, path and body, best first
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox search csv",
    "skillbox search \"chart of a table\" --limit 3",
    "skillbox search 数据 --json",
))]
pub struct SearchArgs {
    /// What to look for
    #[arg(required = true, num_args = 1.., value_name = "QUERY")]
    query: Vec<String>,
    /// Show at most this many
    #[arg(long, value_name = "N", default_value = "10")]
    limit: NonZeroUsize,
}
