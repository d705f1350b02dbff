//! Parked sandboxes of a server, through the whole runtime: they run the present skill, and leave nothing behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use skillbox_executor::{CancelToken, EventSink, Executor, Launcher, LocalExecutor};
use skillbox_model::{RunReport, RunRequest, SessionId};
use skillbox_repository::{Repository, ScanOptions, Scope, Source};
use skillbox_runtime::{ExistingFiles, ExportTarget, RunContext, Runtime, RuntimeSettings};
use skillbox_sandbox::{Profiles, Spawner, SpawnerOptions};

use crate::harness::{Fixture, wait_until};

/// A server in this process, with one skill.
struct Server {
    runtime: Runtime,
    spawner: Spawner,
    script: PathBuf,
    _fixture: Fixture,
}

impl Server {
    fn new(fixture: Fixture) -> Self {
        let spawner = Spawner::start(Path::new(env!("CARGO_BIN_EXE_skillbox"))).unwrap();
        let profiles = Profiles::shipped();
        let launcher = Launcher::new(spawner.clone(), profiles.iter()).unwrap();
        let executor = LocalExecutor::new(launcher, None).with_cleanup_worker().unwrap();
        let script = fixture
            .add_skill("changing", &[("scripts/say.sh", "echo first\n")])
            .join("scripts/say.sh");
        let source = Source::Directory {
            path: fixture.path("skills"),
            scope: Scope::Project,
        };
        let settings = RuntimeSettings {
            watch_skills: true,
            ..RuntimeSettings::with_state_dir(fixture.path("state"))
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
            _fixture: fixture,
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
            cancel: CancelToken::new().unwrap(),
            export: None,
            origin: Default::default(),
            keep_files: false,
        };
        self.runtime.run(&request, context).unwrap()
    }

    fn stdout_of(&self, command: &str) -> String {
        self.run(command).stdout.trim().to_owned()
    }

    /// Pids of the spawner's children that are alive.
    fn children(&self) -> Vec<i32> {
        let all = self.all_children().into_iter();
        all.filter(|pid| !is_zombie(*pid)).collect()
    }

    fn all_children(&self) -> Vec<i32> {
        let pid = self.spawner.pid().unwrap();
        let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        list.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
    }

    /// Waits until exactly `count` slots are parked and no run is under way: every child of the spawner sleeps, three
    /// times in succession.
    fn wait_for_slots(&self, count: usize) -> Vec<i32> {
        let mut samples = [const { Vec::new() }; 3];
        wait_until(&format!("{count} parked slots"), || {
            samples.rotate_left(1);
            samples[2] = self.all_children();
            let are_parked = samples[2].len() == count && samples[2].iter().all(|pid| state_of(*pid) == Some('S'));
            if !are_parked {
                samples[2].push(-1);
            }
            are_parked && samples[0] == samples[2] && samples[1] == samples[2]
        });
        self.all_children()
    }
}

#[test]
fn a_parked_slot_runs_the_changed_skill() {
    let server = Server::new(Fixture::new());
    assert_eq!(server.stdout_of("sh scripts/say.sh"), "first");
    for number in 0..20 {
        let parked = server.wait_for_slots(2);
        // The slots are parked before the skill changes, and the run takes one of them.
        fs::write(&server.script, format!("echo {number}; sleep 0.02\n")).unwrap();
        assert_eq!(server.stdout_of("sh scripts/say.sh"), number.to_string());
        wait_until("one of the parked slots is used and replaced", || {
            let now = server.children();
            now.len() == 2 && now != parked
        });
    }
}

