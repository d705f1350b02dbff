//! `docker`: the cost of a run in a container, compared with the Docker client for the same image and command.
#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]
#![expect(clippy::disallowed_methods, reason = "a benchmark starts programs")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::json;
use skillbox_executor::{CancelToken, DockerExecutor, DockerOptions, EventSink, Executor};
use skillbox_model::{ExecutorKind, RunRequest};
use skillbox_repository::{Repository, ScanOptions, Scope, Source};
use skillbox_runtime::{RunContext, Runtime, RuntimeSettings};
use skillbox_sandbox::{Profiles, UnconfinedPolicy};

/// The limit for a warm run, in an idle container of the pool, as a multiple of `docker run`.
const WARM_RATIO_LIMIT: f64 = 1.0 / 20.0;
/// The limit for a cold run, which creates its container, as a multiple of `docker run`.
const COLD_RATIO_LIMIT: f64 = 1.2;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Number of rounds, each with one burst of runs
    #[arg(long, default_value_t = 8, value_name = "N")]
    rounds: usize,
    /// Size of the container pool and number of runs in a burst
    #[arg(long, default_value_t = 4, value_name = "N")]
    pool: usize,
    /// Address of the Docker daemon
    #[arg(long, default_value = "unix:///var/run/docker.sock", value_name = "ADDRESS")]
    host: String,
    /// Image of the containers
    #[arg(long, default_value = concat!("skillbox-runner:", env!("CARGO_PKG_VERSION")), value_name = "IMAGE")]
    image: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Fail when a target is missed
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let directory = tempfile::Builder::new().prefix("skillbox-bench-").tempdir()?;
    let warm = DockerRuntime::new(directory.path().join("warm"), arguments, arguments.pool)?;
    let cold = DockerRuntime::new(directory.path().join("cold"), arguments, 0)?;
    let container = RunningContainer::start(arguments)?;
    let mut times = DockerTimings::default();
    // The first, unmeasured run of each candidate fills caches.
    cold.run()?;
    container.exec()?;
    docker_run(arguments)?;
    for _ in 0..arguments.rounds {
        warm.wait_until_full(arguments.pool)?;
        for _ in 0..arguments.pool {
            times.warm.push(timed(|| warm.run())?);
        }
        // The pool is refilled before the other candidates are measured, so that it does not slow them.
        warm.wait_until_full(arguments.pool)?;
        times.cold.push(timed(|| cold.run())?);
        times.docker_run.push(timed(|| docker_run(arguments))?);
        times.docker_exec.push(timed(|| container.exec())?);
    }
    times.print(arguments)
}

