//! Parked sandboxes: each serves one run, and the run sees nothing of the time before.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use skillbox_model::{Layer, LayerState};
use skillbox_sandbox::{CommandEnd, Need, Op, PrepareOp, Spawner, SpawnerOptions, TemplateOp, VisiblePath};

use crate::fixture::{TestRun, is_root, spawner, spawner_program};

fn with_max_parked(max_parked: u8) -> Spawner {
    let options = SpawnerOptions {
        max_parked,
        ..SpawnerOptions::default()
    };
    Spawner::start_with_options(&spawner_program(), options).unwrap()
}

fn children(spawner: &Spawner) -> Vec<i32> {
    let pid = spawner.pid().unwrap();
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    list.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// Waits until there are at least this many children and their list is stable, and returns them.
fn parked(spawner: &Spawner, count: usize) -> Vec<i32> {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut before = Vec::new();
    loop {
        // A killed parked sandbox stays a zombie until the spawner takes it.
        let mut now = children(spawner);
        now.retain(|pid| !status(*pid, "State").starts_with('Z'));
        // A parked child sleeps; one that is being prepared runs.
        let are_asleep = now.iter().all(|pid| status(*pid, "State").starts_with('S'));
        if now.len() >= count && now == before && are_asleep {
            return now;
        }
        assert!(Instant::now() < deadline, "{now:?} instead of {count} parked");
        before = now;
        std::thread::sleep(Duration::from_millis(40));
    }
}

/// Waits for the end of all children, and checks that no sandbox is parked afterwards.
fn assert_nothing_parked(spawner: &Spawner) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !children(spawner).is_empty() {
        assert!(Instant::now() < deadline, "{:?}", children(spawner));
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(children(spawner), Vec::<i32>::new());
}

#[test]
fn a_used_sandbox_is_never_used_again() {
    let spawner = spawner();
    let look = "ls -A /dev/shm /workspace/work; hostname; echo x > /dev/shm/left; echo x > work/left; \
                hostname other 2>/dev/null; true";
    let mut seen = BTreeSet::new();
    for _ in 0..12 {
        let before = parked_now(&spawner);
        let run = TestRun::bash(look).launch(&spawner);
        assert_eq!(run.ok().replace('\n', " "), "/dev/shm:  /workspace/work: skillbox");
        // The sandbox of the run has ended, and no other one has its pid.
        for used in before.difference(&parked(&spawner, 1).into_iter().collect()) {
            assert!(seen.insert(*used), "{used} was used twice");
        }
    }
    assert!(seen.len() >= 11, "only {} of 12 runs had a parked sandbox", seen.len());
}

fn parked_now(spawner: &Spawner) -> BTreeSet<i32> {
    children(spawner).into_iter().collect()
}

#[test]
fn a_run_takes_the_parked_child() {
    let spawner = spawner();
    TestRun::bash("true").launch(&spawner).ok();
    let waiting = parked(&spawner, 1);
    let started = TestRun::bash("sleep 2").start(&spawner).unwrap();
    assert!(
        children(&spawner).contains(&waiting[0]),
        "the parked sandbox was not used"
    );
    started.wait().ok();
    let deadline = Instant::now() + Duration::from_secs(60);
    while children(&spawner).contains(&waiting[0]) {
        assert!(Instant::now() < deadline, "the parked sandbox outlives its run");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_parked_sandbox_serves_runs_that_bring_more_than_the_one_before() {
    let spawner = spawner();
    TestRun::bash("true").launch(&spawner).ok();
    let waiting = parked(&spawner, 1);
    let place = tempfile::tempdir().unwrap();
    let run = TestRun::bash("ls -d /workspace/skill").with_skill(place.path());
    assert_eq!(run.launch(&spawner).ok(), "/workspace/skill");
    // A sandbox that was created for this run alone would leave all parked ones in place.
    let deadline = Instant::now() + Duration::from_secs(60);
    while waiting.iter().all(|sandbox| children(&spawner).contains(sandbox)) {
        assert!(Instant::now() < deadline, "none of {waiting:?} was used");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A line of a process's status.
fn status(pid: i32, name: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_default().trim_start_matches(':').trim().to_owned()
}

#[test]
fn the_reaper_is_confined_before_there_is_a_run() {
    let spawner = spawner();
    TestRun::bash("true").launch(&spawner).ok();
    for reaper in parked(&spawner, 1) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while status(reaper, "Seccomp") != "2" {
            assert!(Instant::now() < deadline, "{reaper} has no filter");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(status(reaper, "NoNewPrivs"), "1");
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(status(reaper, set), "0000000000000000", "{set}");
        }
    }
}

#[test]
fn a_step_that_fails_in_a_parked_sandbox_is_reported_with_its_number() {
    let spawner = spawner();
    TestRun::bash("true").launch(&spawner).ok();
    for name in ["first", "second"] {
        parked(&spawner, 1);
        let mut run = TestRun::bash("echo it ran");
        run.job.cwd = format!("/workspace/{name}");
        let plan = run.plan(&spawner).unwrap().to_string();
        // The child may report it before or after the spawner reports the launch.
        let error = match run.start(&spawner) {
            Ok(mut started) => started.sandbox.finish(&started.plan).unwrap_err(),
            Err(error) => error,
        };
        assert_eq!(error.code(), skillbox_model::ErrorCode::InvalidRequest);
        let message = error.to_string();
        let number = message.split_whitespace().nth(1).unwrap();
        let step = format!("  {number}  chdir        /workspace/{name}");
        assert!(
            plan.contains(&step) && message.contains("enter the working directory"),
            "{message}"
        );
    }
}

#[test]
fn a_layer_that_failed_while_a_sandbox_parked_is_not_reported_as_enforced() {
    let spawner = spawner();
    let launch = || {
        let run = TestRun::bash("true");
        let mut plan = run.plan(&spawner).unwrap();
        // A file that cannot be covered, where the step is only preferred.
        let mut steps = plan.steps.to_vec();
        let mask = steps
            .iter_mut()
            .find(|step| matches!(step.op, Op::Prepare(PrepareOp::Mask { .. })))
            .unwrap();
        mask.need = Need::Preferred;
        mask.op = PrepareOp::Mask {
            path: "/etc/passwd/below-a-file".to_owned(),
        }
        .into();
        plan.steps = steps.into();
        run.start_by(plan, &spawner).unwrap().wait()
    };
    for _ in 0..3 {
        let applied = launch().result.enforcement;
        let LayerState::Absent { reason } = &applied.layers[&Layer::Proc] else {
            panic!("{applied:?}");
        };
        assert!(reason.contains("cannot mask"), "{reason}");
        parked(&spawner, 1);
    }
}

#[test]
fn the_next_launch_reports_that_a_sandbox_could_not_be_parked() {
    let spawner = spawner();
    let mut plan = TestRun::bash("true").plan(&spawner).unwrap();
    let mut steps = plan.steps.to_vec();
    let bind = steps.iter_mut().find_map(|step| match &mut step.op {
        Op::Template(TemplateOp::BindHost { path, optional, .. }) => Some((path, optional)),
        _ => None,
    });
    let (path, optional) = bind.unwrap();
    "/no/such/directory".clone_into(path);
    *optional = false;
    plan.steps = steps.into();
    spawner.park_sandbox(&plan).unwrap();
    let launch = || TestRun::bash("true").start(&spawner).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    let reported = loop {
        let started = launch();
        let failure = started.sandbox.parking_failure().cloned();
        started.wait().ok();
        if let Some(failure) = failure {
            break failure.to_string();
        }
        assert!(Instant::now() < deadline, "no launch reports the failure");
        // The spawner parks when it is idle.
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(
        reported.contains("cannot open: No such file or directory"),
        "{reported}"
    );
    // The launches themselves are not affected, and the failure is reported once.
    let started = launch();
    assert_eq!(started.sandbox.parking_failure(), None);
    started.wait().ok();
}

#[test]
fn without_a_pid_namespace_nothing_is_parked() {
    let spawner = with_max_parked(2);
    let directory = tempfile::tempdir().unwrap();
    let run = TestRun::bash("true")
        .only(&[Layer::Seccomp])
        .in_directory(directory.path());
    let plan = run.plan(&spawner).unwrap();
    spawner.park_sandbox(&plan).unwrap();
    // The spawner serves requests in order.
    spawner.create_workspace(skillbox_model::ByteSize::mib(1), 16).unwrap();
    assert_nothing_parked(&spawner);
}

#[test]
fn a_parked_sandbox_reports_a_command_that_does_not_exist() {
    let spawner = spawner();
    TestRun::bash("true").launch(&spawner).ok();
    parked(&spawner, 1);
    let done = TestRun::argv(&["no-such-program"]).launch(&spawner);
    assert_eq!(
        (done.result.end, done.result.exec_error),
        (CommandEnd::Exited(127), Some(libc::ENOENT))
    );
}

#[test]
fn without_a_limit_above_zero_nothing_is_parked() {
    let spawner = with_max_parked(0);
    for _ in 0..3 {
        TestRun::bash("true").launch(&spawner).ok();
    }
    assert_nothing_parked(&spawner);
}

#[test]
fn a_parked_sandbox_that_died_is_replaced() {
    if !is_root() {
        return;
    }
    let spawner = spawner();
    TestRun::bash("true").launch(&spawner).ok();
    for pid in parked(&spawner, 1) {
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
        // A kill is not immediate, and a run that starts meanwhile is killed as well.
        let deadline = Instant::now() + Duration::from_secs(60);
        while !matches!(status(pid, "State").chars().next(), None | Some('Z')) {
            assert!(Instant::now() < deadline, "{pid} does not die");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    assert_eq!(TestRun::bash("echo here").launch(&spawner).ok(), "here");
    parked(&spawner, 1);
}

#[test]
fn the_mounts_of_a_run_are_attached_when_it_starts() {
    let spawner = spawner();
    let place = tempfile::tempdir().unwrap();
    let show = |name: &str| {
        let directory = place.path().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("content"), name).unwrap();
        TestRun::bash("cat /workspace/skill/content").with_skill(&directory)
    };
    std::fs::set_permissions(place.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for name in ["first", "second", "third"] {
        assert_eq!(show(name).launch(&spawner).ok(), name);
        parked(&spawner, 1);
        let mut again = show(name);
        // The same directory, changed while a sandbox is parked.
        std::fs::write(place.path().join(name).join("content"), "changed").unwrap();
        again.job.cwd = "/workspace".to_owned();
        assert_eq!(again.launch(&spawner).ok(), "changed");
    }
}

#[test]
fn a_sandbox_that_was_parked_before_the_host_changed_is_not_used() {
    if !is_root() {
        return;
    }
    let spawner = spawner();
    let place = tempfile::Builder::new()
        .prefix("skillbox-visible-")
        .tempdir_in("/opt")
        .unwrap();
    std::fs::set_permissions(place.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let visible = place.path().join("visible");
    let make = |content: &str| {
        let new = place.path().join("new");
        std::fs::create_dir(&new).unwrap();
        std::fs::write(new.join("content"), content).unwrap();
        let _ = std::fs::remove_dir_all(&visible);
        std::fs::rename(&new, &visible).unwrap();
    };
    let show = || {
        let mut run = TestRun::bash(&format!("cat {}/content", visible.display()));
        run.profile.filesystem.visible.push(VisiblePath {
            path: visible.to_str().unwrap().to_owned(),
            ..run.profile.filesystem.visible[0].clone()
        });
        run
    };
    make("old");
    assert_eq!(show().launch(&spawner).ok(), "old");
    let waiting = parked(&spawner, 1);
    make("new");
    // The spawner checks paths of the host at most once a second.
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(show().launch(&spawner).ok(), "new");
    assert!(!parked(&spawner, 1).contains(&waiting[0]));
}

#[test]
fn two_hundred_runs_at_once_all_succeed() {
    let spawner = spawner();
    let begin = Instant::now();
    let times: Vec<Duration> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..200)
            .map(|number| {
                let spawner = &spawner;
                scope.spawn(move || {
                    let begin = Instant::now();
                    let message = TestRun::bash(&format!("echo {number}")).launch(spawner);
                    assert_eq!(message.ok(), number.to_string());
                    begin.elapsed()
                })
            })
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    let whole = begin.elapsed();
    let slowest = times.into_iter().max().unwrap();
    println!("200 runs in {whole:?}, the slowest took {slowest:?}");
    // Far above the time on a busy machine: only a run that the spawner lost takes so long.
    assert!(slowest < Duration::from_secs(120), "a run starved: {slowest:?}");
    let left = parked(&spawner, usize::from(SpawnerOptions::DEFAULT_MAX_PARKED));
    assert_eq!(left.len(), usize::from(SpawnerOptions::DEFAULT_MAX_PARKED), "{left:?}");
}

/// The processes that a process has a pidfd of.
fn watched_by(pid: i32) -> Vec<i32> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap();
    let texts = entries.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
    texts
        .filter_map(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("Pid:"))?;
            line.trim().parse().ok()
        })
        .collect()
}

/// The kernel reports the death of a parent only to a child that asked before. A child that asks later has to check, and it
/// has to check the spawner: a spawner that was killed early used to leave a sandbox behind.
#[test]
fn a_child_watches_its_spawner_and_not_itself() {
    let spawner = spawner();
    TestRun::bash("true").launch(&spawner).ok();
    let waiting = parked(&spawner, 1);
    assert_eq!(watched_by(waiting[0]), [spawner.pid().unwrap()]);
}