#[test]
fn two_hundred_concurrent_runs_leave_nothing_and_none_starves() {
    const RUNS: usize = 200;
    let server = Server::new(Fixture::exclusive());
    for _ in 0..3 {
        server.run("true");
    }
    server.wait_for_slots(2);
    let before = settled_descriptor_count();
    let mut times: Vec<Duration> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..RUNS)
            .map(|number| {
                let server = &server;
                scope.spawn(move || {
                    let begin = Instant::now();
                    assert_eq!(server.stdout_of(&format!("echo {number}")), number.to_string());
                    begin.elapsed()
                })
            })
            .collect();
        started.into_iter().map(|run| run.join().unwrap()).collect()
    });
    times.sort_unstable();
    let (median, last) = (times[RUNS / 2], times[RUNS * 99 / 100]);
    println!("the median of {RUNS} concurrent runs took {median:?}, 99 of 100 at most {last:?}");
    // All runs start together and are served in turn: the last one waits for about twice the median.
    assert!(
        last < 6 * median + Duration::from_secs(2),
        "starved: {last:?} against a median of {median:?}"
    );
    server.wait_for_slots(usize::from(SpawnerOptions::DEFAULT_MAX_PARKED));
    wait_until("no more descriptors than before", || descriptor_count() <= before);
}

fn descriptor_count() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// The number of open descriptors after the clean-up of earlier runs: the same for a second.
fn settled_descriptor_count() -> usize {
    let mut recent = [0; 10];
    while recent.iter().any(|count| *count != recent[0]) || recent[0] == 0 {
        std::thread::sleep(Duration::from_millis(100));
        recent.rotate_left(1);
        recent[9] = descriptor_count();
    }
    recent[0]
}

#[test]
fn a_prepared_workspace_is_empty_and_used_once() {
    let server = Server::new(Fixture::new());
    let script = "find /workspace -mindepth 1 -not -path '/workspace/skills*' -not -path '/workspace/runs/*' | sort | tr '\\n' ' '; \
                touch /workspace/left /workspace/out/left /workspace/home/left";
    let first = server.stdout_of(script);
    assert!(first.contains("/workspace/work/inputs"), "{first}");
    for _ in 0..10 {
        assert_eq!(server.stdout_of(script), first);
        // The worker prepares the next workspace in the meantime.
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_session_keeps_run_directories_that_contain_files() {
    let server = Server::new(Fixture::new());
    let stdout_of = |command: &str| server.run_in("kept", command).stdout.trim().to_owned();
    // The next run takes over an empty directory.
    assert_eq!(stdout_of("ls /workspace/runs | wc -l"), "1");
    assert_eq!(stdout_of("ls /workspace/runs | wc -l; echo x > $RUN_DIR/x"), "1");
    assert_eq!(stdout_of("ls /workspace/runs | wc -l; cat /workspace/runs/*/x"), "2\nx");
}

#[test]
fn without_slots_each_sandbox_is_created_on_demand() {
    let server = Server::new(Fixture::new());
    server.run("true");
    server.wait_for_slots(2);
    server.spawner.set_max_parked(0).unwrap();
    server.wait_for_slots(0);
    for _ in 0..3 {
        assert_eq!(server.stdout_of("echo here"), "here");
    }
    server.wait_for_slots(0);
    // No slot is parked afterwards either.
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(server.children(), Vec::<i32>::new());
}

/// The state letter of a process, as in proc_pid_stat(5).
fn state_of(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

/// Whether a process is dead and not reaped.
fn is_zombie(pid: i32) -> bool {
    state_of(pid) == Some('Z')
}

#[test]
fn a_run_whose_export_fails_leaves_no_zombie() {
    let server = Server::new(Fixture::new());
    server.run("true");
    let file = server.script.clone();
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
        cancel: CancelToken::new().unwrap(),
        // The export needs a directory, and this is a file.
        export: Some(ExportTarget {
            directory: file,
            existing_files: ExistingFiles::Keep,
        }),
        origin: Default::default(),
        keep_files: false,
    };
    server.runtime.run(&request, context).unwrap_err();
    wait_until("no child of the spawner is a zombie", || {
        !server.all_children().into_iter().any(is_zombie)
    });
}
