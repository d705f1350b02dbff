//! What a test needs of the machine. Without it the test is skipped with the reason, and fails where CI is true.

use std::path::Path;
use std::process::Command;

use super::process::program;

/// An id that belongs to nobody on an ordinary machine.
const NOBODY_IN_PARTICULAR: u32 = 61_234;

/// Whether this is a run that may skip nothing.
#[expect(
    clippy::disallowed_methods,
    reason = "CI is a setting of the tests, not of the product"
)]
pub fn on_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}

/// Tells whether a test can go on; a missing thing is named, and is a failure on CI.
#[expect(
    clippy::print_stdout,
    reason = "the reason of a skipped test is for whoever reads its output"
)]
pub fn need(there: bool, what: &str) -> bool {
    if !there {
        assert!(!on_ci(), "CI=true skips nothing, and this test needs {what}");
        println!("skipped: needs {what}");
    }
    there
}

/// Some cases exist only when skillbox is started by root.
pub fn need_root() -> bool {
    need(rustix::process::geteuid().is_root(), "root")
}

/// The words in front of a command that make it an ordinary user's: no groups, no capabilities.
pub fn ordinary_user() -> (u32, Vec<String>) {
    let id = NOBODY_IN_PARTICULAR;
    let words = [
        "setpriv",
        &format!("--reuid={id}"),
        &format!("--regid={id}"),
        "--clear-groups",
        "--inh-caps=-all",
    ];
    (id, words.iter().map(|word| (*word).to_owned()).collect())
}

/// Which control groups hold the controllers here: 1, 2, or none.
pub fn cgroup_version() -> Option<u8> {
    if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
        Some(2)
    } else if Path::new("/sys/fs/cgroup/memory/tasks").exists() {
        Some(1)
    } else {
        None
    }
}

/// A command behind the words of a launcher.
pub fn behind(launcher: &[String], path: &Path) -> Command {
    match launcher.split_first() {
        None => program(path),
        Some((first, rest)) => {
            let mut command = program(first);
            command.args(rest).arg(path);
            command
        }
    }
}
