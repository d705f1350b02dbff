//! 3.7: namespaces, mounts and privileged system calls.

use serde_json::json;

use crate::harness::{Fixture, is_refusal, need_root, program, run_to_completion};

/// Checks that the kernel handles these calls outside, and refuses them inside.
fn assert_calls_refused(fixture: &Fixture, calls: &[&str]) {
    let words = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let outside = words(fixture.control_probe("raw_call.py", calls));
    let inside = words(fixture.run_probe("raw_call.py", calls));
    assert_eq!((outside.len(), inside.len()), (calls.len(), calls.len()));
    let mut controls = 0;
    for ((call, outside), inside) in calls.iter().zip(outside).zip(inside) {
        assert!(is_refusal(&inside), "{call}: {inside}");
        controls += usize::from(outside == "reached");
    }
    // Current kernels lack some of the calls; the others show that the test could fail.
    assert!(
        !need_root() || controls * 2 > calls.len(),
        "the kernel handles only {controls} of {} outside",
        calls.len()
    );
}

#[test]
pub fn h080_no_namespace_can_be_created() {
    let fixture = Fixture::new();
    let kinds = ["user", "mount", "pid", "net", "ipc", "uts", "cgroup", "time"];
    let unshare: Vec<String> = kinds.iter().map(|kind| format!("unshare_{kind}")).collect();
    for call in &unshare {
        if need_root() {
            assert_eq!(fixture.control_probe("raw_call.py", &[call]), "reached", "{call}");
        }
        fixture.assert_refused_inside(&[("raw_call.py", &[call])]);
    }
    for kind in &kinds[..7] {
        let call = format!("clone_{kind}");
        if need_root() {
            assert_eq!(fixture.control_probe("raw_call.py", &[&call]), "reached", "{call}");
        }
        fixture.assert_refused_inside(&[("raw_call.py", &[&call])]);
    }
    // Libraries fall back to clone only when clone3 fails with ENOSYS.
    assert_eq!(fixture.run_probe("raw_call.py", &["clone3"]), "ENOSYS");
    let answer = fixture.run_shell("unshare -Ur id -u; unshare -n true; unshare -m true; echo $?");
    assert!(!answer.stdout().starts_with('0'), "{}", answer.describe());
}

#[test]
pub fn h081_no_namespace_can_be_joined() {
    let fixture = Fixture::new();
    assert_calls_refused(&fixture, &["setns"]);
    let enter = "for n in user mnt pid net ipc uts cgroup; do nsenter --$n=/proc/1/ns/$n true 2>/dev/null && echo entered $n; \
                 nsenter --$n=/proc/self/ns/$n true 2>/dev/null && echo entered $n; done; echo done";
    let answer = fixture.run_shell(&enter.replace("--mnt", "--mount"));
    assert_eq!(answer.stdout(), "done\n");
    if need_root() {
        assert_eq!(
            fixture.control_shell("nsenter --uts=/proc/self/ns/uts true && echo entered"),
            "entered"
        );
    }
}

#[test]
pub fn h082_nothing_can_be_mounted() {
    let fixture = Fixture::new();
    let ways = [
        "tmpfs",
        "proc",
        "overlay",
        "cgroup",
        "bind",
        "unmount",
        "pivot",
        "open_tree",
        "move_mount",
        "fsopen",
        "mount_setattr",
    ];
    for way in ways {
        if need_root() {
            let target = fixture.path_str("scratch");
            let private = ["unshare", "--mount", "--pid", "--fork"];
            assert_eq!(
                fixture.control_probe_with(&private, "mounting.py", &[way, &target, "prepare"]),
                "allowed",
                "{way}"
            );
        }
        fixture.assert_refused_inside(&[("mounting.py", &[way, "/workspace/work"])]);
    }
    fixture.assert_refused_inside(&[
        ("mounting.py", &["unmount", "/proc"]),
        ("mounting.py", &["unmount", "/workspace/skills/probe"]),
    ]);
    assert_calls_refused(&fixture, &["mount", "umount2", "pivot_root", "fspick", "chroot"]);
}

