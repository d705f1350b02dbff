//! The arguments of `skillbox batch run`.

use std::collections::BTreeSet;
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use skillbox_batch::{BatchOptions, FailureCause, HaltRule, Priority, RetryPolicy, SubmitOptions};

use super::queue_arguments::QueueArgs;

use crate::commands::secret_arguments::SecretArgs;
use crate::settings::HostFlags;

/// The largest number of jobs that run at the same time, which fits the usual limit of open files.
const MAX_JOBS_AT_ONCE: u64 = 256;

/// Run every job of a list, and only those without a result when resumed
///
/// The list is a file with one request of `skillbox run --request` in each line, and an optional `id`; or one job for
/// each file that --each matches. In the command, {input} is the path of the file in the sandbox, {name} its name,
/// {stem} its name without the extension, {index} its position.
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox batch run jobs.jsonl --out results --jobs 8 --retries 2",
    "skillbox batch run --skill csv-report --each 'data/*.csv' --out results \\",
    "    -- 'python3 scripts/report.py {input} --json out/report.json'",
    "skillbox batch run jobs.jsonl --out results --resume     run what is left",
    "skillbox batch run jobs.jsonl --dry-run                  show the first jobs",
    "skillbox batch run jobs.jsonl --artifacts s3://bucket/skillbox \\",
    "    --queue nats://queue:4222 --name nightly     on the hosts of `skillbox worker`",
))]
pub struct BatchRunArgs {
    /// File with one request in each line; - is standard input
    #[arg(value_name = "JOBS.jsonl", required_unless_present = "each", conflicts_with = "each")]
    pub jobs_file: Option<PathBuf>,
    #[command(flatten)]
    pub template: TemplateArgs,
    /// Directory for results and files
    #[arg(long, value_name = "DIR", required_unless_present_any = ["dry_run", "queue"])]
    pub out: Option<PathBuf>,
    /// Number of jobs that run at the same time; by default one for each core
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_JOBS_AT_ONCE))]
    jobs: Option<u64>,
    /// Run a failed job again, up to N times, each time after a longer delay
    #[arg(long, value_name = "N", default_value_t = 0)]
    retries: u32,
    /// Retry only these causes: exit, signal, timeout, memory, cpu, pids, disk, output, lost, export, refused, cancelled
    #[arg(long, value_name = "CAUSE,…", value_delimiter = ',', requires = "retries")]
    retry_on: Vec<FailureCause>,
    /// Stop early: never, or soon (running jobs end) or now (they are killed), with ,fail=N or ,fail=P%
    #[arg(long, value_name = "WHEN", default_value = "never")]
    halt: HaltRule,
    /// Timeout of each job that sets none
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
    /// Run only the jobs without a result in the directory of --out
    #[arg(long)]
    resume: bool,
    /// Like --resume, and run the failed jobs again
    #[arg(long)]
    resume_failed: bool,
    /// Leave out bad lines instead of refusing the batch
    #[arg(long)]
    pub skip_bad: bool,
    /// Show the first jobs and run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Priority of the jobs on the queue: high, normal or low
    #[arg(long, value_name = "PRIORITY", requires = "queue", default_value = "normal")]
    priority: Priority,
    /// Submit the jobs to the queue and do not wait for their results
    #[arg(long, requires = "queue", conflicts_with = "out")]
    pub detach: bool,
    /// Reassign the jobs of a worker that has not reported for this long
    #[arg(long, value_name = "SECONDS", requires = "queue", default_value_t = 30,
        value_parser = clap::value_parser!(u64).range(2..=3600))]
    ack_wait: u64,
    #[command(flatten)]
    pub queue: QueueArgs,
    #[command(flatten)]
    pub secrets: SecretArgs,
    #[command(flatten)]
    pub host: HostFlags,
}

/// The job of --each.
#[derive(Args, Debug)]
pub struct TemplateArgs {
    /// Make one job for each file that this pattern matches (quote it); repeatable
    #[arg(long, value_name = "PATTERN", requires = "skill")]
    pub each: Vec<String>,
    /// Skill of the jobs of --each
    #[arg(long, value_name = "NAME", requires = "each")]
    pub skill: Option<String>,
    /// One word: a shell command line; several words: a program and its arguments
    #[arg(last = true, value_name = "COMMAND", requires = "each")]
    pub command: Vec<String>,
    /// Mount the files of another skill read-only beside this one; repeatable
    #[arg(long, value_name = "NAME", requires = "each")]
    pub with_skill: Vec<String>,
    /// Run this script of the skill without a shell; words after -- are its arguments
    #[arg(long, value_name = "PATH", requires = "each")]
    pub script: Option<String>,
    /// Working directory: relative to the skill, or below $WORK_DIR, $OUTPUT_DIR, …
    #[arg(long, value_name = "DIR", requires = "each")]
    pub cwd: Option<String>,
    /// Set an environment variable; its value may have placeholders; repeatable
    #[arg(long, value_name = "K=V", requires = "each")]
    pub env: Vec<String>,
    /// Give every job another file or directory too; repeatable
    #[arg(long, value_name = "FROM[=TO][,link]", requires = "each")]
    pub input: Vec<String>,
    /// Keep the files that match, relative to the workspace; by default all of out/; repeatable
    #[arg(long, value_name = "GLOB", requires = "each")]
    pub output: Vec<String>,
}

impl BatchRunArgs {
    /// How the batch runs.
    pub fn options(&self) -> BatchOptions {
        let cores = std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
        let jobs = self.jobs.and_then(|jobs| NonZero::new(usize::try_from(jobs).ok()?));
        BatchOptions {
            jobs: jobs.unwrap_or(cores),
            retry: RetryPolicy {
                retries: self.retries,
                causes: self.retry_on.iter().copied().collect::<BTreeSet<_>>(),
            },
            halt: self.halt,
            timeout: self.timeout,
            rerun_failed: self.resume_failed,
        }
    }

    /// How the batch is submitted to a queue.
    pub fn submit_options(&self) -> SubmitOptions {
        SubmitOptions {
            resume: self.resumes(),
            priority: self.priority,
            ack_wait: Duration::from_secs(self.ack_wait),
        }
    }

    /// Whether results of an earlier invocation count.
    pub fn resumes(&self) -> bool {
        self.resume || self.resume_failed
    }
}
