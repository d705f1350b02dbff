//! Runs as an ordinary user, with a report of the layers that this user cannot have.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use crate::fixture::{has, is_root, spawner_program};

/// A user of the host that exists nowhere else.
const USER: u32 = 61_234;

/// Runs a script as the user under a profile and returns what the test program prints.
fn as_user(profile: &str, script: &str) -> String {
    // The build directory may be closed to others.
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let program = directory.path().join("program");
    std::fs::copy(spawner_program(), &program).unwrap();
    #[expect(clippy::disallowed_methods, reason = "the test becomes another user")]
    let output = std::process::Command::new(program)
        .args(["run", profile, script])
        .uid(USER)
        .gid(USER)
        .current_dir("/")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn can_try() -> bool {
    let limit = std::fs::read_to_string("/proc/sys/user/max_user_namespaces").unwrap_or_default();
    is_root() && has("user namespaces for ordinary users", limit.trim() != "0")
}

#[test]
fn the_default_profile_works_and_reports_what_is_missing() {
    if !can_try() {
        return;
    }
    let report = as_user(
        "default",
        "id -u; hostname; ls /root /home 2>/dev/null; echo x > out/a && cat out/a; cat /proc/1/environ",
    );
    assert!(report.starts_with("1000\nskillbox\nx\n"), "{report}");
    assert!(report.contains("ended: Exited(1)"), "{report}");
    for layer in [
        "user_namespace",
        "mount_namespace",
        "pid_namespace",
        "network_namespace",
        "proc",
        "seccomp",
        "pids",
    ] {
        assert!(report.contains(&format!("\n{layer}: Enforced\n")), "{layer}: {report}");
    }
    let cgroup_v1 = std::path::Path::new("/sys/fs/cgroup/memory").exists();
    if cgroup_v1 {
        assert!(report.contains("tier: T1"), "{report}");
        assert!(
            report.contains("memory: Absent { reason: \"/sys/fs/cgroup/memory"),
            "{report}"
        );
        assert!(report.contains("cpu: Partial"), "{report}");
    }
}

#[test]
fn the_strict_profile_is_refused_with_cause_and_fix() {
    if !can_try() || !has("cgroup v1", std::path::Path::new("/sys/fs/cgroup/memory").exists()) {
        return;
    }
    let report = as_user("strict", "true");
    assert!(
        report.starts_with("refused: profile \"strict\" requires memory, which this host cannot provide"),
        "{report}"
    );
    assert!(
        report.contains("hint: run skillbox as root, or boot with cgroup v2"),
        "{report}"
    );
}

#[test]
fn processes_are_limited_without_a_control_group() {
    if !can_try() {
        return;
    }
    let report = as_user(
        "default",
        "for i in $(seq 400); do sleep 3 & done 2>/dev/null; jobs -r | wc -l",
    );
    let running: u32 = report.lines().next().unwrap().parse().unwrap_or(0);
    assert!(running <= 256, "{report}");
}

#[test]
fn loopback_works_for_users_too() {
    if !can_try() {
        return;
    }
    let script = "python3 -c \"import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); socket.create_connection(s.getsockname()); print('connected')\"";
    assert!(as_user("loopback", script).starts_with("connected\n"));
}