#[test]
pub fn h083_keyrings_are_inaccessible() {
    let fixture = Fixture::new();
    for _ in 0..2 {
        assert_calls_refused(&fixture, &["add_key", "request_key", "keyctl"]);
    }
    let keys = fixture.run_shell("cat /proc/keys /proc/key-users 2>/dev/null");
    assert_eq!(keys.stdout(), "");
}

#[test]
pub fn h084_privileged_calls_fail_without_killing_the_caller() {
    let fixture = Fixture::new();
    assert_calls_refused(
        &fixture,
        &[
            "bpf",
            "perf_event_open",
            "userfaultfd",
            "io_uring_setup",
            "io_uring_enter",
            "io_uring_register",
            "memfd_secret",
            "kexec_load",
            "kexec_file_load",
            "init_module",
            "finit_module",
            "delete_module",
            "swapon",
            "swapoff",
            "quotactl",
            "acct",
            "reboot",
            "iopl",
            "ioperm",
            "modify_ldt",
            "lookup_dcookie",
            "name_to_handle_at",
            "open_by_handle_at",
            "fanotify_init",
            "fanotify_mark",
            "ptrace",
            "process_vm_readv",
            "process_vm_writev",
            "kcmp",
            "pidfd_getfd",
            "process_madvise",
            "mbind",
            "move_pages",
            "syslog",
        ],
    );
}

#[test]
pub fn h085_foreign_calling_conventions_do_not_bypass_the_filter() {
    let fixture = Fixture::new();
    assert_eq!(
        fixture.control_probe("foreign_abi.py", &["x32"]),
        "ENOSYS",
        "ordinary kernels have no x32; the filter must not rely on it"
    );
    let outside = fixture.control_probe("foreign_abi.py", &["int80"]);
    assert!(outside == "allowed" || outside == "ENOSYS", "{outside}");
    for abi in ["int80", "x32"] {
        let answer = fixture
            .request(json!({"argv": ["python3", "scripts/foreign_abi.py", abi]}))
            .run()
            .expect_report();
        let word = answer.stdout().trim();
        // The filter returns an error or kills the process; both are refusals.
        assert!(
            is_refusal(word) || answer["signal"] == 31,
            "{abi}: {}",
            answer.describe()
        );
    }
}

#[test]
fn h086_a_seccomp_filter_of_the_script_loosens_nothing() {
    let fixture = Fixture::new();
    for way in ["prctl", "filter", "listener"] {
        assert_eq!(fixture.control_probe("loosen_seccomp.py", &[way]), "loosened", "{way}");
        let word = fixture.run_probe("loosen_seccomp.py", &[way]);
        assert!(is_refusal(&word), "{way}: {word}");
    }
    let mode = fixture.run_shell("grep ^Seccomp: /proc/self/status");
    assert_eq!(mode.stdout().trim(), "Seccomp:\t2");
}

#[test]
fn h087_the_personality_cannot_be_changed() {
    let fixture = Fixture::new();
    assert_calls_refused(&fixture, &["personality_no_randomize", "personality_read_implies_exec"]);
    assert_eq!(
        fixture.run_shell("cat /proc/self/personality").stdout().trim(),
        "00000000"
    );
}

#[test]
pub fn h088_the_clock_cannot_be_set() {
    let fixture = Fixture::new();
    assert_calls_refused(
        &fixture,
        &[
            "settimeofday",
            "clock_settime",
            "adjtimex",
            "clock_adjtime",
            "alarm_timer",
        ],
    );
    let before = std::time::SystemTime::now();
    fixture.run_shell("date -s '2001-01-01'; hwclock --systohc; true");
    assert!(
        before.elapsed().is_ok_and(|passed| passed.as_secs() < 3600),
        "the clock of the host changed"
    );
}

