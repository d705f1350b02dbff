//! 3.4: /proc, /sys, /dev and other interfaces of the kernel.

use std::path::Path;

use serde_json::json;

use crate::harness::{CanaryProcess, Fixture, is_refusal, need_root};

#[test]
fn h046_processes_of_the_host_are_invisible() {
    let fixture = Fixture::new();
    let canary = CanaryProcess::start(&fixture);
    let word = fixture.canary();
    assert_eq!(fixture.control_probe("find_process.py", &["cmdline", word]), "seen");
    assert_eq!(fixture.run_probe("find_process.py", &["cmdline", word]), "unseen");
    // The pid of the canary belongs to no process inside, or to a process of the sandbox.
    let answer = fixture.run_shell(&format!(
        "cat /proc/{}/cmdline /proc/{}/comm; ls -d /proc/[0-9]* | wc -l",
        canary.pid(),
        canary.pid()
    ));
    assert!(!answer.mentions(word), "{}", answer.describe());
    let count: usize = answer.stdout().lines().last().unwrap().trim().parse().unwrap();
    assert!(count < 10, "{count} processes are visible");
}

#[test]
fn h047_the_init_process_reveals_nothing() {
    let fixture = Fixture::new();
    let canary = CanaryProcess::start(&fixture);
    assert_eq!(
        fixture.control_probe("find_process.py", &["environ", fixture.canary()]),
        "seen"
    );
    drop(canary);
    let answer = fixture.run_shell(
        "for f in environ cmdline maps auxv status stat; do echo == $f; cat /proc/1/$f | tr '\\0' ' '; done",
    );
    for secret in [
        fixture.canary(),
        "skillbox-it-",
        "SECRET_CANARY",
        env!("CARGO_MANIFEST_DIR"),
    ] {
        assert!(!answer.stdout().contains(secret), "{secret}: {}", answer.describe());
    }
    assert_eq!(fixture.control_probe("trace.py", &["mem", "child"]), "allowed");
    fixture.assert_refused_inside(&[("trace.py", &["mem", "init"]), ("read_file.py", &["/proc/1/environ"])]);
}

#[test]
pub fn h048_kernel_secrets_are_masked() {
    let fixture = Fixture::new();
    let files = [
        "kcore",
        "kallsyms",
        "keys",
        "key-users",
        "timer_list",
        "sched_debug",
        "latency_stats",
        "slabinfo",
        "config.gz",
        "kmsg",
        "vmallocinfo",
        "iomem",
        "ioports",
        "modules",
        "kpagecount",
        "kpageflags",
        "kpagecgroup",
        "vmcore",
    ];
    let mut controls = 0;
    for file in files {
        let path = format!("/proc/{file}");
        controls += usize::from(Path::new(&path).exists() && file != "kmsg");
        let word = fixture.run_probe("read_file.py", &[&path]);
        assert!(
            is_refusal(&word) || word == "empty" || is_harmless(&fixture, &path),
            "{path}: {word}"
        );
    }
    assert!(controls > 3, "only {controls} of these exist on this host");
}

/// Whether a readable file contains no kernel address.
fn is_harmless(fixture: &Fixture, path: &str) -> bool {
    let answer = fixture.run_shell(&format!(
        "head -c 20000 {path} | grep -aE '[1-9a-f][0-9a-f]{{11,}}|0x[1-9a-f]' | head -n 3"
    ));
    answer.stdout().is_empty() && path != "/proc/kcore" && path != "/proc/kmsg"
}

