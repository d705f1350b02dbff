//! `docker`: the cost of a run in a container compared with the Docker client, with the same image and command.
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
use skillbox_sandbox::{Profiles, Unconfined};

/// The limit of a run in an idle container, as a multiple of `docker run`.
const WARM_LIMIT: f64 = 1.0 / 20.0;
/// The limit of a run that creates its container.
const COLD_LIMIT: f64 = 1.2;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Number of bursts
    #[arg(long, default_value_t = 8, value_name = "N")]
    rounds: usize,
    /// Size of the pool, and number of runs of a burst
    #[arg(long, default_value_t = 4, value_name = "N")]
    pool: usize,
    /// The daemon
    #[arg(long, default_value = "unix:///var/run/docker.sock", value_name = "ADDRESS")]
    host: String,
    /// The image of runs
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
    let warm = Server::new(directory.path().join("warm"), arguments, arguments.pool)?;
    let cold = Server::new(directory.path().join("cold"), arguments, 0)?;
    let container = RunningContainer::start(arguments)?;
    let mut times = Timings::default();
    // The first run of each candidate fills caches.
    cold.run()?;
    container.exec(arguments)?;
    docker_run(arguments)?;
    for _ in 0..arguments.rounds {
        warm.wait_until_full(arguments.pool)?;
        for _ in 0..arguments.pool {
            times.warm.push(timed(|| warm.run())?);
        }
        // The pool is full again before the other candidates are measured.
        warm.wait_until_full(arguments.pool)?;
        times.cold.push(timed(|| cold.run())?);
        times.docker_run.push(timed(|| docker_run(arguments))?);
        times.docker_exec.push(timed(|| container.exec(arguments))?);
    }
    times.print(arguments)
}

fn timed(work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Duration> {
    let begin = Instant::now();
    work()?;
    Ok(begin.elapsed())
}

#[derive(Default)]
struct Timings {
    warm: Vec<Duration>,
    cold: Vec<Duration>,
    docker_run: Vec<Duration>,
    docker_exec: Vec<Duration>,
}

impl Timings {
    fn print(mut self, arguments: &Arguments) -> anyhow::Result<()> {
        let rows = [
            ("skill_run, idle container", &mut self.warm),
            ("skill_run, new container", &mut self.cold),
            ("docker run --rm --network none", &mut self.docker_run),
            ("docker exec, running container", &mut self.docker_exec),
        ];
        let rows = rows.map(|(name, times)| {
            times.sort_unstable();
            let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1e3;
            (name, at(50), at(95))
        });
        let reference = rows[2].1;
        let (warm, cold) = (rows[0].1 / reference, rows[1].1 / reference);
        let is_met = warm <= WARM_LIMIT && cold <= COLD_LIMIT;
        if arguments.json {
            let ways = rows.map(|(name, p50, p95)| json!({"name": name, "p50_ms": p50, "p95_ms": p95}));
            println!("{:#}", json!({"ways": ways, "warm": warm, "cold": cold, "met": is_met}));
        } else {
            println!("`true` in a container, bursts of {}", arguments.pool);
            println!("  {:<34}{:>12}{:>12}", "", "p50", "p95");
            for (name, p50, p95) in rows {
                println!("  {name:<34}{p50:>9.2} ms{p95:>9.2} ms");
            }
            let verdict = |ratio: f64, at_most: f64| if ratio <= at_most { "met" } else { "MISSED" };
            println!(
                "  warm is {warm:.3}x docker run (at most {WARM_LIMIT:.3}x): {}",
                verdict(warm, WARM_LIMIT)
            );
            println!(
                "  cold is {cold:.3}x docker run (at most {COLD_LIMIT:.3}x): {}",
                verdict(cold, COLD_LIMIT)
            );
        }
        ensure!(is_met || !arguments.check, "a target was missed");
        Ok(())
    }
}

/// The runtime of a server.
struct Server {
    runtime: Runtime,
    docker: Arc<DockerExecutor>,
}

impl Server {
    fn new(place: PathBuf, arguments: &Arguments, pool: usize) -> anyhow::Result<Self> {
        let skill = place.join("skills/small");
        fs::create_dir_all(skill.join("scripts"))?;
        fs::write(
            skill.join("SKILL.md"),
            "---\nname: small\ndescription: For measuring.\n---\n",
        )?;
        fs::write(skill.join("scripts/one.py"), "print(1)\n")?;
        let docker = Arc::new(DockerExecutor::new(DockerOptions {
            host: arguments.host.clone(),
            image: arguments.image.clone(),
            pool,
            scratch: place.join("scratch"),
            unconfined: Unconfined::Refuse,
        }));
        let profiles = Profiles::shipped();
        if pool > 0 {
            docker.fill_pool(profiles.get("default").context("the default profile")?)?;
        }
        let source = Source::Directory {
            path: place.join("skills"),
            scope: Scope::Project,
        };
        let repository = Arc::new(Repository::open(vec![source], ScanOptions::default()));
        let settings = RuntimeSettings {
            default_executor: ExecutorKind::Docker,
            watch_skills: true,
            ..RuntimeSettings::at(place.join("state"))
        };
        let executors = vec![Executor::Docker(docker.clone())];
        Ok(Self {
            runtime: Runtime::new(repository, profiles, executors, settings),
            docker,
        })
    }

    fn wait_until_full(&self, size: usize) -> anyhow::Result<()> {
        let end = Instant::now() + Duration::from_secs(60);
        while self.docker.idle_containers() < size {
            ensure!(Instant::now() < end, "the pool does not fill");
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
        };
        let report = self.runtime.run(&request, context)?;
        ensure!(report.exit_code == Some(0), "true failed");
        Ok(())
    }
}

fn docker(arguments: &Arguments, words: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("docker");
    command
        .args(words)
        .env("DOCKER_HOST", &arguments.host)
        .stdin(Stdio::null());
    let output = command.output().context("the docker client does not start")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn docker_run(arguments: &Arguments) -> anyhow::Result<()> {
    let image = arguments.image.as_str();
    let words = [
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
    docker(arguments, &words).map(drop)
}

/// A running container for `docker exec`.
struct RunningContainer<'a> {
    id: String,
    arguments: &'a Arguments,
}

impl<'a> RunningContainer<'a> {
    fn start(arguments: &'a Arguments) -> anyhow::Result<Self> {
        let image = arguments.image.as_str();
        let words = [
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
        let id = docker(arguments, &words)?;
        Ok(Self { id, arguments })
    }

    fn exec(&self, arguments: &Arguments) -> anyhow::Result<()> {
        docker(arguments, &["exec", &self.id, "bash", "-c", "true"]).map(drop)
    }
}

impl Drop for RunningContainer<'_> {
    fn drop(&mut self) {
        // The container ends by itself within an hour.
        let _removed = docker(self.arguments, &["rm", "--force", &self.id]);
    }
}
