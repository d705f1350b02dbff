//! Launches with every layer of the default profile.

use std::fs::File;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use crate::fixture::{TestRun, has, is_root, spawner, wait_for};
use skillbox_model::{ErrorCode, Layer, LayerState, Tier};
use skillbox_sandbox::{Bind, BindAccess, BindKind, BindOwner, CommandEnd, LaunchError, Profiles, WorkspaceSource};

#[test]
fn exit_codes_and_signals_are_distinguished() {
    let spawner = spawner();
    for (script, end) in [
        ("true", CommandEnd::Exited(0)),
        ("exit 3", CommandEnd::Exited(3)),
        ("exit 137", CommandEnd::Exited(137)),
        ("kill -9 $$", CommandEnd::Signaled(9)),
        ("kill -SEGV $$", CommandEnd::Signaled(11)),
    ] {
        let done = TestRun::bash(script).launch(&spawner);
        assert_eq!(done.result.end, end, "{script}");
        assert_eq!(done.result.exec_error, None);
    }
}

#[test]
fn a_command_that_cannot_be_executed_is_a_result_and_no_error() {
    let spawner = spawner();
    for (words, code, errno) in [
        (["/no/such/program"].as_slice(), 127, libc::ENOENT),
        (&["no-such-program"], 127, libc::ENOENT),
        (&["/usr"], 126, libc::EACCES),
        (&["/etc/passwd"], 126, libc::EACCES),
    ] {
        let done = TestRun::argv(words).launch(&spawner);
        assert_eq!(
            (done.result.end, done.result.exec_error),
            (CommandEnd::Exited(code), Some(errno)),
            "{words:?}"
        );
    }
    let done = TestRun::bash("echo : > work/empty; chmod +x work/empty; exec work/empty").launch(&spawner);
    assert_eq!(
        done.result.end,
        CommandEnd::Exited(0),
        "a shell runs a text without a shebang by itself"
    );
}

