//! `batch`: many jobs of `true` in one batch, compared with the same runs without a batch and with `xargs -P`; submitting
//! a long list; and resuming a batch that is finished.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts programs")]

use std::fs;
use std::io::Write;
use std::num::NonZero;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::Value;
use skillbox_batch::{
    BadLines, BatchOptions, BatchRecord, BatchRun, ExistingResults, HaltRule, JobList, Progress, ResultDirectory,
    RetryPolicy, plan, run_batch,
};
use skillbox_executor::CancelToken;
use skillbox_model::{Digest, RunRequest};
use skillbox_runtime::{RequestDigests, Runtime};

use crate::bench_runtime::{BenchRuntime, SandboxMode};
use crate::report::{OutputOptions, Report};
use crate::target::{Bound, Target};

/// The measured turns of each candidate.
const ROUNDS: usize = 5;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Number of jobs of `true`, in all rounds together
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pub count: usize,
    /// Number of jobs that are submitted, and of finished jobs that are resumed
    #[arg(long, default_value_t = 100_000, value_name = "N")]
    pub listed: usize,
    /// Number of jobs that run at the same time; by default two per core
    #[arg(long, value_name = "N")]
    pub workers: Option<NonZero<usize>>,
    #[command(flatten)]
    pub output: OutputOptions,
}

pub(crate) fn measure(arguments: &Arguments) -> anyhow::Result<Report> {
    let bench = BenchRuntime::new(SandboxMode::Parked)?;
    let cores = std::thread::available_parallelism()?;
    let workers = arguments
        .workers
        .unwrap_or(cores.saturating_mul(NonZero::<usize>::MIN.saturating_add(1)));
    let round = (arguments.count / ROUNDS).max(1);
    let (mut batches, mut runs, mut spawns) = (Vec::new(), Vec::new(), Vec::new());
    let mut growth = Vec::new();
    run_jobs(&bench, &bench.directory().join("warm-up"), round.min(200), workers)?;
    for index in 0..ROUNDS {
        spawns.push(rate(round, || run_xargs(round, workers.get()))?);
        runs.push(rate(round, || run_without_batch(&bench, round, workers.get()))?);
        let before = resident_mebibytes()?;
        let out = bench.directory().join(format!("results-{index}"));
        batches.push(rate(round, || run_jobs(&bench, &out, round, workers))?);
        growth.push(resident_mebibytes()? - before);
    }
    let (batch_rate, run_rate, spawn_rate) = (median(batches), median(runs), median(spawns));
    let (submitted, resumed) = measure_long_list(&bench, arguments.listed, workers)?;
    let remark = format!(
        "{workers} at once on {cores} cores: {batch_rate:.0} jobs of a batch, {run_rate:.0} runs without one, and \
         {spawn_rate:.0} bare spawns of `xargs -P` per second"
    );
    let seconds = |subject: String, measured: Duration, limit| Target {
        subject,
        reference: "a fixed time".to_owned(),
        measured: Some(measured.as_secs_f64()),
        bound: Bound::SecondsAtMost(limit),
    };
    Ok(Report {
        remarks: vec![remark],
        targets: vec![
            Target {
                subject: "jobs of a batch per second".to_owned(),
                reference: "runs without a batch".to_owned(),
                measured: Some(batch_rate / run_rate),
                bound: Bound::RatioAtLeast(0.95),
            },
            Target {
                subject: "memory growth over a batch".to_owned(),
                reference: "a fixed size".to_owned(),
                measured: Some(growth.into_iter().fold(0.0, f64::max)),
                bound: Bound::MebibytesAtMost(32.0),
            },
            seconds(format!("submitting {} jobs", arguments.listed), submitted, 5.0),
            seconds(format!("resuming {} finished jobs", arguments.listed), resumed, 2.0),
        ],
        tables: Vec::new(),
    })
}

fn rate(count: usize, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let begin = Instant::now();
    work()?;
    Ok(count as f64 / begin.elapsed().as_secs_f64())
}

/// Runs one batch of `true`, from the list to the summary.
fn run_jobs(bench: &BenchRuntime, out: &Path, count: usize, workers: NonZero<usize>) -> anyhow::Result<()> {
    let jobs = read_list(bench.runtime(), count)?;
    let (directory, existing) = ResultDirectory::open(out, &record(count), false)?;
    let executed = complete(bench.runtime(), &jobs, &directory, &existing, workers)?;
    ensure!(executed == count, "{executed} of {count} jobs ran");
    Ok(())
}