#[test]
pub fn h089_the_host_name_cannot_be_set() {
    let fixture = Fixture::new();
    let host = fixture.control_shell("uname -n");
    assert_calls_refused(&fixture, &["sethostname", "setdomainname"]);
    fixture.run_shell("hostname hacked; true");
    assert_eq!(fixture.control_shell("uname -n"), host);
    if need_root() {
        assert_eq!(
            fixture.control_shell("unshare --uts bash -c 'hostname renamed; uname -n'"),
            "renamed"
        );
    }
}

#[test]
pub fn h090_no_capability_is_held_or_gained() {
    let fixture = Fixture::new();
    if need_root() {
        assert_eq!(fixture.control_probe("capabilities.py", &["held"]), "some");
        for way in ["capset", "ambient", "bounding"] {
            assert_eq!(fixture.control_probe("capabilities.py", &[way]), "allowed", "{way}");
        }
    }
    assert_eq!(fixture.run_probe("capabilities.py", &["held"]), "none");
    for way in ["capset", "ambient", "bounding"] {
        fixture.assert_refused_inside(&[("capabilities.py", &[way])]);
    }
    let all = fixture.run_shell("cat /proc/[0-9]*/status | grep ^Cap | awk '{print $2}' | sort -u");
    assert_eq!(
        all.stdout().trim(),
        "0000000000000000",
        "every process of the sandbox: {}",
        all.describe()
    );
}

#[test]
pub fn h091_control_groups_are_inaccessible() {
    let fixture = Fixture::new();
    let groups = [
        "/sys/fs/cgroup/memory/tasks",
        "/sys/fs/cgroup/cgroup.procs",
        "/sys/fs/cgroup/memory/release_agent",
        "/sys/fs/cgroup/unified/cgroup.procs",
    ];
    let exist = groups.iter().filter(|path| std::path::Path::new(path).exists()).count();
    if need_root() {
        let writable = groups
            .iter()
            .filter(|path| fixture.control_probe("open_for_writing.py", &[path]) == "allowed")
            .count();
        assert!(writable > 0 && exist > 0, "the control can write to no control group");
    }
    for path in groups {
        fixture.assert_refused_inside(&[("open_for_writing.py", &[path])]);
    }
    fixture.assert_refused_inside(&[("mounting.py", &["cgroup", "/workspace/work"])]);
    // /proc/self/cgroup shows the root of a namespace and, with cgroup v1, the group of the run.
    let groups_inside = fixture.run_shell("cat /proc/self/cgroup");
    for line in groups_inside.stdout().lines() {
        assert!(
            line.ends_with(":/") || line.contains(":/skillbox-"),
            "a group of the host is visible inside: {}",
            groups_inside.describe()
        );
    }
}

#[test]
fn h092_a_landlock_ruleset_of_the_script_only_tightens() {
    let fixture = Fixture::new();
    assert_eq!(fixture.control_probe("landlock_self.py", &[]), "tightens");
    assert_eq!(fixture.run_probe("landlock_self.py", &[]), "tightens");
}

#[test]
pub fn h093_no_input_can_be_injected_into_the_callers_terminal() {
    let fixture = Fixture::new();
    let in_terminal = |words: &[&str]| {
        let mut command = program("python3");
        command
            .arg(fixture.path("launchers/in_terminal.py"))
            .args(words)
            .current_dir(fixture.path("skills/probe"));
        command
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("TMPDIR", fixture.path("tmp"))
            .env("HOME", fixture.path("home"));
        let output = run_to_completion(&mut command, b"", std::time::Duration::from_secs(120));
        let terminal: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (
            terminal["output"].as_str().unwrap().to_owned(),
            terminal["typed"].as_str().unwrap().to_owned(),
        )
    };
    let terminals = [
        "inherited",
        "/dev/tty",
        "/dev/console",
        "/dev/stdin",
        "/proc/self/fd/0",
        "/dev/pts/0",
    ];
    let (_, typed) = in_terminal(&["/usr/bin/python3", "scripts/terminal.py", "/dev/tty"]);
    let tiocsti_works = typed.contains("typed-by-probe");
    assert!(
        tiocsti_works || std::fs::read_to_string("/proc/sys/dev/tty/legacy_tiocsti").is_ok_and(|on| on.trim() == "0")
    );
    let binary = fixture.binary().to_str().unwrap().to_owned();
    let (skills, state) = (fixture.path_str("skills"), fixture.path_str("state"));
    for path in terminals {
        let line = [
            &binary,
            "--skills",
            &skills,
            "--state-dir",
            &state,
            "run",
            "probe",
            "--",
            "python3",
            "scripts/terminal.py",
            path,
        ];
        let (output, typed) = in_terminal(&line);
        assert!(!typed.contains("typed-by-probe"), "{path}: {output}");
        let word = output
            .lines()
            .map(str::trim)
            .find(|line| is_refusal(line) || *line == "allowed");
        assert!(word.is_some_and(is_refusal), "{path}: {output}");
    }
    let session =
        fixture.run_shell("tty; ps -o tty= -p $$ 2>/dev/null; cut -d' ' -f7 /proc/self/stat; ls /dev/pts 2>/dev/null");
    assert!(
        session.stdout().lines().any(|line| line == "0"),
        "no controlling terminal: {}",
        session.describe()
    );
}

