//! What the Docker executor has to show beyond the lists: hardening as the daemon records it, interruptions, leftovers.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use skillbox_executor::{Cancel, DockerExecutor, DockerOptions, EventSink, Executor};
use skillbox_model::{ExecutorKind, RunReport, RunRequest};
use skillbox_repository::{BUILT_IN, Repository, ScanOptions, Source};
use skillbox_runtime::{DEFAULT_SESSION_WAIT, HostDirectories, RunContext, Runtime, RuntimeSettings};
use skillbox_sandbox::{Profiles, Unconfined};

use crate::lab::{Docker, Scene, need, need_docker, on_docker, reap};
use crate::workspace::root;

/// A world whose runs take place in containers, alone on its daemon.
fn scene() -> Option<Scene> {
    need_docker().then(|| on_docker(Scene::alone))
}

fn daemon(scene: &Scene) -> &Docker {
    scene.docker().unwrap()
}

const FIB: [&str; 6] = [
    "run",
    "python-math",
    "--output",
    "out/*.txt",
    "--",
    "python3 scripts/fib.py 10 > out/fib.txt",
];

#[test]
fn the_result_equals_the_local_one() {
    let Some(scene) = scene() else { return };
    let ask = |executor: &str| {
        let answer = scene
            .tell_bare(&FIB)
            .with(&["--json", "--executor", executor])
            .at(root())
            .go();
        let mut report = answer.reported().json().clone();
        let fields = report.as_object_mut().unwrap();
        for differs in ["executor", "run_id", "duration_ms", "usage", "enforcement"] {
            assert!(fields.remove(differs).is_some(), "{differs} is missing");
        }
        report
    };
    let (local, docker) = (ask("local"), ask("docker"));
    assert_eq!(local, docker);
    assert_eq!(
        docker["output_files"][0]["content"],
        "0\n1\n1\n2\n3\n5\n8\n13\n21\n34\n"
    );
}

