//! Other ways to start a command.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts programs")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::ensure;

/// The paths of other programs, where they are installed.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Peers {
    /// `srt` of @anthropic-ai/sandbox-runtime; by default the one on the PATH
    #[arg(long, value_name = "PATH")]
    pub srt: Option<PathBuf>,
    /// The image for `docker run` and `docker exec`, which are skipped without a daemon
    #[arg(long, value_name = "IMAGE", default_value = concat!("skillbox-runner:", env!("CARGO_PKG_VERSION")))]
    pub docker_image: String,
}

impl Peers {
    /// The sandbox-runtime, where it is installed and works.
    pub(crate) fn srt(&self) -> Option<PathBuf> {
        let program = self.srt.clone().unwrap_or_else(|| PathBuf::from("srt"));
        srt(&program).is_ok().then_some(program)
    }

    /// A running container for `docker exec`, where there is a daemon with the image.
    pub(crate) fn container(&self) -> Option<Container> {
        Container::start(&self.docker_image).ok()
    }
}

/// The search path, the same here and in the sandbox: a `python3` in a home directory is another program.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Sets the same environment for every candidate: a shell with a locale takes longer to start than one without.
fn environment(command: &mut Command) -> &mut Command {
    let variables = [
        ("PATH", PATH),
        ("LANG", "C.UTF-8"),
        ("HOME", "/tmp"),
        ("TMPDIR", "/tmp"),
    ];
    command.env_clear().envs(variables)
}

/// Starts a shell without isolation: fork, exec, read both streams, wait.
pub(crate) fn bare(script: &str) -> anyhow::Result<()> {
    finish(environment(Command::new("bash").args(["-c", script])))
}

/// Whether bubblewrap is installed and works.
pub(crate) fn has_bwrap() -> bool {
    bwrap("true").is_ok()
}

/// Starts bubblewrap with the same visible tree and every namespace, without limits, Landlock and seccomp.
pub(crate) fn bwrap(script: &str) -> anyhow::Result<()> {
    let tree = [
        ["--ro-bind", "/usr", "/usr"],
        ["--symlink", "usr/bin", "/bin"],
        ["--symlink", "usr/lib", "/lib"],
        ["--symlink", "usr/lib64", "/lib64"],
        ["--symlink", "usr/sbin", "/sbin"],
        ["--ro-bind", "/etc/ld.so.cache", "/etc/ld.so.cache"],
        ["--ro-bind", "/etc/alternatives", "/etc/alternatives"],
        ["--ro-bind", "/etc/ssl/certs", "/etc/ssl/certs"],
    ];
    let rest = [
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
        "bash",
        "-c",
        script,
    ];
    let mut command = Command::new("bwrap");
    finish(environment(command.args(tree.as_flattened()).args(rest)))
}

/// Starts Anthropic's sandbox-runtime: bubblewrap and a seccomp filter, set up by a Node program.
pub(crate) fn srt(program: &Path) -> anyhow::Result<()> {
    finish(Command::new(program).args(["true"]))
}

/// Starts a new container with `docker run`.
pub(crate) fn docker_run(image: &str) -> anyhow::Result<()> {
    let words = ["run", "--rm", "--network", "none", "--entrypoint", "true", image];
    finish(Command::new("docker").args(words))
}

/// A running container for `docker exec`.
pub(crate) struct Container {
    id: String,
}

impl Container {
    fn start(image: &str) -> anyhow::Result<Self> {
        let words = [
            "run",
            "-d",
            "--rm",
            "--network",
            "none",
            "--entrypoint",
            "sleep",
            image,
            "3600",
        ];
        let output = Command::new("docker").args(words).stdin(Stdio::null()).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(Self {
            id: String::from_utf8(output.stdout)?.trim().to_owned(),
        })
    }

    pub(crate) fn exec(&self) -> anyhow::Result<()> {
        finish(Command::new("docker").args(["exec", &self.id, "true"]))
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // Without a daemon there is nothing to remove.
        let _removed = finish(Command::new("docker").args(["rm", "-f", &self.id]));
    }
}

fn finish(command: &mut Command) -> anyhow::Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
