//! A server's sandboxes made ahead, through the whole runtime: what waits never shows what was, and nothing is left.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use skillbox_executor::{Cancel, EventSink, Executor, Launcher, LocalExecutor};
use skillbox_model::{RunReport, RunRequest, SessionId};
use skillbox_repository::{Repository, ScanOptions, Scope, Source};
use skillbox_runtime::{RunContext, Runtime, RuntimeSettings};
use skillbox_sandbox::{Profiles, Spawner, SpawnerOptions};

use crate::lab::Scene;

/// A server in this process, with one skill.
struct Server {
    runtime: Runtime,
    spawner: Spawner,
    script: PathBuf,
    _scene: Scene,
}

impl Server {
    fn new(scene: Scene) -> Self {
        let spawner = Spawner::start(Path::new(env!("CARGO_BIN_EXE_skillbox"))).unwrap();
        let profiles = Profiles::shipped();
        let launcher = Launcher::new(spawner.clone(), profiles.iter()).unwrap();
        let executor = LocalExecutor::new(launcher, None).with_housekeeping().unwrap();
        let script = scene
            .skill("changing", &[("scripts/say.sh", "echo first\n")])
            .join("scripts/say.sh");
        let source = Source::Directory {
            path: scene.path("skills"),
            scope: Scope::Project,
        };
        let settings = RuntimeSettings {
            watch_skills: true,
            ..RuntimeSettings::at(scene.path("state"))
        };
        let repository = Repository::open(vec![source], ScanOptions::default());
        let runtime = Runtime::new(
            repository.into(),
            profiles,
            vec![Executor::Local(Box::new(executor))],
            settings,
        );
        Self {
            runtime,
            spawner,
            script,
            _scene: scene,
        }
    }

    fn run(&self, command: &str) -> RunReport {
        self.run_with(command, None)
    }

    fn run_in(&self, session: &str, command: &str) -> RunReport {
        self.run_with(command, Some(SessionId::parse(session).unwrap()))
    }

    fn run_with(&self, command: &str, session: Option<SessionId>) -> RunReport {
        let request = RunRequest {
            skill: "changing".to_owned(),
            command: Some(command.to_owned()),
            ..RunRequest::default()
        };
        let context = RunContext {
            session,
            events: EventSink::silent(),
            cancel: Cancel::new().unwrap(),
            export: None,
        };
        self.runtime.run(&request, context).unwrap()
    }

    fn said(&self, command: &str) -> String {
        self.run(command).stdout.trim().to_owned()
    }

    fn children(&self) -> Vec<i32> {
        let pid = self.spawner.pid().unwrap();
        let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        list.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
    }

    /// Waits until exactly so many children are there, and nothing else is under way.
    fn settled(&self, count: usize) -> Vec<i32> {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let now = self.children();
            if now.len() == count {
                return now;
            }
            assert!(Instant::now() < deadline, "{now:?} instead of {count} waiting");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn a_slot_that_waits_never_runs_what_the_skill_was() {
    let server = Server::new(Scene::new());
    assert_eq!(server.said("sh scripts/say.sh"), "first");
    for number in 0..20 {
        let waiting = server.settled(2);
        // The slot waits already when the skill changes, and the run that comes at once takes that very slot.
        fs::write(&server.script, format!("echo {number}; sleep 0.02\n")).unwrap();
        assert_eq!(server.said("sh scripts/say.sh"), number.to_string());
        assert_ne!(server.settled(2), waiting, "no slot was used");
    }
}

#[test]
fn two_hundred_runs_at_once_leave_nothing_and_none_starves() {
    const RUNS: usize = 200;
    let server = Server::new(Scene::alone());
    for _ in 0..3 {
        server.run("true");
    }
    server.settled(2);
    let before = settled_descriptors();
    let mut times: Vec<Duration> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..RUNS)
            .map(|number| {
                let server = &server;
                scope.spawn(move || {
                    let begin = Instant::now();
                    assert_eq!(server.said(&format!("echo {number}")), number.to_string());
                    begin.elapsed()
                })
            })
            .collect();
        started.into_iter().map(|run| run.join().unwrap()).collect()
    });
    times.sort_unstable();
    let (median, last) = (times[RUNS / 2], times[RUNS * 99 / 100]);
    println!("the median of {RUNS} runs at once took {median:?}, 99 of 100 at most {last:?}");
    // All come at once and are served in turn: who comes last waits for about twice the median.
    assert!(
        last < 6 * median + Duration::from_secs(2),
        "starved: {last:?} against a median of {median:?}"
    );
    server.settled(usize::from(SpawnerOptions::DEFAULT_SLOTS));
    assert_eq!(settled_descriptors(), before, "descriptors of the server");
}