#[test]
fn the_daemon_records_every_hardening() {
    let Some(scene) = scene() else { return };
    scene.profile_text("slow", "extends: default\nlimits:\n  cpu_quota_millis: 500\n");
    let mut child = scene.ask(json!({"command": "sleep 30", "profile": "slow"})).begin();
    let id = scene.wait_for("a container", Duration::from_secs(20), || {
        daemon(&scene).containers().pop()
    });
    let inspected = scene.wait_for("a running container", Duration::from_secs(20), || {
        let all: Value = serde_json::from_str(&daemon(&scene).client(&["inspect", &id])).ok()?;
        (all[0]["State"]["Running"] == true).then(|| all[0].clone())
    });
    let host = &inspected["HostConfig"];
    let expected = [
        ("NetworkMode", json!("none")),
        ("ReadonlyRootfs", json!(true)),
        ("CapDrop", json!(["ALL"])),
        ("Privileged", json!(false)),
        ("Init", json!(false)),
        ("IpcMode", json!("private")),
        ("CgroupnsMode", json!("private")),
        ("Memory", json!(1 << 30)),
        ("MemorySwap", json!(1 << 30)),
        ("NanoCpus", json!(500_000_000)),
        ("PidsLimit", json!(257)),
        ("ShmSize", json!(64 << 20)),
        ("LogConfig", json!({"Type": "none", "Config": {}})),
        ("Binds", json!(null)),
    ];
    for (key, value) in expected {
        assert_eq!(host[key], value, "{key}");
        println!("{key:<16} {value}");
    }
    let options = host["SecurityOpt"].as_array().unwrap();
    assert!(options.contains(&json!("no-new-privileges=true")), "{options:?}");
    assert!(
        options
            .iter()
            .any(|option| option.as_str().unwrap().starts_with("seccomp={"))
    );
    for (place, words) in [
        ("/workspace", "size=536870912,nr_inodes=100000"),
        ("/tmp", "size=134217728"),
    ] {
        let told = host["Tmpfs"][place].as_str().unwrap();
        assert!(told.contains(words) && told.contains("nosuid,nodev"), "{place}: {told}");
        println!("Tmpfs            {place} {told}");
    }
    let limits: Vec<String> = host["Ulimits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|limit| limit["Name"].to_string())
        .collect();
    println!("Ulimits          {}", limits.join(" "));
    assert!(limits.len() >= 9);
    let config = &inspected["Config"];
    assert_eq!(
        (&config["User"], &config["Entrypoint"]),
        (&json!("1000:1000"), &json!(["/skillbox-runner"]))
    );
    assert!(config["Labels"]["skillbox"].is_string() && config["Labels"]["skillbox.owner"].is_string());
    // Pid 1 is the runner, as the daemon's own view of the processes says.
    let top = daemon(&scene).client(&["top", &id, "-o", "pid,args"]);
    assert!(
        top.lines().nth(1).is_some_and(|line| line.contains("/skillbox-runner")),
        "{top}"
    );
    child.kill().unwrap();
    reap(&mut child);
    daemon(&scene).refuse_containers();
}

#[test]
fn nothing_is_left_of_killed_runs() {
    let Some(scene) = scene() else { return };
    let before = Held::now(daemon(&scene));
    let mut children: Vec<_> = (0..10)
        .map(|_| scene.ask(json!({"command": "sleep 60"})).begin())
        .collect();
    scene.wait_for("ten containers", Duration::from_secs(50), || {
        (daemon(&scene).containers().len() == 10).then_some(())
    });
    for child in &mut children {
        child.kill().unwrap();
    }
    children.iter_mut().for_each(reap);
    let told = scene.tell(&["session", "gc", "--json"]).go();
    assert_eq!(told.code, Some(0), "{}", told.told());
    assert_eq!(daemon(&scene).containers(), [] as [&str; 0], "{}", told.told());
    assert_eq!(Held::now(daemon(&scene)), before);
    let uid = rustix::process::geteuid().as_raw();
    let left = fs::read_dir(format!("/dev/shm/skillbox-{uid}"))
        .into_iter()
        .flatten()
        .count();
    assert_eq!(left, 0, "files of the killed runs are left");
}

/// What a daemon holds: runs may add nothing to it.
#[derive(Debug, PartialEq, Eq)]
struct Held([String; 3]);

impl Held {
    fn now(docker: &Docker) -> Self {
        Self([
            docker.client(&["ps", "--all", "--quiet"]),
            docker.client(&["volume", "ls", "--quiet"]),
            docker.client(&["network", "ls", "--quiet"]),
        ])
    }
}

#[test]
fn runs_of_every_end_leave_nothing() {
    let Some(scene) = scene() else { return };
    let before = Held::now(daemon(&scene));
    for request in [
        json!({"command": "true"}),
        json!({"command": "exit 3"}),
        json!({"command": "sleep 30", "timeout": 0.2}),
        json!({"command": "kill -9 -1; kill -9 $$"}),
        json!({"argv": ["no-such-program"]}),
        json!({"command": "python3 -c 'import os; os.fork() or os.setsid() or os.execvp(\"sleep\", [\"sleep\", \"60\"])' & sleep 0.2"}),
    ] {
        scene.ask(request).go().reported();
    }
    daemon(&scene).refuse_containers();
    assert_eq!(Held::now(daemon(&scene)), before);
}

#[test]
fn two_sessions_do_not_see_each_other() {
    let Some(scene) = scene() else { return };
    let secret = "echo secret-of-a > work/a; echo secret-of-a > /tmp/a; echo secret-of-a > /dev/shm/a; \
                  python3 -c \"import socket,time; s=socket.socket(socket.AF_UNIX); s.bind('\\0meet'); s.listen(); time.sleep(6)\"";
    let mut first = scene.ask(json!({"command": secret})).session("a").begin();
    scene.wait_for("a container", Duration::from_secs(20), || {
        daemon(&scene).containers().pop()
    });
    std::thread::sleep(Duration::from_secs(1));
    let search = "grep -rs secret-of-a / --exclude-dir=proc --exclude-dir=sys; ls /proc | grep -cE '^[0-9]+$'; \
                  python3 -c \"import socket; s=socket.socket(socket.AF_UNIX); s.connect('\\0meet'); print('met')\" 2>/dev/null; \
                  kill -9 -1 2>/dev/null; exit 0";
    let answer = scene
        .ask(json!({"command": search, "timeout": 20}))
        .session("b")
        .go()
        .reported();
    assert!(
        !answer.mentions("secret-of-a") || !answer.stdout().contains("secret-of-a"),
        "{}",
        answer.told()
    );
    assert!(!answer.stdout().contains("met"), "{}", answer.told());
    let seen: u32 = answer.stdout().lines().next().unwrap().trim().parse().unwrap();
    assert!(seen <= 6, "{seen} processes are visible");
    // The first run lives through it, and its session keeps what it wrote.
    let status = first.wait().unwrap();
    assert!(status.success(), "{status}");
    let kept = scene
        .ask(json!({"command": "cat work/a; ls /tmp /dev/shm"}))
        .session("a")
        .go()
        .reported();
    assert_eq!(kept.stdout(), "secret-of-a\n/dev/shm:\n\n/tmp:\n");
    daemon(&scene).refuse_containers();
}

#[test]
fn without_a_daemon_the_answer_is_quick_and_says_what_to_do() {
    let scene = Scene::new();
    let nowhere = format!("unix://{}", scene.text("scratch/no-docker.sock"));
    let answer = scene
        .tell(&[
            "run",
            "probe",
            "--executor",
            "docker",
            "--docker-host",
            &nowhere,
            "--json",
            "--",
            "true",
        ])
        .go();
    assert_eq!(
        (answer.refused().0, answer.code),
        ("executor_unavailable", Some(125)),
        "{}",
        answer.told()
    );
    assert!(
        answer.finished.wall < Duration::from_secs(1),
        "{:?}",
        answer.finished.wall
    );
    let hint = answer["error"]["hint"].as_str().unwrap();
    assert!(
        hint.contains("start the Docker daemon") && hint.contains("--docker-host"),
        "{hint}"
    );
    assert_eq!(
        fs::read_dir(scene.path("state/scratch")).into_iter().flatten().count(),
        0
    );
    let odd = scene
        .tell(&[
            "run",
            "probe",
            "--executor",
            "docker",
            "--docker-host",
            "nonsense",
            "--json",
            "--",
            "true",
        ])
        .go();
    assert_eq!(odd.refused().0, "executor_unavailable");
    // What is collected as garbage does not need one.
    assert_eq!(
        scene.tell(&["session", "gc"]).env("DOCKER_HOST", nowhere).go().code,
        Some(0)
    );
}

#[test]
fn a_missing_image_is_told_with_how_to_build_it() {
    let Some(scene) = scene() else { return };
    let answer = scene
        .tell(&[
            "run",
            "probe",
            "--docker-image",
            "skillbox-no-such:1",
            "--json",
            "--",
            "true",
        ])
        .go();
    assert_eq!(
        (answer.refused().0, answer.code),
        ("image_missing", Some(125)),
        "{}",
        answer.told()
    );
    assert!(answer.mentions("skillbox-no-such:1") && answer.mentions("skillbox docker build-runner"));
    // An image that is there and has no runner.
    let base = scene
        .tell(&[
            "run",
            "probe",
            "--docker-image",
            "debian:bookworm-slim",
            "--json",
            "--",
            "true",
        ])
        .go();
    if need(!base.mentions("debian:bookworm-slim is missing"), "a base image") {
        assert_eq!(base.refused().0, "image_missing", "{}", base.told());
    }
    daemon(&scene).refuse_containers();
}

/// A daemon that answers with fixed words: what a real one says only on a bad day.
struct Pretender {
    socket: PathBuf,
}

impl Pretender {
    fn start(scene: &Scene, name: &str, answers: &'static [(&'static str, u16, &'static str)]) -> Self {
        let socket = scene.path("scratch").join(name);
        let listener = UnixListener::bind(&socket).unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(stream);
                let mut first = String::new();
                let mut length = 0;
                loop {
                    let mut line = String::new();
                    if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
                        break;
                    }
                    if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap_or(0);
                    }
                    if first.is_empty() {
                        first = line;
                    }
                }
                let mut body = vec![0; length];
                let _ = reader.read_exact(&mut body);
                let found = answers.iter().find(|(path, ..)| first.contains(path));
                let (_, status, text) = found.unwrap_or(&("", 404, "{\"message\":\"page not found\"}"));
                let size = text.len();
                let answer = format!(
                    "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n{text}"
                );
                let _ = reader.get_mut().write_all(answer.as_bytes());
            }
        });
        Self { socket }
    }

    fn ask(&self, scene: &Scene) -> (String, Value) {
        let host = format!("unix://{}", self.socket.display());
        let answer = scene
            .tell(&[
                "run",
                "probe",
                "--executor",
                "docker",
                "--docker-host",
                &host,
                "--json",
                "--",
                "echo it ran",
            ])
            .go();
        assert_eq!(answer.code, Some(125), "{}", answer.told());
        assert!(!answer.mentions("it ran"), "{}", answer.told());
        (answer.refused().0.to_owned(), answer["error"].clone())
    }
}

