//! The subcommands of `skillbox batch`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use skillbox_batch::BatchName;

use super::arguments::BatchRunArgs;
use super::queue_arguments::QueueArgs;
use super::{queue_run, queue_state, results, run as run_command, status};
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
    "skillbox batch status nightly --queue nats://queue:4222 --artifacts s3://bucket",
    "skillbox batch cancel nightly --queue nats://queue:4222 --artifacts s3://bucket",
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
        /// Directory of `batch run --out`, or with --queue the name of a batch
        #[arg(value_name = "DIR|NAME")]
        batch: PathBuf,
        #[command(flatten)]
        queue: QueueArgs,
    },
    /// Show the results of a batch; with --json, one line of JSON for each job
    Results {
        /// Directory of `batch run --out`, or the name of a batch in --artifacts
        #[arg(value_name = "DIR|NAME")]
        batch: PathBuf,
        /// Only failed jobs
        #[arg(long)]
        failed: bool,
    },
    /// Cancel a batch on a queue: queued jobs never run, running ones are killed
    Cancel {
        /// Name of the batch
        #[arg(value_name = "NAME")]
        batch: BatchName,
        #[command(flatten)]
        queue: QueueArgs,
    },
}

/// Runs the subcommand.
pub fn run(args: &BatchArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    match &args.verb {
        Verb::Run(args) if args.queue.is_given() => queue_run::run(args, context, terminal),
        Verb::Run(args) => run_command::run(args, context, terminal),
        Verb::Status { batch, queue } if queue.is_given() => {
            print_output(&queue_state::status(batch, queue, context)?, context, terminal)
        }
        Verb::Status { batch, .. } => print_output(&status::read(batch)?, context, terminal),
        Verb::Results { batch, failed } if !batch.is_dir() && context.settings.artifacts.is_some() => {
            queue_state::print_results(batch, *failed, context, terminal)
        }
        Verb::Results { batch, failed } => results::print(batch, *failed, context, terminal),
        Verb::Cancel { batch, queue } => print_output(&queue_state::cancel(batch, queue, context)?, context, terminal),
    }
}