#[test]
fn a_step_that_fails_is_named() {
    let spawner = spawner();
    let mut run = TestRun::bash("true");
    run.job.cwd = "/workspace/nowhere".to_owned();
    let error = run.start(&spawner).err().unwrap();
    let LaunchError::Step { step, code, source, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(step, "chdir        /workspace/nowhere");
    assert_eq!(
        (code, source.raw_os_error()),
        (ErrorCode::InvalidRequest, Some(libc::ENOENT))
    );
}

#[test]
fn every_layer_is_enforced_for_root() {
    if !is_root() {
        return;
    }
    let done = TestRun::bash("true").launch(&spawner());
    assert_eq!(done.result.enforcement.tier, Tier::T0);
    for (layer, state) in &done.result.enforcement.layers {
        assert_eq!(*state, LayerState::Enforced, "{layer}");
    }
}

#[test]
fn the_script_is_an_ordinary_user_in_its_own_namespaces() {
    let spawner = spawner();
    let done =
        TestRun::bash("id -u; id -un; hostname; echo $$; ls /; grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status")
            .launch(&spawner);
    assert_eq!(
        done.ok(),
        "1000\nskill\nskillbox\n2\nbin\ndev\netc\nlib\nlib64\nproc\nrun\nsbin\ntmp\nusr\nvar\nworkspace\n\
         CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\n\
         CapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2"
    );
}

#[test]
fn the_command_has_only_the_named_environment_and_the_three_streams() {
    let spawner = spawner();
    let done = TestRun::bash("env -i /usr/bin/env; env; ls /proc/self/fd | wc -l").launch(&spawner);
    let mut names: Vec<&str> = done.ok().lines().map(|line| line.split('=').next().unwrap()).collect();
    names.sort_unstable();
    // Bash adds three of its own; `ls` has the directory open beside the three streams.
    assert_eq!(
        names,
        [
            "4", "HOME", "LANG", "LOGNAME", "PATH", "PWD", "SHLVL", "TERM", "TMPDIR", "USER", "_"
        ]
    );
}

#[test]
fn streams_can_be_opened_by_name_and_input_arrives() {
    let spawner = spawner();
    let mut run = TestRun::bash("cat > /dev/stdout; echo oops > /dev/stderr; cat /dev/stdin | wc -c");
    run.stdin = b"hello".to_vec();
    let done = run.launch(&spawner);
    assert_eq!(done.ok(), "hello0");
    assert_eq!(done.stderr, "oops\n");
}

#[test]
fn the_workspace_is_writable_bounded_and_readable_afterwards() {
    let spawner = spawner();
    let mut run = TestRun::bash(
        "echo result > out/a; head -c 2M /dev/zero > out/big; for i in $(seq 200); do : > work/$i; done; ls work | wc -l",
    );
    run.profile.limits.default.workspace = skillbox_model::ByteSize::mib(1);
    run.profile.limits.default.workspace_inodes = 100;
    let done = run.launch(&spawner);
    assert_eq!(done.file("out/a"), "result\n");
    assert!(done.stderr.contains("No space left on device"), "{}", done.stderr);
    let created: u32 = done.stdout.trim().parse().unwrap();
    assert!(created < 100, "{created}");
}

#[test]
fn home_tmp_and_shared_memory_work_and_are_private() {
    let spawner = spawner();
    for directory in ["$HOME", "$TMPDIR", "/tmp", "/var/tmp", "/dev/shm"] {
        let script = format!("ls -A {directory}; echo x > {directory}/left && cat {directory}/left");
        assert_eq!(TestRun::bash(&script).launch(&spawner).ok(), "x", "{directory}");
        assert_eq!(TestRun::bash(&script).launch(&spawner).ok(), "x", "{directory}, again");
    }
}

#[test]
fn what_is_not_named_is_absent_and_what_is_named_is_read_only() {
    let spawner = spawner();
    let done = TestRun::bash("for p in /etc/shadow /root /home /sys /boot /opt /srv /mnt /etc/hostname /etc/machine-id /dev/kmsg; do test -e $p && echo $p; done; true").launch(&spawner);
    assert_eq!(done.ok(), "");
    // The command has no controlling terminal, and pseudo-terminals are its own.
    let done =
        TestRun::bash("(: < /dev/tty) 2> /dev/null || echo none; readlink /dev/ptmx; ls /dev/pts").launch(&spawner);
    assert_eq!(done.ok(), "none\npts/ptmx\nptmx");
    let mut strict = TestRun::bash("ls -d /dev/tty /dev/ptmx /dev/pts 2> /dev/null; true");
    strict.profile = Profiles::shipped().get("strict").unwrap().clone();
    assert_eq!(strict.launch(&spawner).ok(), "");
    let done = TestRun::bash("for d in / /usr /etc /dev /proc /run /var; do touch $d/x 2>&1; done; echo x >> /etc/passwd; echo 1 > /proc/self/oom_score_adj; true").launch(&spawner);
    assert_eq!(done.stdout.lines().count(), 7, "{}", done.stdout);
    assert!(!done.ok().contains("cannot touch") || done.stdout.lines().all(|line| line.contains("cannot touch")));
    assert_eq!(done.stderr.lines().count(), 2, "{}", done.stderr);
}

#[test]
fn a_daemon_dies_with_the_command() {
    let spawner = spawner();
    let started =
        TestRun::bash("setsid bash -c 'sleep 300; echo late > /workspace/out/late' > /dev/null 2>&1 & echo done")
            .start(&spawner)
            .unwrap();
    let done = started.wait();
    assert_eq!(done.ok(), "done");
    assert!(done.took < Duration::from_secs(30), "{:?}", done.took);
}

#[test]
fn a_grandchild_that_keeps_the_output_open_does_not_delay_the_end() {
    let done = TestRun::bash("sleep 300 & echo done").launch(&spawner());
    assert_eq!(done.ok(), "done");
    assert!(done.took < Duration::from_secs(30), "{:?}", done.took);
}

#[test]
fn kill_ends_everything() {
    let spawner = spawner();
    let started = TestRun::bash("trap '' TERM INT HUP; sleep 300 & sleep 300")
        .start(&spawner)
        .unwrap();
    started.sandbox.kill().unwrap();
    let done = started.wait();
    assert_eq!(done.result.end, CommandEnd::Killed);
    assert!(done.took < Duration::from_secs(30), "{:?}", done.took);
}

#[test]
fn dropping_a_sandbox_kills_it() {
    let spawner = spawner();
    let started = TestRun::bash("sleep 300").start(&spawner).unwrap();
    let pidfd = started.sandbox.pidfd().try_clone_to_owned().unwrap();
    drop(started);
    assert!(wait_for(pidfd.as_fd(), Duration::from_secs(30)));
}

#[test]
fn a_fork_bomb_hits_the_limit_of_processes() {
    let spawner = spawner();
    let mut run = TestRun::bash("for i in $(seq 100); do sleep 300 & done; exit 7");
    run.profile.limits.default.pids = 20;
    let done = run.launch(&spawner);
    assert!(
        done.stderr.contains("Resource temporarily unavailable"),
        "{}",
        done.stderr
    );
    if is_root() && has("a pids controller", spawner.facts().unwrap().cgroup.pids.is_available()) {
        assert!(done.result.limit_hits.pids);
    }
}

#[test]
fn a_memory_bomb_hits_the_limit_of_memory() {
    let spawner = spawner();
    if !is_root()
        || !has(
            "a memory controller",
            spawner.facts().unwrap().cgroup.memory.is_available(),
        )
    {
        return;
    }
    let mut run = TestRun::python("x = bytearray(900 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1");
    run.profile.limits.default.memory = skillbox_model::ByteSize::mib(700);
    let done = run.launch(&spawner);
    assert_eq!(done.result.end, CommandEnd::Signaled(9));
    assert!(done.result.limit_hits.memory);
    let peak = done.result.usage.peak_memory_bytes.unwrap();
    assert!((600 << 20..=701 << 20).contains(&peak), "{peak}");
    // The next run is not affected.
    TestRun::bash("true").launch(&spawner).ok();
}

#[test]
fn cpu_time_is_counted_while_and_after() {
    let spawner = spawner();
    let started = TestRun::python("import time\nwhile time.process_time() < 0.8: pass")
        .start(&spawner)
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(50);
    let mut used = None;
    while used.is_none_or(|used| used <= Duration::from_millis(50)) {
        assert!(Instant::now() < deadline, "{used:?}");
        std::thread::sleep(Duration::from_millis(5));
        used = started.sandbox.cpu_used();
    }
    let done = started.wait();
    assert!(done.result.cpu > Duration::from_millis(700), "{:?}", done.result.cpu);
    assert!(used.is_some_and(|used| used < done.result.cpu), "{used:?}");
}

#[test]
fn binds_are_read_only_and_links_on_the_way_are_refused() {
    let spawner = spawner();
    let skill = tempfile::tempdir().unwrap();
    std::fs::write(skill.path().join("SKILL.md"), "text").unwrap();
    std::fs::set_permissions(skill.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let bind = |target: &str| Bind {
        target: target.to_owned(),
        kind: BindKind::Directory,
        access: BindAccess::ReadOnly,
        owner: BindOwner::Unchanged,
    };
    let mut run = TestRun::bash("cat skills/a/SKILL.md; touch skills/a/x; echo; ls /extra");
    run.job.binds = vec![bind("/workspace/skills/a"), bind("/extra")];
    run.binds = vec![
        File::open(skill.path()).unwrap().into(),
        File::open(skill.path()).unwrap().into(),
    ];
    let done = run.launch(&spawner);
    assert_eq!(done.ok(), "text\nSKILL.md");
    assert!(done.stderr.contains("Read-only file system"), "{}", done.stderr);

    let mut run = TestRun::bash("true");
    run.job.binds = vec![bind("/workspace/trap/a")];
    run.binds = vec![File::open(skill.path()).unwrap().into()];
    let workspace = spawner.create_workspace(skillbox_model::ByteSize::mib(1), 100).unwrap();
    rustix::fs::symlinkat("/etc", &workspace, "trap").unwrap();
    run.workspace = Some(workspace);
    let error = run.start(&spawner).err().unwrap();
    assert_eq!(error.code(), ErrorCode::PathEscape, "{error}");
}

#[test]
fn a_workspace_on_disk_keeps_what_was_written() {
    if !is_root() {
        return;
    }
    let spawner = spawner();
    let directory = tempfile::tempdir().unwrap();
    let owner = spawner.script_ids().unwrap();
    std::os::unix::fs::chown(directory.path(), Some(owner.uid), Some(owner.gid)).unwrap();
    let mut run = TestRun::bash("echo kept > file; chmod u+s file; stat -c %u file");
    run.job.workspace = WorkspaceSource::Directory {
        quota: LayerState::Partial {
            reason: "watched".to_owned(),
        },
    };
    run.workspace = Some(File::open(directory.path()).unwrap().into());
    let done = run.launch(&spawner);
    assert_eq!(done.ok(), "1000");
    assert_eq!(
        done.result.enforcement.layers[&Layer::WorkspaceQuota],
        LayerState::Partial {
            reason: "watched".to_owned()
        }
    );
    assert_eq!(
        std::fs::read_to_string(directory.path().join("file")).unwrap(),
        "kept\n"
    );
    let metadata = std::fs::metadata(directory.path().join("file")).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&metadata), owner.uid);
}

