//! The spawner process: what it cleans up, and what dies with it.

use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process};
use skillbox_model::ErrorCode;
use skillbox_sandbox::{LaunchError, Spawner, SpawnerError, SpawnerOptions};

use crate::fixture::{TestRun, is_root, spawner, spawner_program, wait_for};

fn kill_spawner(spawner: &Spawner) {
    kill_process(Pid::from_raw(spawner.pid().unwrap()).unwrap(), Signal::KILL).unwrap();
}

/// The directories of the control groups that a spawner created.
fn groups_of(pid: i32) -> Vec<String> {
    let mut found = Vec::new();
    for controller in ["memory", "pids", "cpuacct", "cpu"] {
        let place = std::fs::read_to_string("/proc/self/cgroup").unwrap();
        let own = place
            .lines()
            .find_map(|line| line.split_once(&format!(":{controller}:")))
            .map_or("/", |(_, own)| own);
        let base = Path::new("/sys/fs/cgroup")
            .join(controller)
            .join(own.trim_start_matches('/'));
        for entry in std::fs::read_dir(base).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            // skillbox-<pid namespace>-<pid>-<start time>-<number>
            if name.starts_with("skillbox-") && name.split('-').nth(2) == Some(pid.to_string().as_str()) {
                found.push(name);
            }
        }
    }
    found
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_sandboxes_of_a_killed_spawner_die() {
    let spawner = spawner();
    let started = TestRun::bash("sleep 300").start(&spawner).unwrap();
    let pidfd = started.sandbox.pidfd().try_clone_to_owned().unwrap();
    kill_spawner(&spawner);
    assert!(
        wait_for(pidfd.as_fd(), Duration::from_secs(30)),
        "the sandbox outlives its spawner"
    );
    let error = TestRun::bash("true").start(&spawner).err().unwrap();
    assert!(
        matches!(
            error,
            LaunchError::Spawner(SpawnerError::Exited | SpawnerError::Socket(_))
        ),
        "{error:?}"
    );
    assert_eq!(error.code(), ErrorCode::ExecutorUnavailable);
}

