//! 3.7: namespaces, mounts and the calls of administrators.

use serde_json::json;

use crate::lab::{Scene, is_refusal, need_root, program, run_to_end};

/// Checks that calls come through to the kernel outside, and not inside.
fn unreachable_calls(scene: &Scene, calls: &[&str]) {
    let words = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let outside = words(scene.control("raw_call.py", calls));
    let inside = words(scene.probe("raw_call.py", calls));
    assert_eq!((outside.len(), inside.len()), (calls.len(), calls.len()));
    let mut controls = 0;
    for ((call, outside), inside) in calls.iter().zip(outside).zip(inside) {
        assert!(is_refusal(&inside), "{call}: {inside}");
        controls += usize::from(outside == "reached");
    }
    // Some calls are in no kernel of today; the others show that the test could fail.
    assert!(
        !need_root() || controls * 2 > calls.len(),
        "only {controls} of {} reach the kernel outside",
        calls.len()
    );
}

#[test]
pub fn h080_no_new_namespaces() {
    let scene = Scene::new();
    let kinds = ["user", "mount", "pid", "net", "ipc", "uts", "cgroup", "time"];
    let unshare: Vec<String> = kinds.iter().map(|kind| format!("unshare_{kind}")).collect();
    for call in &unshare {
        if need_root() {
            assert_eq!(scene.control("raw_call.py", &[call]), "reached", "{call}");
        }
        scene.refuses_inside(&[("raw_call.py", &[call])]);
    }
    for kind in &kinds[..7] {
        let call = format!("clone_{kind}");
        if need_root() {
            assert_eq!(scene.control("raw_call.py", &[&call]), "reached", "{call}");
        }
        scene.refuses_inside(&[("raw_call.py", &[&call])]);
    }
    // Libraries fall back to clone only when clone3 does not exist at all.
    assert_eq!(scene.probe("raw_call.py", &["clone3"]), "ENOSYS");
    let answer = scene.sh("unshare -Ur id -u; unshare -n true; unshare -m true; echo $?");
    assert!(!answer.stdout().starts_with('0'), "{}", answer.told());
}

#[test]
pub fn h081_no_namespace_can_be_joined() {
    let scene = Scene::new();
    unreachable_calls(&scene, &["setns"]);
    let enter = "for n in user mnt pid net ipc uts cgroup; do nsenter --$n=/proc/1/ns/$n true 2>/dev/null && echo entered $n; \
                 nsenter --$n=/proc/self/ns/$n true 2>/dev/null && echo entered $n; done; echo done";
    let answer = scene.sh(&enter.replace("--mnt", "--mount"));
    assert_eq!(answer.stdout(), "done\n");
    if need_root() {
        assert_eq!(
            scene.control_sh("nsenter --uts=/proc/self/ns/uts true && echo entered"),
            "entered"
        );
    }
}

#[test]
pub fn h082_nothing_can_be_mounted() {
    let scene = Scene::new();
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
            let target = scene.text("scratch");
            let private = ["unshare", "--mount", "--pid", "--fork"];
            assert_eq!(
                scene.control_behind(&private, "mounting.py", &[way, &target, "prepare"]),
                "allowed",
                "{way}"
            );
        }
        scene.refuses_inside(&[("mounting.py", &[way, "/workspace/work"])]);
    }
    scene.refuses_inside(&[
        ("mounting.py", &["unmount", "/proc"]),
        ("mounting.py", &["unmount", "/workspace/skills/probe"]),
    ]);
    unreachable_calls(&scene, &["mount", "umount2", "pivot_root", "fspick", "chroot"]);
}

#[test]
pub fn h083_keyrings_are_out_of_reach() {
    let scene = Scene::new();
    for _ in 0..2 {
        unreachable_calls(&scene, &["add_key", "request_key", "keyctl"]);
    }
    let keys = scene.sh("cat /proc/keys /proc/key-users 2>/dev/null");
    assert_eq!(keys.stdout(), "");
}

