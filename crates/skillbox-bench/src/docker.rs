//! `docker`: what a run in a container costs beside the ordinary client, on the same image with the same command.
#![expect(clippy::print_stdout, reason = "a measuring program prints what it measured")]
#![expect(clippy::disallowed_methods, reason = "a measuring program starts things")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::json;
use skillbox_executor::{Cancel, DockerExecutor, DockerOptions, EventSink, Executor};
use skillbox_model::{ExecutorKind, RunRequest};
use skillbox_repository::{Repository, ScanOptions, Scope, Source};
use skillbox_runtime::{RunContext, Runtime, RuntimeSettings};
use skillbox_sandbox::{Profiles, Unconfined};

/// What a run that finds a container waiting may cost, against `docker run`.
const WARM_AT_MOST: f64 = 1.0 / 20.0;
/// What a run that has to make its container may cost.
const COLD_AT_MOST: f64 = 1.2;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many bursts are measured
    #[arg(long, default_value_t = 8, value_name = "N")]
    rounds: usize,
    /// How many containers wait, and how many runs a burst has
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
    let bystander = Bystander::start(arguments)?;
    let mut times = Times::default();
    // The first of each pays for what stays.
    cold.run()?;
    bystander.exec(arguments)?;
    docker_run(arguments)?;
    for _ in 0..arguments.rounds {
        warm.wait_until_full(arguments.pool)?;
        for _ in 0..arguments.pool {
            times.warm.push(timed(|| warm.run())?);
        }
        // What the pool does to fill itself up again is nobody else's cost.
        warm.wait_until_full(arguments.pool)?;
        times.cold.push(timed(|| cold.run())?);
        times.docker_run.push(timed(|| docker_run(arguments))?);
        times.docker_exec.push(timed(|| bystander.exec(arguments))?);
    }
    times.tell(arguments)
}

fn timed(work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Duration> {
    let begin = Instant::now();
    work()?;
    Ok(begin.elapsed())
}

#[derive(Default)]
struct Times {
    warm: Vec<Duration>,
    cold: Vec<Duration>,
    docker_run: Vec<Duration>,
    docker_exec: Vec<Duration>,
}

impl Times {
    fn tell(mut self, arguments: &Arguments) -> anyhow::Result<()> {
        let rows = [
            ("skill_run, a container waits", &mut self.warm),
            ("skill_run, a container is made", &mut self.cold),
            ("docker run --rm --network none", &mut self.docker_run),
            ("docker exec into a warm one", &mut self.docker_exec),
        ];
        let rows = rows.map(|(name, times)| {
            times.sort_unstable();
            let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1e3;
            (name, at(50), at(95))
        });
        let yardstick = rows[2].1;
        let (warm, cold) = (rows[0].1 / yardstick, rows[1].1 / yardstick);
        let is_met = warm <= WARM_AT_MOST && cold <= COLD_AT_MOST;
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
                "  warm is {warm:.3}x docker run (at most {WARM_AT_MOST:.3}x): {}",
                verdict(warm, WARM_AT_MOST)
            );
            println!(
                "  cold is {cold:.3}x docker run (at most {COLD_AT_MOST:.3}x): {}",
                verdict(cold, COLD_AT_MOST)
            );
        }
        ensure!(is_met || !arguments.check, "a target was missed");
        Ok(())
    }
}

/// A runtime as a server has it.
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
            docker.warm(profiles.get("default").context("the default profile")?)?;
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
        while self.docker.waiting() < size {
            ensure!(Instant::now() < end, "the pool does not fill");
            std::thread::sleep(Duration::from_millis(20));
        }
        // The last container is still being settled by the daemon.
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
            cancel: Cancel::new()?,
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

/// A container that is there already, for `docker exec`.
struct Bystander<'a> {
    id: String,
    arguments: &'a Arguments,
}

impl<'a> Bystander<'a> {
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

impl Drop for Bystander<'_> {
    fn drop(&mut self) {
        // It ends by itself within the hour.
        let _gone = docker(self.arguments, &["rm", "--force", &self.id]);
    }
}
