//! What a test needs of the machine. A test whose need is not met is skipped with the reason, and fails where CI is true.

use std::path::Path;
use std::process::Command;

use super::process::program;

/// A user and group id that no ordinary machine assigns.
const UNASSIGNED_ID: u32 = 61_234;

/// Whether this is a run that may skip nothing.
#[expect(
    clippy::disallowed_methods,
    reason = "CI is a setting of the tests, not of the product"
)]
pub fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}

/// Returns whether a need is met. An unmet need is printed, and is a failure on CI.
#[expect(
    clippy::print_stdout,
    reason = "the reason for skipping belongs to the output of the test"
)]
pub fn need(is_met: bool, what: &str) -> bool {
    if !is_met {
        assert!(!is_ci(), "CI=true skips nothing, and this test needs {what}");
        println!("skipped: needs {what}");
    }
    is_met
}

/// Some cases exist only when root starts skillbox.
pub fn need_root() -> bool {
    need(rustix::process::geteuid().is_root(), "root")
}

/// An ordinary user's id, and the launcher that runs a command as this user: no groups, no capabilities.
pub fn ordinary_user() -> (u32, Vec<String>) {
    let id = UNASSIGNED_ID;
    let launcher = [
        "setpriv",
        &format!("--reuid={id}"),
        &format!("--regid={id}"),
        "--clear-groups",
        "--inh-caps=-all",
    ];
    (id, launcher.iter().map(|word| (*word).to_owned()).collect())
}

/// The version of the control groups that hold the controllers here: 1, 2, or none.
pub fn cgroup_version() -> Option<u8> {
    if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
        Some(2)
    } else if Path::new("/sys/fs/cgroup/memory/tasks").exists() {
        Some(1)
    } else {
        None
    }
}

/// A command that a launcher executes.
pub fn launched_command(launcher: &[String], path: &Path) -> Command {
    match launcher.split_first() {
        None => program(path),
        Some((first, rest)) => {
            let mut command = program(first);
            command.args(rest).arg(path);
            command
        }
    }
}