#[test]
fn an_old_daemon_and_a_full_disk_have_errors_of_their_own() {
    let scene = Scene::new();
    let old = Pretender::start(
        &scene,
        "old.sock",
        &[("/version", 200, r#"{"ApiVersion":"1.24","MinAPIVersion":"1.12"}"#)],
    );
    let (code, error) = old.ask(&scene);
    assert_eq!(code, "executor_outdated", "{error}");
    assert!(error["message"].as_str().unwrap().contains("1.24"), "{error}");
    let full = Pretender::start(
        &scene,
        "full.sock",
        &[
            ("/version", 200, r#"{"ApiVersion":"1.41"}"#),
            ("/info", 200, "{}"),
            ("/images/", 200, r#"{"Id":"sha256:0"}"#),
            (
                "/containers/create",
                500,
                r#"{"message":"mkdir /var/lib/docker/overlay2/x: no space left on device"}"#,
            ),
        ],
    );
    let (code, error) = full.ask(&scene);
    assert_eq!(code, "executor_full", "{error}");
    assert!(error["hint"].as_str().unwrap().contains("free space"), "{error}");
    let silent = UnixListener::bind(scene.path("scratch/silent.sock")).unwrap();
    drop(silent);
    let host = format!("unix://{}", scene.text("scratch/silent.sock"));
    let gone = scene
        .tell(&[
            "run",
            "probe",
            "--executor",
            "docker",
            "--docker-host",
            &host,
            "--json",
            "--",
            "true",
        ])
        .go();
    assert_eq!(gone.refused().0, "executor_unavailable");
}

/// The daemon that `tests/run` keeps, ended as an update ends it, and back again.
fn end_daemon(docker: &Docker) -> bool {
    let Some(home) = docker.home().filter(|home| home.join("keep").exists()) else {
        return need(false, "a Docker daemon that `tests/run` keeps");
    };
    let pid: i32 = fs::read_to_string(home.join("dockerd.pid"))
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    // While it ends it still answers.
    while rustix::process::test_kill_process(pid).is_ok() {
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

fn wait_for_daemon(scene: &Scene) {
    scene.wait_for("the daemon to be back", Duration::from_secs(40), || {
        let version = daemon(scene).client(&["version", "--format", "{{.Server.Version}}"]);
        (!version.is_empty()).then_some(())
    });
}

#[test]
fn a_daemon_that_ends_in_the_middle_is_told_and_forgotten() {
    let Some(scene) = scene() else { return };
    let mut child = scene.ask(json!({"command": "echo begun; sleep 60"})).begin();
    scene.wait_for("a container", Duration::from_secs(20), || {
        daemon(&scene).containers().pop()
    });
    std::thread::sleep(Duration::from_millis(500));
    let begin = Instant::now();
    if !end_daemon(daemon(&scene)) {
        child.kill().unwrap();
        reap(&mut child);
        return;
    }
    let output = child.wait_with_output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert_eq!(
        (output.status.code(), &told["error"]["code"]),
        (Some(125), &json!("executor_lost")),
        "{told}"
    );
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    wait_for_daemon(&scene);
    daemon(&scene).refuse_containers();
    assert_eq!(
        fs::read_dir(scene.path("state/scratch")).into_iter().flatten().count(),
        0,
        "files are left"
    );
    assert_eq!(scene.sh("echo again").stdout(), "again\n");
}

/// A runtime in this process, as a server has it, with containers that wait.
fn server(scene: &Scene, pool: usize) -> (Runtime, Arc<DockerExecutor>) {
    let docker = Arc::new(DockerExecutor::new(DockerOptions {
        host: daemon(scene).host(),
        image: format!("skillbox-runner:{}", env!("CARGO_PKG_VERSION")),
        pool,
        scratch: scene.path("state/scratch"),
        unconfined: Unconfined::Refuse,
    }));
    let settings = RuntimeSettings {
        state_dir: scene.path("state"),
        default_profile: "default".to_owned(),
        allowed_profiles: None,
        broken_profiles: Default::default(),
        default_executor: ExecutorKind::Docker,
        host_directories: HostDirectories::default(),
        host_environment: Default::default(),
        session_wait: DEFAULT_SESSION_WAIT,
        watch_skills: true,
    };
    let repository = Repository::open(vec![Source::Embedded(&BUILT_IN)], ScanOptions::default());
    let executors = vec![Executor::Docker(docker.clone())];
    (
        Runtime::new(Arc::new(repository), Profiles::shipped(), executors, settings),
        docker,
    )
}

fn run(runtime: &Runtime, command: &str) -> RunReport {
    let request = RunRequest {
        skill: "python-math".to_owned(),
        command: Some(command.to_owned()),
        ..RunRequest::default()
    };
    let context = RunContext {
        session: None,
        events: EventSink::silent(),
        cancel: Cancel::new().unwrap(),
        export: None,
    };
    runtime.run(&request, context).unwrap()
}

fn full(scene: &Scene, docker: &DockerExecutor, size: usize) {
    scene.wait_for("a full pool", Duration::from_secs(30), || {
        (docker.waiting() == size).then_some(())
    });
}

#[test]
fn a_pool_is_warm_bounded_single_use_and_survives_the_daemon() {
    let Some(scene) = scene() else { return };
    let (runtime, docker) = server(&scene, 2);
    let profiles = Profiles::shipped();
    docker.warm(profiles.get("default").unwrap()).unwrap();
    full(&scene, &docker, 2);
    let waiting = daemon(&scene).containers();
    assert_eq!(waiting.len(), 2, "bounded");
    let begin = Instant::now();
    let first = run(&runtime, "echo mark > /tmp/mark; echo mark > work/mark; echo first");
    let warm = begin.elapsed();
    let second = run(&runtime, "ls /tmp work; echo second");
    assert_eq!((first.stdout.as_str(), first.exit_code), ("first\n", Some(0)));
    assert_eq!(
        second.stdout, "/tmp:\n\nwork:\ninputs\nsecond\n",
        "a container of its own"
    );
    println!("warm: {warm:?}");
    full(&scene, &docker, 2);
    let refilled = daemon(&scene).containers();
    assert!(refilled.iter().all(|id| !waiting.contains(id)), "each is used once");
    if end_daemon(daemon(&scene)) {
        wait_for_daemon(&scene);
        assert_eq!(run(&runtime, "echo after").stdout, "after\n");
        full(&scene, &docker, 2);
        assert_eq!(run(&runtime, "echo warm again").stdout, "warm again\n");
    }
    drop(runtime);
    drop(docker);
    daemon(&scene).refuse_containers();
}

#[test]
fn doctor_tells_about_the_daemon() {
    let Some(scene) = scene() else { return };
    let answer = scene.tell(&["doctor", "--json"]).go();
    let docker = &answer["docker"];
    assert!(
        docker["image"]["id"]
            .as_str()
            .is_some_and(|id| id.starts_with("sha256:")),
        "{docker}"
    );
    for fact in ["version", "api", "cgroup_version"] {
        assert!(docker[fact].as_str().is_some_and(|text| !text.is_empty()), "{docker}");
    }
    for fact in [
        "seccomp",
        "rootless",
        "memory_limit",
        "pids_limit",
        "swap_limit",
        "maps_ids",
    ] {
        assert!(docker[fact].is_boolean(), "{docker}");
    }
    let text = scene.tell(&["doctor"]).go();
    assert!(
        text.mentions("control groups") && text.mentions("skillbox-runner:"),
        "{}",
        text.told()
    );
}

#[test]
fn the_recipe_is_the_one_of_the_repository() {
    let scene = Scene::new();
    let told = scene.tell(&["docker", "dockerfile"]).go();
    let recipe = fs::read(Path::new(root()).join("Dockerfile.runner")).unwrap();
    assert_eq!((told.code, &told.finished.stdout), (Some(0), &recipe));
}