fn timed(work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Duration> {
    let begin = Instant::now();
    work()?;
    Ok(begin.elapsed())
}

#[derive(Default)]
struct DockerTimings {
    warm: Vec<Duration>,
    cold: Vec<Duration>,
    docker_run: Vec<Duration>,
    docker_exec: Vec<Duration>,
}

impl DockerTimings {
    fn print(mut self, arguments: &Arguments) -> anyhow::Result<()> {
        let rows = [
            ("skill_run, idle container", &mut self.warm),
            ("skill_run, new container", &mut self.cold),
            ("docker run --rm --network none", &mut self.docker_run),
            ("docker exec, running container", &mut self.docker_exec),
        ];
        let rows = rows.map(|(name, times)| {
            times.sort_unstable();
            let percentile_ms =
                |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1e3;
            (name, percentile_ms(50), percentile_ms(95))
        });
        let reference = rows[2].1;
        let (warm, cold) = (rows[0].1 / reference, rows[1].1 / reference);
        let is_met = warm <= WARM_RATIO_LIMIT && cold <= COLD_RATIO_LIMIT;
        if arguments.json {
            let candidates = rows.map(|(name, p50, p95)| json!({"name": name, "p50_ms": p50, "p95_ms": p95}));
            println!(
                "{:#}",
                json!({"ways": candidates, "warm": warm, "cold": cold, "met": is_met})
            );
        } else {
            println!("`true` in a container, bursts of {}", arguments.pool);
            println!("  {:<34}{:>12}{:>12}", "", "p50", "p95");
            for (name, p50, p95) in rows {
                println!("  {name:<34}{p50:>9.2} ms{p95:>9.2} ms");
            }
            let verdict = |ratio: f64, at_most: f64| if ratio <= at_most { "met" } else { "MISSED" };
            println!(
                "  warm is {warm:.3}x docker run (at most {WARM_RATIO_LIMIT:.3}x): {}",
                verdict(warm, WARM_RATIO_LIMIT)
            );
            println!(
                "  cold is {cold:.3}x docker run (at most {COLD_RATIO_LIMIT:.3}x): {}",
                verdict(cold, COLD_RATIO_LIMIT)
            );
        }
        ensure!(is_met || !arguments.check, "a target was missed");
        Ok(())
    }
}

/// A runtime with the Docker executor, as in a server.
struct DockerRuntime {
    runtime: Runtime,
    docker: Arc<DockerExecutor>,
}

impl DockerRuntime {
    fn new(directory: PathBuf, arguments: &Arguments, pool_size: usize) -> anyhow::Result<Self> {
        let skill = directory.join("skills/small");
        fs::create_dir_all(skill.join("scripts"))?;
        fs::write(
            skill.join("SKILL.md"),
            "---\nname: small\ndescription: For measuring.\n---\n",
        )?;
        fs::write(skill.join("scripts/one.py"), "print(1)\n")?;
        let docker = Arc::new(DockerExecutor::new(DockerOptions {
            host: arguments.host.clone(),
            image: arguments.image.clone(),
            pool_size,
            scratch: directory.join("scratch"),
            unconfined: UnconfinedPolicy::Refuse,
            skills_roots: Vec::new(),
        }));
        let profiles = Profiles::shipped();
        if pool_size > 0 {
            docker.fill_pool(profiles.get("default").context("the default profile is missing")?)?;
        }
        let source = Source::Directory {
            path: directory.join("skills"),
            scope: Scope::Project,
        };
        let repository = Arc::new(Repository::open(vec![source], ScanOptions::default()));
        let settings = RuntimeSettings {
            default_executor: ExecutorKind::Docker,
            watch_skills: true,
            ..RuntimeSettings::with_state_dir(directory.join("state"))
        };
        let executors = vec![Executor::Docker(docker.clone())];
        Ok(Self {
            runtime: Runtime::new(repository, profiles, executors, settings),
            docker,
        })
    }

    fn wait_until_full(&self, size: usize) -> anyhow::Result<()> {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.docker.idle_containers() < size {
            ensure!(Instant::now() < deadline, "the container pool was not full after 60 s");
            std::thread::sleep(Duration::from_millis(20));
        }
        // The daemon may still be starting the last container.
        std::thread::sleep(Duration::from_millis(300));
        Ok(())
    }

    fn run(&self) -> anyhow::Result<()> {
        let request = RunRequest {
            skill: "small".to_owned(),
            command: Some("true".to_owned()),
            ..RunRequest::default()
        };
        let context = RunContext {
            session: None,
            events: EventSink::silent(),
            cancel: CancelToken::new()?,
            export: None,
            origin: Default::default(),
            keep_files: false,
        };
        let report = self.runtime.run(&request, context)?;
        ensure!(report.exit_code == Some(0), "`true` failed");
        Ok(())
    }
}

fn docker(arguments: &Arguments, args: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("docker");
    command
        .args(args)
        .env("DOCKER_HOST", &arguments.host)
        .stdin(Stdio::null());
    let output = command.output().context("cannot start the Docker client")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn docker_run(arguments: &Arguments) -> anyhow::Result<()> {
    let image = arguments.image.as_str();
    let args = [
        "run",
        "--rm",
        "--network",
        "none",
        "--entrypoint",
        "bash",
        image,
        "-c",
        "true",
    ];
    docker(arguments, &args).map(drop)
}

/// A running container for `docker exec`.
struct RunningContainer<'a> {
    id: String,
    arguments: &'a Arguments,
}

impl<'a> RunningContainer<'a> {
    fn start(arguments: &'a Arguments) -> anyhow::Result<Self> {
        let image = arguments.image.as_str();
        let args = [
            "run",
            "--rm",
            "--detach",
            "--network",
            "none",
            "--entrypoint",
            "sleep",
            image,
            "3600",
        ];
        let id = docker(arguments, &args)?;
        Ok(Self { id, arguments })
    }

    fn exec(&self) -> anyhow::Result<()> {
        docker(self.arguments, &["exec", &self.id, "bash", "-c", "true"]).map(drop)
    }
}

impl Drop for RunningContainer<'_> {
    fn drop(&mut self) {
        // If the removal fails, the container ends by itself within an hour.
        let _removed = docker(self.arguments, &["rm", "--force", &self.id]);
    }
}