#[test]
fn a_dropped_spawner_cleans_up() {
    let spawner = spawner();
    let pid = spawner.pid().unwrap();
    let started = TestRun::bash("sleep 300").start(&spawner).unwrap();
    let pidfd = started.sandbox.pidfd().try_clone_to_owned().unwrap();
    if is_root() {
        assert!(!groups_of(pid).is_empty(), "the test looks in the wrong directory");
    }
    drop(spawner);
    assert!(wait_for(pidfd.as_fd(), Duration::from_secs(30)));
    eventually("the removal of all groups", || groups_of(pid).is_empty());
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn a_new_spawner_removes_the_groups_of_a_killed_one() {
    if !is_root() {
        return;
    }
    let first = spawner();
    let pid = first.pid().unwrap();
    TestRun::bash("true").launch(&first).ok();
    let started = TestRun::bash("sleep 300").start(&first).unwrap();
    let pidfd = started.sandbox.pidfd().try_clone_to_owned().unwrap();
    // Checked while it is alive, because the spawners of other tests remove stale groups as well.
    assert!(!groups_of(pid).is_empty(), "the test looks in the wrong directory");
    kill_spawner(&first);
    assert!(wait_for(pidfd.as_fd(), Duration::from_secs(30)));
    drop((started, first));
    let second = spawner();
    second.facts().unwrap();
    assert_eq!(groups_of(pid), Vec::<String>::new());
}

#[test]
fn hundreds_of_runs_leak_nothing() {
    let spawner = spawner();
    TestRun::bash("true").launch(&spawner).ok();
    let before = HeldResources::at_rest(&spawner);
    for _ in 0..200 {
        TestRun::bash("true").launch(&spawner).ok();
    }
    let max_parked = usize::from(SpawnerOptions::DEFAULT_MAX_PARKED);
    // Parked sandboxes are no leak.
    eventually("the end of all runs", || {
        children_of(spawner.pid().unwrap()).len() <= max_parked
    });
    let after = HeldResources::at_rest(&spawner);
    assert!(after.is_within(&before), "{after:?} instead of {before:?}");
}

/// The resources of a spawner, and the open descriptors of this process.
#[derive(Debug, PartialEq, Eq)]
struct HeldResources {
    descriptors: usize,
    groups: usize,
    mounts: usize,
    own: usize,
}

impl HeldResources {
    fn now(pid: i32) -> Self {
        let count = |path: &str| std::fs::read_dir(path).unwrap().count();
        Self {
            descriptors: count(&format!("/proc/{pid}/fd")),
            groups: groups_of(pid).len(),
            mounts: mount_count(pid),
            own: count("/proc/self/fd"),
        }
    }

    /// The resources without parked sandboxes, once they are stable.
    fn at_rest(spawner: &Spawner) -> Self {
        let pid = spawner.pid().unwrap();
        spawner.set_max_parked(0).unwrap();
        eventually("the end of all that waits", || children_of(pid).is_empty());
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut seen = Vec::new();
        while seen.len() < 10 || seen.iter().any(|held| held != &seen[0]) {
            assert!(Instant::now() < deadline, "no rest: {seen:?}");
            std::thread::sleep(Duration::from_millis(20));
            seen.push(Self::now(pid));
            let surplus = seen.len().saturating_sub(10);
            seen.drain(..surplus);
        }
        spawner.set_max_parked(SpawnerOptions::DEFAULT_MAX_PARKED).unwrap();
        seen.remove(0)
    }

    fn is_within(&self, before: &Self) -> bool {
        self.descriptors <= before.descriptors
            && self.groups <= before.groups
            && self.mounts == before.mounts
            && self.own <= before.own
    }
}

fn mount_count(pid: i32) -> usize {
    std::fs::read_to_string(format!("/proc/{pid}/mountinfo"))
        .unwrap()
        .lines()
        .count()
}

fn children_of(pid: i32) -> Vec<String> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    list.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn the_spawner_has_no_environment_no_arguments_and_no_foreign_descriptors() {
    let spawner = spawner();
    spawner.facts().unwrap();
    let pid = spawner.pid().unwrap();
    let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap();
    assert!(read("environ").iter().all(|byte| *byte == 0));
    assert!(read("cmdline").iter().all(|byte| *byte == 0));
    let status = String::from_utf8(read("status")).unwrap();
    assert!(
        status.contains("Name:\tskillbox-spawn\n") && status.contains("\nThreads:\t1\n"),
        "{status}"
    );
    for descriptor in std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten() {
        let target = std::fs::read_link(descriptor.path()).unwrap();
        let known = [
            "/dev/null",
            "socket:",
            "/proc",
            "mnt:",
            "net:",
            "/sys/fs/cgroup",
            "/",
            "anon_inode:[signalfd]",
            "anon_inode:[pidfd]",
        ];
        assert!(
            known.iter().any(|known| target.to_str().unwrap().starts_with(known)),
            "{target:?}"
        );
    }
}

#[test]
fn a_program_that_is_no_spawner_is_an_error() {
    let error = Spawner::start(Path::new("/no/such/program")).err().unwrap();
    assert!(matches!(error, SpawnerError::Start { .. }), "{error:?}");
    let facts = Spawner::start(Path::new("/bin/true")).and_then(|spawner| spawner.facts().cloned());
    assert!(matches!(facts, Err(SpawnerError::Exited)), "{facts:?}");
}

#[test]
fn a_lack_of_descriptors_fails_one_launch_and_not_the_spawner() {
    // The spawner of an ordinary user also creates the workspaces.
    if !is_root() {
        return;
    }
    let spawner = Spawner::start_with_options(
        &spawner_program(),
        SpawnerOptions {
            max_parked: 0,
            ..SpawnerOptions::default()
        },
    )
    .unwrap();
    TestRun::bash("true").launch(&spawner).ok();
    let pid = Pid::from_raw(spawner.pid().unwrap());
    // The hard limit is inherited, and not everybody may raise it.
    let maximum = rustix::process::getrlimit(Resource::Nofile).maximum;
    let allow = |current| rustix::process::prlimit(pid, Resource::Nofile, Rlimit { current, maximum }).unwrap();
    let most = allow(Some(4));
    assert_eq!(
        most.current, maximum,
        "the spawner raises its limit of descriptors to the maximum"
    );
    let mut failed = 0;
    // From no free descriptor to almost enough.
    for few in 4..40 {
        allow(Some(few));
        failed += usize::from(TestRun::bash("true").start(&spawner).is_err());
        assert!(
            spawner.is_alive(),
            "the spawner exited with a limit of {few} descriptors"
        );
    }
    assert!(failed > 0, "the control: no launch failed");
    allow(maximum);
    assert_eq!(TestRun::bash("echo here").launch(&spawner).ok(), "here");
}
