//! Other ways to run a command, which skillbox is compared with.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts programs")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::ensure;

/// Options for the programs to compare with.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct PeerOptions {
    /// The program `srt` of @anthropic-ai/sandbox-runtime; by default the one on the PATH
    #[arg(long, value_name = "PATH")]
    pub srt: Option<PathBuf>,
    /// The image for `docker run` and `docker exec`, which are skipped if no Docker daemon is available
    #[arg(long, value_name = "IMAGE", default_value = concat!("skillbox-runner:", env!("CARGO_PKG_VERSION")))]
    pub docker_image: String,
}

impl PeerOptions {
    /// Returns the path of `srt` if it is installed and works.
    pub(crate) fn find_srt(&self) -> Option<PathBuf> {
        let program = self.srt.clone().unwrap_or_else(|| PathBuf::from("srt"));
        run_in_srt(&program).is_ok().then_some(program)
    }

    /// Starts a container for `docker exec` if there is a Docker daemon with the image.
    pub(crate) fn start_container(&self) -> Option<Container> {
        Container::start(&self.docker_image).ok()
    }
}

/// The search path of the sandbox, so that every candidate starts the same `python3`, never one in a home directory.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Sets the same environment for every candidate, because a shell with a locale takes longer to start than one without.
fn set_environment(command: &mut Command) -> &mut Command {
    let variables = [
        ("PATH", PATH),
        ("LANG", "C.UTF-8"),
        ("HOME", "/tmp"),
        ("TMPDIR", "/tmp"),
    ];
    command.env_clear().envs(variables)
}

/// Runs a script in a shell without isolation: fork, exec, read both streams, wait.
pub(crate) fn run_bare(script: &str) -> anyhow::Result<()> {
    run_to_success(set_environment(Command::new("bash").args(["-c", script])))
}

/// Whether bubblewrap is installed and works.
pub(crate) fn is_bwrap_available() -> bool {
    run_in_bwrap("true").is_ok()
}

/// Runs a script in bubblewrap, with the visible files of the sandbox and every namespace, but without limits, Landlock
/// and seccomp.
pub(crate) fn run_in_bwrap(script: &str) -> anyhow::Result<()> {
    let mounts = [
        ["--ro-bind", "/usr", "/usr"],
        ["--symlink", "usr/bin", "/bin"],
        ["--symlink", "usr/lib", "/lib"],
        ["--symlink", "usr/lib64", "/lib64"],
        ["--symlink", "usr/sbin", "/sbin"],
        ["--ro-bind", "/etc/ld.so.cache", "/etc/ld.so.cache"],
        ["--ro-bind", "/etc/alternatives", "/etc/alternatives"],
        ["--ro-bind", "/etc/ssl/certs", "/etc/ssl/certs"],
    ];
    let other_args = [
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
    run_to_success(set_environment(command.args(mounts.as_flattened()).args(other_args)))
}

/// Runs `true` in Anthropic's sandbox-runtime: bubblewrap and a seccomp filter, set up by a Node program.
pub(crate) fn run_in_srt(program: &Path) -> anyhow::Result<()> {
    run_to_success(Command::new(program).args(["true"]))
}

/// Runs `true` in a new container, with `docker run`.
pub(crate) fn run_in_new_container(image: &str) -> anyhow::Result<()> {
    let args = ["run", "--rm", "--network", "none", "--entrypoint", "true", image];
    run_to_success(Command::new("docker").args(args))
}

/// A running container for `docker exec`.
pub(crate) struct Container {
    id: String,
}

impl Container {
    fn start(image: &str) -> anyhow::Result<Self> {
        let args = [
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
        let output = Command::new("docker").args(args).stdin(Stdio::null()).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(Self {
            id: String::from_utf8(output.stdout)?.trim().to_owned(),
        })
    }

    /// Runs `true` with `docker exec`.
    pub(crate) fn exec(&self) -> anyhow::Result<()> {
        run_to_success(Command::new("docker").args(["exec", &self.id, "true"]))
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // If the removal fails, the container ends by itself within an hour.
        let _removed = run_to_success(Command::new("docker").args(["rm", "-f", &self.id]));
    }
}

fn run_to_success(command: &mut Command) -> anyhow::Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
