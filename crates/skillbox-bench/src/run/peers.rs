//! The ways that others start a command.
#![expect(clippy::disallowed_methods, reason = "a measuring program starts things")]

use std::process::{Command, Stdio};

use anyhow::ensure;

/// No isolation at all: fork, exec, read both streams, wait.
pub(crate) fn bare() -> anyhow::Result<()> {
    finish(Command::new("bash").args(["-c", "true"]))
}

/// bubblewrap with the same visible tree and every namespace, but without limits, Landlock and system call filter.
pub(crate) fn bwrap() -> anyhow::Result<()> {
    let tree = [
        "--ro-bind",
        "/usr",
        "/usr",
        "--symlink",
        "usr/bin",
        "/bin",
        "--symlink",
        "usr/lib",
        "/lib",
        "--symlink",
        "usr/lib64",
        "/lib64",
        "--symlink",
        "usr/sbin",
        "/sbin",
        "--ro-bind",
        "/etc/ld.so.cache",
        "/etc/ld.so.cache",
        "--ro-bind",
        "/etc/alternatives",
        "/etc/alternatives",
        "--ro-bind",
        "/etc/ssl/certs",
        "/etc/ssl/certs",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--tmpfs",
        "/workspace",
        "--chdir",
        "/workspace",
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
    ];
    finish(Command::new("bwrap").args(tree).args(["bash", "-c", "true"]))
}

fn finish(command: &mut Command) -> anyhow::Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
