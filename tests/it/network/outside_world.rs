//! The outside world of a test: a network namespace with servers that write down whatever reaches them.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::harness::{Answer, Fixture, need, need_root};

/// Servers for the runs of one test.
pub struct OutsideWorld<'f> {
    fixture: &'f Fixture,
    directory: PathBuf,
    /// Words in front of skillbox, such as those that change the user.
    launcher: Vec<String>,
}

impl<'f> OutsideWorld<'f> {
    /// The servers; none if this machine cannot have them.
    pub fn open(fixture: &'f Fixture) -> Option<Self> {
        let has_programs = ["/usr/bin/python3", "/usr/bin/openssl", "/usr/bin/curl"]
            .iter()
            .all(|path| PathBuf::from(path).exists());
        if !need_root() || !need(has_programs, "python3, openssl and curl") {
            return None;
        }
        let directory = fixture.path("scratch/outside");
        fs::create_dir_all(&directory).unwrap();
        Some(Self {
            fixture,
            directory,
            launcher: Vec::new(),
        })
    }

    /// Runs skillbox as another user, given as the launcher for it.
    pub fn with_launcher(mut self, launcher: Vec<String>) -> Self {
        self.launcher = launcher;
        self
    }

    fn words_in_front(&self) -> Vec<String> {
        let script = self.fixture.path_str("launchers/outside_world.py");
        let directory = self.directory.to_str().unwrap().to_owned();
        let mut words = vec!["/usr/bin/python3".to_owned(), script, directory];
        words.extend(self.launcher.iter().cloned());
        words
    }

    /// Runs a command line in the sandbox, with these hosts allowed. The certificate of the servers is
    /// `$WORK_DIR/inputs/ca.pem`.
    #[track_caller]
    pub fn run(&self, allowed: &[&str], command: &str) -> Answer {
        self.run_with(allowed, command, &[]).expect_report()
    }

    /// The same with more arguments, and without a check of the result.
    pub fn run_with(&self, allowed: &[&str], command: &str, args: &[&str]) -> Answer {
        let certificate = self.directory.join("ca.pem");
        let _ = fs::write(self.directory.join("log"), "");
        let from = format!("host://{}", certificate.display());
        let request = json!({
            "command": format!("CA=$WORK_DIR/inputs/ca.pem\n{command}"),
            "inputs": [{"from": from}],
            "timeout": 100,
        });
        let directory = self.directory.to_str().unwrap().to_owned();
        let mut all = vec!["--allow-host", directory.as_str()];
        for host in allowed {
            all.extend(["--allow-net", host]);
        }
        all.extend(args);
        self.fixture
            .request(request)
            .with_args(&all)
            .with_launcher(&self.words_in_front())
            .run()
    }

    /// The certificate of the servers' authority, as a file on the host.
    pub fn ca(&self) -> String {
        self.directory.join("ca.pem").to_str().unwrap().to_owned()
    }

    /// What reached the servers in the last run.
    pub fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}
