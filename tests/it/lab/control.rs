//! The same probe without a sandbox: it succeeds there, so that its failure inside means something.

use std::fs;
use std::process::Command;
use std::time::Duration;

use super::process::{Finished, program, run_to_end};
use super::scene::{Scene, probe_words};

const DEADLINE: Duration = Duration::from_secs(30);

impl Scene {
    /// Runs a probe as a plain process of the host and gives its word.
    pub fn control(&self, file: &str, args: &[&str]) -> String {
        self.control_behind(&[], file, args)
    }

    /// The same behind other words: `unshare --mount` for probes that would change the host.
    pub fn control_behind(&self, launcher: &[&str], file: &str, args: &[&str]) -> String {
        let words = probe_words(file, args);
        let finished = self.control_words(launcher, &words);
        let word = String::from_utf8_lossy(&finished.stdout).trim().to_owned();
        assert!(
            !word.is_empty(),
            "the control said nothing: {}",
            String::from_utf8_lossy(&finished.stderr)
        );
        word
    }

    /// Runs a shell command line as a plain process of the host.
    pub fn control_sh(&self, line: &str) -> String {
        let finished = self.control_words(&[], &["bash".to_owned(), "-c".to_owned(), line.to_owned()]);
        String::from_utf8_lossy(&finished.stdout).trim().to_owned()
    }

    fn control_words(&self, launcher: &[&str], words: &[String]) -> Finished {
        let all: Vec<&str> = launcher
            .iter()
            .copied()
            .chain(words.iter().map(String::as_str))
            .collect();
        let mut command = self.plain(all[0]);
        command.args(&all[1..]).current_dir(self.path("skills/probe"));
        run_to_end(&mut command, b"", DEADLINE)
    }

    /// A plain process of the host with the canary in its environment, as a careless runtime would start it.
    pub fn plain(&self, name: &str) -> Command {
        let mut command = program(name);
        command
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        command
            .env("SECRET_CANARY", self.canary())
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command.current_dir(self.path("scratch"));
        command
    }

    /// What the host has in a file now; nothing where it is missing.
    pub fn host_content(&self, path: &str) -> Vec<u8> {
        fs::read(path).unwrap_or_default()
    }
}