#[test]
pub fn h094_cached_pages_of_the_host_cannot_be_changed() {
    let fixture = Fixture::new();
    let input = fixture.add_host_file("pages.txt", "original content of a file\n".repeat(300));
    let files = ["/usr/lib/os-release", "/usr/bin/env"];
    let before: Vec<Vec<u8>> = files.iter().map(|file| fixture.read_host_file(file)).collect();
    for file in files.iter().chain(&["/workspace/skills/probe/SKILL.md"]) {
        assert_eq!(fixture.run_probe("page_cache.py", &[file]), "unchanged", "{file}");
    }
    let request = json!({
        "command": "python3 scripts/page_cache.py work/inputs/pages.txt",
        "inputs": [{"from": format!("host://{}", input.display()), "mode": "link"}],
    });
    assert_eq!(
        fixture.request(request).allow_host_inputs().run().expect_word(),
        "unchanged"
    );
    let after: Vec<Vec<u8>> = files.iter().map(|file| fixture.read_host_file(file)).collect();
    assert_eq!(before, after);
    assert_eq!(
        std::fs::read_to_string(input).unwrap(),
        "original content of a file\n".repeat(300)
    );
}

#[test]
pub fn h095_unneeded_socket_families_are_refused() {
    let fixture = Fixture::new();
    // Numbers of families: inet, inet6, netlink, packet, key, bluetooth, alg, vsock, xdp, can, tipc, smc, rds, kcm.
    let sockets = [
        ["2", "stream", "0"],
        ["2", "dgram", "0"],
        ["2", "raw", "1"],
        ["2", "stream", "132"],
        ["10", "stream", "0"],
        ["10", "dgram", "0"],
        ["16", "raw", "0"],
        ["16", "raw", "9"],
        ["16", "raw", "15"],
        ["16", "raw", "12"],
        ["17", "raw", "3"],
        ["17", "dgram", "0"],
        ["15", "raw", "2"],
        ["31", "raw", "1"],
        ["38", "seqpacket", "0"],
        ["40", "stream", "0"],
        ["44", "raw", "0"],
        ["29", "raw", "1"],
        ["30", "stream", "0"],
        ["43", "stream", "0"],
        ["21", "seqpacket", "0"],
        ["41", "dgram", "0"],
    ];
    let mut controls = 0;
    for socket in &sockets {
        controls += usize::from(fixture.control_probe("socket_family.py", socket) == "allowed");
    }
    assert!(controls >= 4, "only {controls} of these exist outside");
    let probes: Vec<(&str, &[&str])> = sockets.iter().map(|socket| ("socket_family.py", &socket[..])).collect();
    fixture.assert_refused_inside(&probes);
    // Unix sockets work, so that processes of one sandbox can communicate.
    assert_eq!(fixture.run_probe("socket_family.py", &["1", "stream", "0"]), "allowed");
    assert_eq!(fixture.run_probe("socket_family.py", &["1", "dgram", "0"]), "allowed");
}
