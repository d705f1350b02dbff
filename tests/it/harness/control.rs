//! Controls: the same probes without a sandbox. They succeed there, so that their failure inside means something.

use std::fs;
use std::process::Command;
use std::time::Duration;

use super::fixture::{Fixture, probe_argv};
use super::process::{ProcessOutput, program, run_to_completion};

const CONTROL_DEADLINE: Duration = Duration::from_secs(120);

impl Fixture {
    /// Runs a probe as a plain process of the host and returns the word it prints.
    pub fn control_probe(&self, file: &str, args: &[&str]) -> String {
        self.control_probe_with(&[], file, args)
    }

    /// Does the same with a launcher, such as `unshare --mount` for probes that would change the host.
    pub fn control_probe_with(&self, launcher: &[&str], file: &str, args: &[&str]) -> String {
        let argv = probe_argv(file, args);
        let output = self.control_argv(launcher, &argv);
        let word = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        assert!(
            !word.is_empty(),
            "the control printed nothing: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        word
    }

    /// Runs a shell command line as a plain process of the host and returns what it prints.
    pub fn control_shell(&self, line: &str) -> String {
        let output = self.control_argv(&[], &["bash".to_owned(), "-c".to_owned(), line.to_owned()]);
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn control_argv(&self, launcher: &[&str], argv: &[String]) -> ProcessOutput {
        let all: Vec<&str> = launcher
            .iter()
            .copied()
            .chain(argv.iter().map(String::as_str))
            .collect();
        let mut command = self.unconfined_command(all[0]);
        command.args(&all[1..]).current_dir(self.path("skills/probe"));
        run_to_completion(&mut command, b"", CONTROL_DEADLINE)
    }

    /// A plain process of the host with the canary in its environment, as a careless runtime would start it.
    pub fn unconfined_command(&self, name: &str) -> Command {
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

    /// The present content of a file of the host; empty where the file is missing.
    pub fn read_host_file(&self, path: &str) -> Vec<u8> {
        fs::read(path).unwrap_or_default()
    }
}