#[test]
fn loopback_works_only_with_a_profile_that_allows_it() {
    let server = "import socket\ns = socket.socket()\ns.bind(('127.0.0.1', 0))\ns.listen()\nc = socket.create_connection(s.getsockname())\nprint('connected')";
    let spawner = spawner();
    assert_eq!(
        TestRun::python(server).profile("loopback").launch(&spawner).ok(),
        "connected"
    );
    let refused = TestRun::python(server).launch(&spawner);
    assert_eq!(refused.result.end, CommandEnd::Exited(1));
    assert!(
        refused.stderr.contains("Address family not supported"),
        "{}",
        refused.stderr
    );
    // A run after one with loopback has none of it.
    let done = TestRun::bash(
        "cat /proc/net/dev | tail -n +3 | wc -l; cat /sys/class/net/lo/operstate 2>/dev/null; cat /proc/net/if_inet6",
    )
    .launch(&spawner);
    assert_eq!(done.ok(), "1");
}

#[test]
fn many_runs_at_once_are_separate() {
    let spawner = spawner();
    let threads: Vec<_> = (0..16)
        .map(|number| {
            let spawner = spawner.clone();
            std::thread::spawn(move || {
                let script =
                    format!("echo {number} > /dev/shm/x; sleep 0.2; cat /dev/shm/x; ls /proc | grep -c '^[0-9]'");
                (number, TestRun::bash(&script).launch(&spawner).ok().to_owned())
            })
        })
        .collect();
    for thread in threads {
        let (number, output) = thread.join().unwrap();
        let seen: Vec<&str> = output.lines().collect();
        assert_eq!(seen[0], number.to_string());
        // Bash, its substitution's ls and grep: the reaper is not visible.
        assert!(seen[1].parse::<u32>().unwrap() <= 3, "{output}");
    }
}

