//! A registry of this test, and runs whose packages come from it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::harness::{Answer, Fixture, Invocation, kill_and_reap, need, program, spawn_tracked};
use crate::workspace::root;

/// The registry and the files that its packages attack.
pub struct LocalRegistry<'f> {
    fixture: &'f Fixture,
    process: Child,
    port: u16,
}

impl<'f> LocalRegistry<'f> {
    /// Starts the registry; none if this machine lacks the tools that install packages.
    pub fn start(fixture: &'f Fixture) -> Option<Self> {
        let has_pip = program("/usr/bin/python3")
            .args(["-I", "-m", "pip", "--version"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        if !need(has_pip, "pip of /usr/bin/python3") || !need(Path::new("/usr/bin/npm").exists(), "npm in /usr/bin") {
            return None;
        }
        let mut process = spawn_tracked(
            program("/usr/bin/python3")
                .arg(root().join("tests/packages/registry.py"))
                .arg(fixture.path("scratch/registry.log"))
                .arg(fixture.path("home/.netrc"))
                .arg(fixture.path("tmp"))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped()),
        );
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let port = line.trim().parse().expect("the registry prints its port");
        Some(Self { fixture, process, port })
    }

    /// The port of the registry.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Adds the settings by which pip and npm of the host find this registry.
    pub fn configure<'i>(&self, invocation: Invocation<'i>) -> Invocation<'i> {
        let url = format!("http://127.0.0.1:{}/", self.port);
        invocation
            .env("PIP_INDEX_URL", format!("{url}simple/"))
            .env("npm_config_registry", url)
    }

    /// Runs a command line of a skill in its directory.
    pub fn run(&self, skill: &str, command: &str) -> Answer {
        self.run_with(skill, command, &[])
    }

    /// The same with more arguments.
    pub fn run_with(&self, skill: &str, command: &str, args: &[&str]) -> Answer {
        let request = serde_json::json!({
            "skill": skill, "command": command, "timeout": 100,
        });
        self.configure(self.fixture.request(request).with_args(args)).run()
    }

    /// Runs a command line that must succeed, and returns what it printed.
    #[track_caller]
    pub fn output_of(&self, skill: &str, command: &str) -> String {
        let answer = self.run(skill, command).expect_report();
        assert_eq!(answer.json()["exit_code"], 0, "{}", answer.describe());
        answer.stdout().trim().to_owned()
    }

    /// The paths of the requests that reached the registry.
    pub fn requests(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.log()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The requests of payloads.
    pub fn hits(&self) -> Vec<String> {
        let mut requests = self.requests();
        requests.retain(|path| path.starts_with("/hit/"));
        requests
    }

    /// Forgets all requests.
    pub fn forget_requests(&self) {
        let _ = std::fs::remove_file(self.log());
    }

    fn log(&self) -> PathBuf {
        self.fixture.path("scratch/registry.log")
    }
}

impl Drop for LocalRegistry<'_> {
    fn drop(&mut self) {
        kill_and_reap(&mut self.process);
    }
}