/// Runs what is left of a batch and returns the number of jobs that ran.
fn complete(
    runtime: &Runtime,
    jobs: &JobList,
    directory: &ResultDirectory,
    existing: &ExistingResults,
    workers: NonZero<usize>,
) -> anyhow::Result<usize> {
    let options = BatchOptions {
        jobs: workers,
        retry: RetryPolicy::default(),
        halt: HaltRule::Never,
        timeout: None,
        rerun_failed: false,
    };
    let batch = BatchRun {
        runtime,
        jobs,
        options: &options,
        progress: &Progress::default(),
        cancel: &CancelToken::new()?,
    };
    let completed = run_batch(batch, directory, existing, plan(batch, existing))?;
    ensure!(completed.summary.failed == 0, "{:?}", completed.summary.failed_jobs);
    ensure!(completed.summary.ok == jobs.len(), "{:?}", completed.summary);
    Ok(completed.summary.executed)
}

fn record(count: usize) -> BatchRecord {
    BatchRecord::new(b"bench", "jobs of true".to_owned(), count)
}

fn read_list(runtime: &Runtime, count: usize) -> anyhow::Result<JobList> {
    let line = "{\"skill\":\"small\",\"command\":\"true\"}\n";
    let catalog = runtime.catalog();
    let check = |request: &RunRequest| runtime.check_request(request, &catalog);
    Ok(JobList::from_lines(
        line.repeat(count).into_bytes(),
        "jobs",
        BadLines::Refuse,
        &check,
    )?)
}

/// The same runs, each worker one after the other.
fn run_without_batch(bench: &BenchRuntime, count: usize, workers: usize) -> anyhow::Result<()> {
    let next = AtomicUsize::new(0);
    let work = || -> anyhow::Result<()> {
        while next.fetch_add(1, Ordering::Relaxed) < count {
            bench.run("true")?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        started.into_iter().try_for_each(|thread| {
            thread
                .join()
                .unwrap_or_else(|_| Err(anyhow::anyhow!("a worker panicked")))
        })
    })
}

/// Runs `bash -c true` for each line of a list, without isolation and without results.
fn run_xargs(count: usize, workers: usize) -> anyhow::Result<()> {
    let mut child = Command::new("xargs")
        .args(["-P", &workers.to_string(), "-n", "1", "bash", "-c", "true"])
        .stdin(Stdio::piped())
        .spawn()
        .context("cannot start xargs")?;
    let mut lines = child.stdin.take().context("xargs has no standard input")?;
    for index in 0..count {
        writeln!(lines, "{index}")?;
    }
    drop(lines);
    ensure!(child.wait()?.success(), "xargs failed");
    Ok(())
}

/// Measures reading and checking a long list, and resuming it when every job has a result.
fn measure_long_list(
    bench: &BenchRuntime,
    count: usize,
    workers: NonZero<usize>,
) -> anyhow::Result<(Duration, Duration)> {
    let runtime = bench.runtime();
    let begin = Instant::now();
    let jobs = read_list(runtime, count)?;
    let submitted = begin.elapsed();
    let out = bench.directory().join("finished");
    drop(ResultDirectory::open(&out, &record(count), false)?);
    write_results(bench, &jobs, &out)?;
    drop(jobs);
    let begin = Instant::now();
    let jobs = read_list(runtime, count)?;
    let (directory, existing) = ResultDirectory::open(&out, &record(count), true)?;
    let executed = complete(runtime, &jobs, &directory, &existing, workers)?;
    let resumed = begin.elapsed();
    ensure!(executed == 0, "{executed} finished jobs ran again");
    Ok((submitted, resumed))
}

/// Gives every job the result of a real run, under its own id and key.
fn write_results(bench: &BenchRuntime, jobs: &JobList, out: &Path) -> anyhow::Result<()> {
    let real = fs::read_to_string(bench.directory().join("results-0/results.jsonl"))?;
    let mut line: Value = serde_json::from_str(real.lines().next().context("no result")?)?;
    let runtime = bench.runtime();
    let (digests, catalog, cancel) = (RequestDigests::new(runtime), runtime.catalog(), CancelToken::new()?);
    let mut text = Vec::new();
    for job in (0..jobs.len()).map_while(|index| jobs.get(index)) {
        let request = RunRequest {
            omit_inline_content: true,
            ..job.request
        };
        let key: Digest = digests.digest(&request, &catalog, &cancel)?.key;
        line["id"] = Value::from(job.id.as_str());
        line["key"] = Value::from(key.to_string());
        serde_json::to_writer(&mut text, &line)?;
        text.push(b'\n');
    }
    Ok(fs::write(out.join("results.jsonl"), text)?)
}

/// The memory of this process that is in use.
fn resident_mebibytes() -> anyhow::Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line
        .and_then(|line| line.split_whitespace().next())
        .context("no VmRSS")?;
    Ok(kibibytes.parse::<f64>()? / 1024.0)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
