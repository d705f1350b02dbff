//! `skillbox worker`: runs the jobs of batches on a queue, on this host.

use std::num::NonZero;
use std::time::Duration;

use clap::Args;
use skillbox_batch::{WorkerOptions, work};
use skillbox_executor::CancelToken;
use skillbox_model::{ErrorCode, ExitCode};
use skillbox_sandbox::Profile;

use super::batch::{QueueArgs, queue_failure};
use super::isolation_warning;
use crate::context::Context;
use crate::failure::Failure;
use crate::interrupt;
use crate::render::{Span, Terminal, Verbosity};
use crate::runtime_setup;
use crate::settings::{HostFlags, TrustFlags};

/// The largest number of jobs that run at the same time, which fits the usual limit of open files.
const MAX_JOBS_AT_ONCE: u64 = 256;

/// Run the jobs of batches on a queue
///
/// The worker takes jobs that `skillbox batch run --queue` submitted, until SIGTERM or SIGINT; running jobs end first. A
/// skill that this host lacks comes from the artifact store. The trust rules, profiles and limits of this host apply to
/// every job.
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox worker --queue nats://queue:4222 --artifacts s3://bucket/skillbox",
    "skillbox worker --queue tls://a:4222,tls://b:4222 --queue-creds worker.creds \\",
    "    --artifacts s3://bucket/skillbox --jobs 8 --trust approved",
))]
pub struct WorkerArgs {
    #[command(flatten)]
    queue: QueueArgs,
    /// Number of jobs that run at the same time; by default one for each core
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_JOBS_AT_ONCE))]
    jobs: Option<u64>,
    /// Exit after this long without a job
    #[arg(long, value_name = "SECONDS")]
    exit_when_idle: Option<u64>,
    #[command(flatten)]
    host: HostFlags,
    #[command(flatten)]
    pub trust: TrustFlags,
}

/// Runs the command.
pub fn run(args: &WorkerArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let (host, _) = args.host.resolve(context.layers)?;
    let cores = std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    let jobs = args
        .jobs
        .and_then(|jobs| NonZero::new(usize::try_from(jobs).ok()?))
        .unwrap_or(cores);
    let inputs_directory = context.settings.state_dir.join("fetched-inputs");
    std::fs::create_dir_all(&inputs_directory).map_err(|error| {
        let message = format!("cannot create {}: {error}", inputs_directory.display());
        Failure::new(ErrorCode::Storage, message)
    })?;
    let (queue, store) = args.queue.connect(context)?;
    let directories = [inputs_directory.clone()];
    let runtime = runtime_setup::open_for_batch(context, &host, &directories, jobs.get(), terminal)?;
    let is_unconfined = runtime
        .profiles()
        .get(&host.profile)
        .is_some_and(Profile::is_unconfined);
    isolation_warning::print_if_unconfined(is_unconfined && host.allow_unconfined, isolation_warning::RUN, terminal)?;
    let stop = CancelToken::new().map_err(|error| Failure::from_error(ErrorCode::Internal, &error))?;
    interrupt::cancel_on_signal(&stop);
    let options = WorkerOptions {
        jobs,
        only: args.queue.name.clone(),
        exit_when_idle: args.exit_when_idle.map(Duration::from_secs),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        skills_directory: context.settings.state_dir.join("fetched-skills"),
        inputs_directory,
    };
    let summary = work(&runtime, &queue, &store, &options, &stop).map_err(queue_failure)?;
    if context.as_json {
        terminal.print_json(&summary)?;
    } else if context.verbosity > Verbosity::Quiet {
        let mut page = terminal.page();
        page.line(&[Span::plain(format!(
            "{}: {} jobs finished",
            summary.worker, summary.finished
        ))]);
        terminal.print(page)?;
    }
    Ok(ExitCode::OK)
}