/// How many descriptors this process has once its housekeeping is done.
fn settled_descriptors() -> usize {
    let count = || fs::read_dir("/proc/self/fd").unwrap().count();
    let mut before = 0;
    loop {
        let now = count();
        if now == before {
            return now;
        }
        before = now;
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_workspace_made_ahead_is_empty_and_used_once() {
    let server = Server::new(Scene::new());
    let look = "find /workspace -mindepth 1 -not -path '/workspace/skills*' -not -path '/workspace/runs/*' | sort | tr '\\n' ' '; \
                touch /workspace/left /workspace/out/left /workspace/home/left";
    let first = server.said(look);
    assert!(first.contains("/workspace/work/inputs"), "{first}");
    for _ in 0..10 {
        assert_eq!(server.said(look), first);
        // The thread has had time to make the next one.
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_session_keeps_the_directories_of_runs_that_left_something() {
    let server = Server::new(Scene::new());
    let counted = |command: &str| server.run_in("kept", command).stdout.trim().to_owned();
    // An empty one is passed on to the next run.
    assert_eq!(counted("ls /workspace/runs | wc -l"), "1");
    assert_eq!(counted("ls /workspace/runs | wc -l; echo x > $RUN_DIR/x"), "1");
    assert_eq!(counted("ls /workspace/runs | wc -l; cat /workspace/runs/*/x"), "2\nx");
}

#[test]
fn without_slots_each_sandbox_is_made_when_it_is_asked_for() {
    let server = Server::new(Scene::new());
    server.run("true");
    server.settled(2);
    server.spawner.keep_slots(0).unwrap();
    server.settled(0);
    for _ in 0..3 {
        assert_eq!(server.said("echo here"), "here");
    }
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(server.children(), Vec::<i32>::new());
}

/// Children of the spawner that are dead and not reaped.
fn zombies(spawner: &Spawner) -> Vec<String> {
    let pid = spawner.pid().unwrap();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let is_dead = |child: &&str| {
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z'))
    };
    children.split_whitespace().filter(is_dead).map(str::to_owned).collect()
}

#[test]
fn a_run_that_fails_after_its_end_leaves_no_dead_sandbox() {
    let server = Server::new(Scene::new());
    server.run("true");
    let taken = server.script.clone();
    let request = RunRequest {
        skill: "changing".to_owned(),
        command: Some("echo x > out/x".to_owned()),
        outputs: Some(skillbox_model::OutputSpec {
            globs: vec!["out/*".to_owned()],
            ..Default::default()
        }),
        ..RunRequest::default()
    };
    let context = RunContext {
        session: None,
        events: EventSink::silent(),
        cancel: Cancel::new().unwrap(),
        // A file stands where the directory would have to be.
        export: Some(taken),
    };
    server.runtime.run(&request, context).unwrap_err();
    let deadline = Instant::now() + Duration::from_secs(5);
    while !zombies(&server.spawner).is_empty() {
        assert!(Instant::now() < deadline, "{:?}", zombies(&server.spawner));
        std::thread::sleep(Duration::from_millis(10));
    }
}
