//! The Docker daemon of the tests, and tests that take place on it.
//!
//! `tests/run docker` starts a daemon of its own, builds the image, and says where it is. Without one, tests that need
//! it are skipped with the reason, and fail where CI is true.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::host::need;
use super::process::{program, run_to_end};

/// A daemon with the image of runs.
#[derive(Clone, Debug)]
pub struct Docker {
    socket: PathBuf,
}

thread_local! {
    static IN_USE: RefCell<Option<Docker>> = const { RefCell::new(None) };
}

/// Whether there is a daemon to test with.
pub fn need_docker() -> bool {
    need(
        Docker::find().is_some(),
        "a Docker daemon: `tests/run docker` starts one",
    )
}

/// Does something with every run of this thread's new worlds in a container.
pub fn on_docker<T>(work: impl FnOnce() -> T) -> T {
    IN_USE.with(|in_use| *in_use.borrow_mut() = Docker::find());
    let result = work();
    IN_USE.with(|in_use| *in_use.borrow_mut() = None);
    result
}

/// The daemon of this thread's worlds.
pub fn in_use() -> Option<Docker> {
    IN_USE.with(|in_use| in_use.borrow().clone())
}

impl Docker {
    /// The daemon that `tests/run` started, told by it or found where it puts it.
    #[expect(
        clippy::disallowed_methods,
        reason = "where the daemon of the tests is, is a setting of the tests"
    )]
    pub fn find() -> Option<Self> {
        let told = std::env::var_os("SKILLBOX_TEST_DOCKER").map(PathBuf::from);
        let usual = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("docker/docker.sock");
        let socket = told.unwrap_or(usual);
        let answers = std::os::unix::net::UnixStream::connect(&socket).is_ok();
        answers.then_some(Self { socket })
    }

    /// Where the daemon lives, when it is the tests' own.
    pub fn home(&self) -> Option<PathBuf> {
        self.socket.parent().map(Path::to_owned)
    }

    /// The daemon's address.
    pub fn host(&self) -> String {
        format!("unix://{}", self.socket.display())
    }

    /// Whether ids inside its containers mean others outside.
    pub fn maps_ids(&self) -> bool {
        let options = self.client(&["info", "--format", "{{.SecurityOptions}}"]);
        options.contains("userns") || options.contains("rootless")
    }

    /// What the ordinary client says.
    pub fn client(&self, words: &[&str]) -> String {
        let mut command = program("docker");
        command.args(words).env("DOCKER_HOST", self.host());
        let finished = run_to_end(&mut command, b"", Duration::from_secs(60));
        String::from_utf8_lossy(&finished.stdout).trim().to_owned()
    }

    /// The containers of skillbox that were made by the processes of one world.
    pub fn containers(&self) -> Vec<String> {
        let list = self.client(&["ps", "--all", "--quiet", "--no-trunc", "--filter", "label=skillbox"]);
        list.lines().map(str::to_owned).collect()
    }

    /// Waits until no container of skillbox is left, and fails when one stays.
    pub fn refuse_containers(&self) {
        let end = Instant::now() + Duration::from_secs(15);
        while !self.containers().is_empty() {
            assert!(Instant::now() < end, "containers are left: {:?}", self.containers());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