#[test]
pub fn h049_kernel_settings_cannot_be_written() {
    let fixture = Fixture::new();
    let settings = [
        "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/vm/drop_caches",
        "/proc/sysrq-trigger",
    ];
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let before: Vec<String> = settings[..2].iter().map(|path| read(path)).collect();
    if need_root() {
        for path in &settings[..3] {
            assert_eq!(fixture.control_probe("open_for_writing.py", &[path]), "allowed");
        }
    }
    for path in settings {
        fixture.assert_refused_inside(&[("open_for_writing.py", &[path])]);
    }
    fixture.assert_refused_inside(&[
        ("write_file.py", &["/proc/self/oom_score_adj", "-900"]),
        ("write_file.py", &["/proc/self/uid_map", "0 0 1"]),
        ("write_file.py", &["/proc/self/gid_map", "0 0 1"]),
        ("write_file.py", &["/proc/self/setgroups", "allow"]),
    ]);
    let all = fixture.run_shell("find /proc/sys -type f -writable 2>/dev/null | head; for f in $(find /proc/sys -type f 2>/dev/null); do (echo x > $f) 2>/dev/null && echo wrote $f; done");
    assert!(!all.stdout().contains("wrote"), "{}", all.describe());
    let after: Vec<String> = settings[..2].iter().map(|path| read(path)).collect();
    assert_eq!(before, after);
    assert_eq!(
        fixture.control_probe("write_file.py", &["/proc/self/oom_score_adj", "100"]),
        "allowed"
    );
}

#[test]
fn h050_settings_of_a_process_end_with_it() {
    let fixture = Fixture::new();
    let own = |file: &str| std::fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
    let before = ["loginuid", "coredump_filter", "timerslack_ns"].map(own);
    let answer = fixture.run_shell("for f in attr/current attr/exec attr/fscreate coredump_filter loginuid timerslack_ns; do \
        (echo 1 > /proc/self/$f) 2>/dev/null && echo wrote $f; (echo 1 > /proc/1/$f) 2>/dev/null && echo wrote init $f; done; true");
    assert!(!answer.stdout().contains("wrote init"), "{}", answer.describe());
    assert!(!answer.stdout().contains("attr"), "{}", answer.describe());
    let next = fixture.run_shell("cat /proc/self/coredump_filter");
    assert_eq!(next["exit_code"], 0);
    assert_eq!(before, ["loginuid", "coredump_filter", "timerslack_ns"].map(own));
}

#[test]
pub fn h051_sysfs_is_absent() {
    let fixture = Fixture::new();
    if fixture.docker().is_some() {
        // The /sys of a container contains nothing but its own control group, which cannot be read or changed.
        let answer = fixture.run_shell(
            "find /sys -mindepth 2 -not -path '/sys/fs*'; find /sys/fs -mindepth 2 -not -path '/sys/fs/cgroup*'; \
             find /sys/fs/cgroup -type f | while read file; do (head -c 1 $file; echo 1 > $file) 2>/dev/null && echo $file; done",
        );
        assert_eq!(answer.stdout(), "", "{}", answer.describe());
        return;
    }
    for path in ["/sys/class/net", "/sys/block", "/sys/fs/cgroup", "/sys/kernel"] {
        assert_eq!(fixture.control_probe("read_file.py", &[path]), "allowed", "{path}");
        fixture.assert_refused_inside(&[("read_file.py", &[path])]);
    }
    let answer = fixture.run_shell("find /sys 2>/dev/null | head -n 5; cat /sys/class/dmi/id/* /sys/kernel/tracing/* /sys/kernel/debug/* 2>/dev/null");
    assert!(matches!(answer.stdout().trim(), "" | "/sys"), "{}", answer.describe());
}

#[test]
pub fn h052_devices_of_the_machine_are_absent() {
    let fixture = Fixture::new();
    let devices = [
        "kmsg",
        "mem",
        "port",
        "kvm",
        "fuse",
        "net/tun",
        "loop-control",
        "loop0",
        "vsock",
        "vhost-net",
        "sda",
        "vda",
        "nvme0n1",
        "console",
        // Without a controlling terminal, nothing is behind this name.
        "tty",
        "tty0",
        "hwrng",
        "cpu_dma_latency",
        "btrfs-control",
        "snapshot",
        "mapper/control",
        "uinput",
        "userfaultfd",
    ];
    let mut controls = 0;
    for device in devices {
        let path = format!("/dev/{device}");
        controls += usize::from(Path::new(&path).exists());
        fixture.assert_refused_inside(&[("open_for_writing.py", &[&path])]);
    }
    assert!(controls > 2, "only {controls} of these exist on this host");
    let answer = fixture.run_shell("find /dev -type b -o -type c | sort | xargs");
    for device in answer.stdout().split_whitespace() {
        let harmless = [
            "/dev/null",
            "/dev/zero",
            "/dev/full",
            "/dev/random",
            "/dev/urandom",
            "/dev/tty",
        ];
        // A local sandbox has pseudo-terminals of its own.
        let is_private = fixture.docker().is_none() && device == "/dev/pts/ptmx";
        assert!(
            is_private || harmless.contains(&device),
            "{device}: {}",
            answer.describe()
        );
    }
}

