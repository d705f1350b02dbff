//! The Docker daemon of the tests, and tests whose runs take place in its containers.
//!
//! `tests/run docker` starts a daemon of its own, builds the image, and exports where it is. Without a daemon, tests
//! that need one are skipped with the reason, and fail where CI is true.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::host::need;
use super::machine_load::wait_until;
use super::process::{program, run_to_completion};

/// How long one command of the client may take.
const CLIENT_DEADLINE: Duration = Duration::from_secs(120);

/// A daemon with the image of runs.
#[derive(Clone, Debug)]
pub struct Docker {
    socket: PathBuf,
}

thread_local! {
    static DAEMON_OF_THREAD: RefCell<Option<Docker>> = const { RefCell::new(None) };
}

/// Whether there is a daemon to test with.
pub fn need_docker() -> bool {
    need(
        Docker::find().is_some(),
        "a Docker daemon: `tests/run docker` starts one",
    )
}

/// Calls `work`; every run of the fixtures that it creates takes place in a container.
pub fn with_docker<T>(work: impl FnOnce() -> T) -> T {
    DAEMON_OF_THREAD.with(|daemon| *daemon.borrow_mut() = Docker::find());
    let result = work();
    DAEMON_OF_THREAD.with(|daemon| *daemon.borrow_mut() = None);
    result
}

/// The daemon for the fixtures of this thread.
pub fn daemon_of_thread() -> Option<Docker> {
    DAEMON_OF_THREAD.with(|daemon| daemon.borrow().clone())
}

impl Docker {
    /// The daemon that `tests/run` started, at the exported or the usual place.
    #[expect(
        clippy::disallowed_methods,
        reason = "where the daemon of the tests is, is a setting of the tests"
    )]
    pub fn find() -> Option<Self> {
        let exported = std::env::var_os("SKILLBOX_TEST_DOCKER").map(PathBuf::from);
        let usual = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("docker/docker.sock");
        let socket = exported.unwrap_or(usual);
        let is_listening = std::os::unix::net::UnixStream::connect(&socket).is_ok();
        is_listening.then_some(Self { socket })
    }

    /// The directory of the daemon's socket, where its other files are when `tests/run` started it.
    pub fn directory(&self) -> Option<PathBuf> {
        self.socket.parent().map(Path::to_owned)
    }

    /// The daemon's address.
    pub fn host(&self) -> String {
        format!("unix://{}", self.socket.display())
    }

    /// Whether the user ids of its containers are mapped to other ids of the host.
    pub fn maps_ids(&self) -> bool {
        let options = self.run_client(&["info", "--format", "{{.SecurityOptions}}"]);
        options.contains("userns") || options.contains("rootless")
    }

    /// Runs the ordinary client and returns what it prints.
    pub fn run_client(&self, words: &[&str]) -> String {
        let mut command = program("docker");
        command.args(words).env("DOCKER_HOST", self.host());
        let output = run_to_completion(&mut command, b"", CLIENT_DEADLINE);
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Ids of the containers of skillbox.
    pub fn containers(&self) -> Vec<String> {
        let list = self.run_client(&["ps", "--all", "--quiet", "--no-trunc", "--filter", "label=skillbox"]);
        list.lines().map(str::to_owned).collect()
    }

    /// Waits until no container of skillbox is left, and fails when one stays.
    #[track_caller]
    pub fn wait_for_no_containers(&self) {
        wait_until("no container is left", || self.containers().is_empty());
    }
}
