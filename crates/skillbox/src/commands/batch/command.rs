//! The subcommands of `skillbox batch`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::arguments::BatchRunArgs;
use super::{results, run as run_command, status};
use crate::commands::output::print_output;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::Terminal;

/// Run many jobs, with durable results that can be resumed
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox batch run jobs.jsonl --out results",
    "skillbox batch run --skill csv-report --each 'data/*.csv' --out results \\",
    "    -- 'python3 scripts/report.py {input} --json out/report.json'",
    "skillbox batch status results              counts, also while it runs",
    "skillbox batch results results --failed    the failed jobs, with reasons",
))]
pub struct BatchArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    Run(Box<BatchRunArgs>),
    /// Show how far a batch is
    Status {
        /// Directory of `batch run --out`
        directory: PathBuf,
    },
    /// Show the results of a batch; with --json, one line of JSON for each job
    Results {
        /// Directory of `batch run --out`
        directory: PathBuf,
        /// Only failed jobs
        #[arg(long)]
        failed: bool,
    },
}

/// Runs the subcommand.
pub fn run(args: &BatchArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    match &args.verb {
        Verb::Run(args) => run_command::run(args, context, terminal),
        Verb::Status { directory } => print_output(&status::read(directory)?, context, terminal),
        Verb::Results { directory, failed } => results::print(directory, *failed, context, terminal),
    }
}