#[test]
pub fn h053_the_kernel_log_cannot_be_read() {
    let fixture = Fixture::new();
    if need_root() {
        assert_eq!(fixture.control_probe("raw_call.py", &["syslog"]), "reached");
    }
    fixture.assert_refused_inside(&[("raw_call.py", &["syslog"]), ("read_file.py", &["/dev/kmsg"])]);
    // The logs of an image do not belong to the host.
    if fixture.docker().is_none() {
        fixture.assert_refused_inside(&[("read_file.py", &["/var/log"])]);
    }
}

#[test]
fn h054_the_host_name_is_hidden() {
    let fixture = Fixture::new();
    let host = fixture.control_shell("uname -n");
    let name = |fixture: &Fixture| {
        fixture
            .run_shell("uname -n; cat /proc/sys/kernel/hostname; hostname 2>/dev/null || uname -n")
            .stdout()
            .to_owned()
    };
    let inside = name(&fixture);
    let first = inside.lines().next().unwrap();
    assert!(inside.lines().all(|line| line == first), "{inside}");
    assert_ne!(first, host, "the host name is visible");
    assert_eq!(name(&fixture), inside, "the name is the same in every run");
    fixture.assert_refused_inside(&[
        ("read_file.py", &["/etc/machine-id"]),
        ("read_file.py", &["/etc/hostname"]),
        ("read_file.py", &["/var/lib/dbus/machine-id"]),
    ]);
    let host_id = fixture.read_host_file("/etc/machine-id");
    if !host_id.is_empty() {
        let id = String::from_utf8(host_id).unwrap();
        assert!(
            !fixture
                .run_shell("cat /proc/cmdline /proc/version /proc/net/arp /proc/sys/kernel/random/boot_id 2>/dev/null")
                .mentions(id.trim())
        );
    }
}

#[test]
pub fn h055_a_crash_leaves_no_core_dump() {
    let fixture = Fixture::new();
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    if !pattern.starts_with(['|', '/']) {
        let crash = format!(
            "cd {} && ulimit -c unlimited && (sh -c 'kill -SEGV $$'; ls)",
            fixture.path_str("scratch")
        );
        if fixture.control_shell("ulimit -H -c") == "unlimited" {
            assert!(
                fixture.control_shell(&crash).contains("core"),
                "the control leaves a core dump"
            );
        }
    }
    let request = json!({"argv": ["sh", "-c", "cd /workspace/work && kill -SEGV $$"], "output_files": ["**"]});
    let answer = fixture.request(request).in_session("crash").run().expect_report();
    assert_eq!(
        (&answer["ended_by"], &answer["signal"], answer.code),
        (&json!("signal"), &json!(11), Some(139))
    );
    assert!(
        answer.output_names().iter().all(|name| !name.contains("core")),
        "{}",
        answer.describe()
    );
    let invocation = fixture.request(
        json!({"command": "ulimit -c unlimited 2>/dev/null; ulimit -c; ulimit -H -c; find /workspace -name '*core*'"}),
    );
    let limits = invocation.in_session("crash").run().expect_report();
    // The limit is one block and not zero: core(5) handlers behind a pipe ignore a limit of zero.
    assert!(
        limits.stdout().lines().all(|line| matches!(line, "0" | "1")),
        "{}",
        limits.describe()
    );
}
