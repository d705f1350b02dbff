//! The spawner itself: what it leaves behind, and what dies with it.

use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process};
use skillbox_model::ErrorCode;
use skillbox_sandbox::{LaunchError, Spawner, SpawnerError, SpawnerOptions};

use crate::trial::{Run, is_root, spawner, spawner_program, wait_for};

fn kill_spawner(spawner: &Spawner) {
    kill_process(Pid::from_raw(spawner.pid().unwrap()).unwrap(), Signal::KILL).unwrap();
}

/// Directories of control groups that a spawner made.
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
        assert!(Instant::now() < deadline, "{what} does not come true");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_killed_spawner_takes_its_sandboxes_along() {
    let spawner = spawner();
    let started = Run::bash("sleep 300").start(&spawner).unwrap();
    let pidfd = started.sandbox.pidfd().try_clone_to_owned().unwrap();
    kill_spawner(&spawner);
    assert!(
        wait_for(pidfd.as_fd(), Duration::from_secs(30)),
        "the sandbox outlives its spawner"
    );
    let error = Run::bash("true").start(&spawner).err().unwrap();
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
fn a_dropped_spawner_ends_orderly() {
    let spawner = spawner();
    let pid = spawner.pid().unwrap();
    let started = Run::bash("sleep 300").start(&spawner).unwrap();
    let pidfd = started.sandbox.pidfd().try_clone_to_owned().unwrap();
    if is_root() {
        assert!(!groups_of(pid).is_empty(), "the test looks at the wrong place");
    }
    drop(spawner);
    assert!(wait_for(pidfd.as_fd(), Duration::from_secs(30)));
    eventually("the removal of all groups", || groups_of(pid).is_empty());
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn a_new_spawner_sweeps_what_a_killed_one_left() {
    if !is_root() {
        return;
    }
    let first = spawner();
    let pid = first.pid().unwrap();
    Run::bash("true").launch(&first).ok();
    let started = Run::bash("sleep 300").start(&first).unwrap();
    let pidfd = started.sandbox.pidfd().try_clone_to_owned().unwrap();
    // Looked at while it lives: spawners of other tests sweep as well.
    assert!(!groups_of(pid).is_empty(), "the test looks at the wrong place");
    kill_spawner(&first);
    assert!(wait_for(pidfd.as_fd(), Duration::from_secs(30)));
    drop((started, first));
    let second = spawner();
    second.facts().unwrap();
    assert_eq!(groups_of(pid), Vec::<String>::new());
}

#[test]
fn hundreds_of_runs_leave_nothing_behind() {
    let spawner = spawner();
    Run::bash("true").launch(&spawner).ok();
    let before = Held::at_rest(&spawner);
    for _ in 0..200 {
        Run::bash("true").launch(&spawner).ok();
    }
    let slots = usize::from(SpawnerOptions::DEFAULT_SLOTS);
    // What waits for the next run is not left behind.
    eventually("the end of all runs", || {
        children_of(spawner.pid().unwrap()).len() <= slots
    });
    let after = Held::at_rest(&spawner);
    assert!(after.is_within(&before), "{after:?} instead of {before:?}");
}

/// What a spawner holds, and what is held of it here.
#[derive(Debug, PartialEq, Eq)]
struct Held {
    descriptors: usize,
    groups: usize,
    mounts: usize,
    own: usize,
}

impl Held {
    fn now(pid: i32) -> Self {
        let count = |path: &str| std::fs::read_dir(path).unwrap().count();
        Self {
            descriptors: count(&format!("/proc/{pid}/fd")),
            groups: groups_of(pid).len(),
            mounts: mount_count(pid),
            own: count("/proc/self/fd"),
        }
    }

    /// Without anything that is parked, and once nothing changes any more.
    fn at_rest(spawner: &Spawner) -> Self {
        let pid = spawner.pid().unwrap();
        spawner.set_slot_limit(0).unwrap();
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
        spawner.set_slot_limit(SpawnerOptions::DEFAULT_SLOTS).unwrap();
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
fn the_spawner_has_no_environment_no_arguments_and_no_strange_descriptors() {
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
fn a_program_that_is_no_spawner_is_an_error_and_not_a_hang() {
    let error = Spawner::start(Path::new("/no/such/program")).err().unwrap();
    assert!(matches!(error, SpawnerError::Start { .. }), "{error:?}");
    let deaf = Spawner::start(Path::new("/bin/true")).and_then(|spawner| spawner.facts().cloned());
    assert!(matches!(deaf, Err(SpawnerError::Exited)), "{deaf:?}");
}

#[test]
fn want_of_descriptors_fails_one_launch_and_not_the_spawner() {
    // Workspaces of an ordinary user are made by the spawner too.
    if !is_root() {
        return;
    }
    let spawner = Spawner::start_with(
        &spawner_program(),
        SpawnerOptions {
            slots: 0,
            ..SpawnerOptions::default()
        },
    )
    .unwrap();
    Run::bash("true").launch(&spawner).ok();
    let pid = Pid::from_raw(spawner.pid().unwrap());
    // The hard limit is inherited, and not everybody may raise it.
    let maximum = rustix::process::getrlimit(Resource::Nofile).maximum;
    let allow = |current| rustix::process::prlimit(pid, Resource::Nofile, Rlimit { current, maximum }).unwrap();
    let most = allow(Some(4));
    assert_eq!(
        most.current, maximum,
        "a spawner takes every descriptor that it may have"
    );
    let mut failed = 0;
    // From none at all, over some but not enough, to almost enough.
    for few in 4..40 {
        allow(Some(few));
        failed += usize::from(Run::bash("true").start(&spawner).is_err());
        assert!(spawner.is_alive(), "the want of one beyond {few} ended the spawner");
    }
    assert!(failed > 0, "the control: so few are enough");
    allow(maximum);
    assert_eq!(Run::bash("echo here").launch(&spawner).ok(), "here");
}