#[test]
pub fn h084_calls_of_administrators_are_refused_without_killing() {
    let scene = Scene::new();
    unreachable_calls(
        &scene,
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
pub fn h085_foreign_calling_conventions_are_no_way_round() {
    let scene = Scene::new();
    assert_eq!(
        scene.control("foreign_abi.py", &["x32"]),
        "ENOSYS",
        "ordinary kernels have no x32; the filter must not rely on it"
    );
    let outside = scene.control("foreign_abi.py", &["int80"]);
    assert!(outside == "allowed" || outside == "ENOSYS", "{outside}");
    for abi in ["int80", "x32"] {
        let answer = scene
            .ask(json!({"argv": ["python3", "scripts/foreign_abi.py", abi]}))
            .go()
            .reported();
        let word = answer.stdout().trim();
        // Refused with an error, or killed by the filter: both are no way round.
        assert!(is_refusal(word) || answer["signal"] == 31, "{abi}: {}", answer.told());
    }
}

#[test]
fn h086_a_filter_of_its_own_only_tightens() {
    let scene = Scene::new();
    for way in ["prctl", "filter", "listener"] {
        assert_eq!(scene.control("loosen_seccomp.py", &[way]), "loosened", "{way}");
        let word = scene.probe("loosen_seccomp.py", &[way]);
        assert!(word == "tightens" || is_refusal(&word), "{way}: {word}");
    }
    assert_eq!(
        scene.probe("loosen_seccomp.py", &["filter"]),
        "tightens",
        "programs may confine themselves further"
    );
    let mode = scene.sh("grep ^Seccomp: /proc/self/status");
    assert_eq!(mode.stdout().trim(), "Seccomp:\t2");
}

#[test]
fn h087_the_personality_stays_ordinary() {
    let scene = Scene::new();
    unreachable_calls(&scene, &["personality_no_randomize", "personality_read_implies_exec"]);
    assert_eq!(scene.sh("cat /proc/self/personality").stdout().trim(), "00000000");
}

#[test]
pub fn h088_the_clock_cannot_be_set() {
    let scene = Scene::new();
    unreachable_calls(
        &scene,
        &[
            "settimeofday",
            "clock_settime",
            "adjtimex",
            "clock_adjtime",
            "alarm_timer",
        ],
    );
    let before = std::time::SystemTime::now();
    scene.sh("date -s '2001-01-01'; hwclock --systohc; true");
    assert!(
        before.elapsed().is_ok_and(|passed| passed.as_secs() < 60),
        "the host's clock jumped"
    );
}

#[test]
pub fn h089_the_host_name_cannot_be_set() {
    let scene = Scene::new();
    let host = scene.control_sh("uname -n");
    unreachable_calls(&scene, &["sethostname", "setdomainname"]);
    scene.sh("hostname hacked; true");
    assert_eq!(scene.control_sh("uname -n"), host);
    if need_root() {
        assert_eq!(
            scene.control_sh("unshare --uts bash -c 'hostname renamed; uname -n'"),
            "renamed"
        );
    }
}

#[test]
pub fn h090_no_capability_is_held_or_gained() {
    let scene = Scene::new();
    if need_root() {
        assert_eq!(scene.control("capabilities.py", &["held"]), "some");
        for way in ["capset", "ambient", "bounding"] {
            assert_eq!(scene.control("capabilities.py", &[way]), "allowed", "{way}");
        }
    }
    assert_eq!(scene.probe("capabilities.py", &["held"]), "none");
    for way in ["capset", "ambient", "bounding"] {
        scene.refuses_inside(&[("capabilities.py", &[way])]);
    }
    let all = scene.sh("cat /proc/[0-9]*/status | grep ^Cap | awk '{print $2}' | sort -u");
    assert_eq!(
        all.stdout().trim(),
        "0000000000000000",
        "every process of the sandbox: {}",
        all.told()
    );
}

#[test]
pub fn h091_control_groups_are_out_of_reach() {
    let scene = Scene::new();
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
            .filter(|path| scene.control("open_for_writing.py", &[path]) == "allowed")
            .count();
        assert!(writable > 0 && exist > 0, "the control finds no control group to write");
    }
    for path in groups {
        scene.refuses_inside(&[("open_for_writing.py", &[path])]);
    }
    scene.refuses_inside(&[("mounting.py", &["cgroup", "/workspace/work"])]);
    // What /proc tells of the groups is the root of a namespace and, with cgroup v1, the run's own group.
    let told = scene.sh("cat /proc/self/cgroup");
    for line in told.stdout().lines() {
        assert!(
            line.ends_with(":/") || line.contains(":/skillbox-"),
            "a group of the host has a name inside: {}",
            told.told()
        );
    }
}

#[test]
fn h092_landlock_of_its_own_only_tightens() {
    let scene = Scene::new();
    assert_eq!(scene.control("landlock_self.py", &[]), "tightens");
    assert_eq!(scene.probe("landlock_self.py", &[]), "tightens");
}

#[test]
pub fn h093_nothing_can_be_typed_into_the_callers_terminal() {
    let scene = Scene::new();
    let in_terminal = |words: &[&str]| {
        let mut command = program("python3");
        command
            .arg(scene.path("launchers/in_terminal.py"))
            .args(words)
            .current_dir(scene.path("skills/probe"));
        command
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("TMPDIR", scene.path("tmp"))
            .env("HOME", scene.path("home"));
        let finished = run_to_end(&mut command, b"", std::time::Duration::from_secs(40));
        let told: serde_json::Value = serde_json::from_slice(&finished.stdout).unwrap();
        (
            told["output"].as_str().unwrap().to_owned(),
            told["typed"].as_str().unwrap().to_owned(),
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
    let binary = scene.binary().to_str().unwrap().to_owned();
    let (skills, state) = (scene.text("skills"), scene.text("state"));
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
    let session = scene.sh("tty; ps -o tty= -p $$ 2>/dev/null; cut -d' ' -f7 /proc/self/stat; ls /dev/pts 2>/dev/null");
    assert!(
        session.stdout().lines().any(|line| line == "0"),
        "no controlling terminal: {}",
        session.told()
    );
}

#[test]
pub fn h094_cached_pages_of_the_host_stay_as_they_are() {
    let scene = Scene::new();
    let input = scene.host_file("pages.txt", "original content of a file\n".repeat(300));
    let files = ["/usr/lib/os-release", "/usr/bin/env"];
    let before: Vec<Vec<u8>> = files.iter().map(|file| scene.host_content(file)).collect();
    for file in files.iter().chain(&["/workspace/skills/probe/SKILL.md"]) {
        assert_eq!(scene.probe("page_cache.py", &[file]), "unchanged", "{file}");
    }
    let request = json!({
        "command": "python3 scripts/page_cache.py work/inputs/pages.txt",
        "inputs": [{"from": format!("host://{}", input.display()), "mode": "link"}],
    });
    assert_eq!(scene.ask(request).host_allowed().go().word(), "unchanged");
    let after: Vec<Vec<u8>> = files.iter().map(|file| scene.host_content(file)).collect();
    assert_eq!(before, after);
    assert_eq!(
        std::fs::read_to_string(input).unwrap(),
        "original content of a file\n".repeat(300)
    );
}

#[test]
pub fn h095_rare_socket_families_do_not_exist() {
    let scene = Scene::new();
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
        controls += usize::from(scene.control("socket_family.py", socket) == "allowed");
    }
    assert!(controls >= 4, "only {controls} of these exist outside");
    let probes: Vec<(&str, &[&str])> = sockets.iter().map(|socket| ("socket_family.py", &socket[..])).collect();
    scene.refuses_inside(&probes);
    // Processes of one sandbox still talk to each other.
    assert_eq!(scene.probe("socket_family.py", &["1", "stream", "0"]), "allowed");
    assert_eq!(scene.probe("socket_family.py", &["1", "dgram", "0"]), "allowed");
}
