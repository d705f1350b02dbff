//! What every test of this crate stands on.

mod run;

use std::path::PathBuf;

use skillbox_sandbox::Spawner;

pub use run::{Done, Run, wait_for};

/// The program that the tests start as a spawner.
pub fn spawner_program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_sandbox-test-spawner"))
}

pub fn spawner() -> Spawner {
    Spawner::start(&spawner_program()).unwrap()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test asks whether it runs where nothing may be missing"
)]
/// Whether a test can go on. Without what it needs it says so; on a machine that must have everything it fails.
pub fn has(what: &str, there: bool) -> bool {
    if !there {
        assert!(
            std::env::var_os("CI").is_none_or(|ci| ci != "true"),
            "this machine must have {what}"
        );
        println!("skipped: this machine has no {what}");
    }
    there
}

pub fn is_root() -> bool {
    has("root rights for the tests", rustix::process::geteuid().is_root())
}

/// The same shell script without any sandbox: what a denial is measured against.
#[expect(
    clippy::disallowed_methods,
    reason = "a control runs outside of the sandbox on purpose"
)]
pub fn control(script: &str) -> std::process::Output {
    std::process::Command::new("bash")
        .arg("-c")
        .arg(script)
        .output()
        .unwrap()
}