#[test]
fn a_long_command_line_is_passed_completely() {
    let long = "x".repeat(100_000);
    let mut run = TestRun::argv(&["bash", "-c", "echo ${#1} ${#V}", "bash", &long]);
    run.job.env.push(("V".into(), "y".repeat(100_000).into()));
    assert_eq!(run.launch(&spawner()).ok(), "100000 100000");
}

#[test]
fn a_private_input_is_readable_as_the_scripts_own_and_the_original_is_untouched() {
    if !is_root() {
        return;
    }
    let spawner = spawner();
    // On the disk under the build directory: not every kernel can show a tmpfs with other owners.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("private");
    std::fs::write(&path, "secret").unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let run = |owner: BindOwner| {
        let mut run = TestRun::bash("cat work/in; stat -c %u work/in; echo x > work/in");
        run.job.binds = vec![Bind {
            target: "/workspace/work/in".to_owned(),
            kind: BindKind::File,
            access: BindAccess::ReadOnly,
            owner,
        }];
        run.binds = vec![File::open(&path).unwrap().into()];
        run.launch(&spawner)
    };
    let done = run(BindOwner::Script);
    assert_eq!(done.stdout, "secret1000\n", "{}", done.stderr);
    assert!(done.stderr.contains("Read-only file system"), "{}", done.stderr);
    let done = run(BindOwner::Unchanged);
    assert!(done.stderr.contains("Permission denied"), "{}", done.stderr);
    let metadata = std::fs::metadata(&path).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&metadata), 0);
}
