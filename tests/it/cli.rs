//! Runs the built program with an empty home, a fresh working directory and a bare environment.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The command line program in a temporary directory of one test.
pub struct Cli {
    dir: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

/// The exit code and the output of a command, with the temporary directory written as `[TEMP]`.
#[derive(Debug)]
pub struct CommandOutput {
    pub stdout: String,
    pub stderr: String,
    pub code: Option<i32>,
}

impl Cli {
    /// Creates an empty working directory `work` and an empty home directory `home`.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["work", "home"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        Self {
            dir,
            variables: Vec::new(),
        }
    }

    /// The working directory.
    pub fn work_dir(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// The home directory.
    pub fn home_dir(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Sets an environment variable for later commands.
    pub fn set_variable(&mut self, name: &str, value: &str) -> &mut Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Writes a file below the working directory.
    pub fn write_file(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> &Self {
        let path = self.work_dir().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Writes a minimal valid skill below the working directory.
    pub fn add_skill(&self, dir: &str, description: &str) -> &Self {
        let name = dir.rsplit('/').next().unwrap();
        self.write_file(
            format!("{dir}/SKILL.md"),
            format!("---\nname: {name}\ndescription: {description}\n---\n\n# {name}\n"),
        )
    }

    /// Runs the program with arguments that are separated by blanks.
    pub fn run(&self, line: &str) -> CommandOutput {
        self.run_args(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// Runs the program.
    pub fn run_args(&self, args: &[&str]) -> CommandOutput {
        let output = self.command(args).output().unwrap();
        self.redact(output)
    }

    /// Runs the program in another working directory.
    pub fn run_in(&self, directory: &Path, args: &[&str]) -> CommandOutput {
        let output = self.command(args).current_dir(directory).output().unwrap();
        self.redact(output)
    }

    /// Runs another program, such as a script that a test wrote.
    pub fn run_program(&self, program: &Path, args: &[&str], stdin: &str) -> CommandOutput {
        let mut child = bare_command(program, self)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
        self.redact(child.wait_with_output().unwrap())
    }

    /// The program, ready to start.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = bare_command(Path::new(env!("CARGO_BIN_EXE_skillbox")), self);
        command.args(args);
        command
    }

    fn redact(&self, output: std::process::Output) -> CommandOutput {
        let directory = self.dir.path().display().to_string();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace(&directory, "[TEMP]");
        CommandOutput {
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            code: output.status.code(),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a test starts the program under test")]
fn bare_command(program: &Path, cli: &Cli) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", cli.home_dir())
        .current_dir(cli.work_dir());
    command.envs(cli.variables.iter().map(|(name, value)| (name, value)));
    command
}

impl CommandOutput {
    /// The exit code and both streams, for a snapshot.
    pub fn transcript(&self) -> String {
        let code = self.code.map_or("signal".to_owned(), |code| code.to_string());
        format!(
            "exit code {code}\n--- stdout\n{}--- stderr\n{}",
            self.stdout, self.stderr
        )
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.transcript()))
    }

    /// Fails the test unless the exit code is this one.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.transcript());
        self
    }
}

/// Whether the owner may execute a file.
pub fn is_executable(path: &Path) -> bool {
    path.metadata().unwrap().permissions().mode() & 0o100 != 0
}
