//! Runs the built program in a world of its own: an empty home, a fresh working directory, a bare environment.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A temporary world for one test.
pub struct World {
    dir: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

/// What a run of the program left behind, with the world's path written as `[WORLD]`.
#[derive(Debug)]
pub struct Ran {
    pub stdout: String,
    pub stderr: String,
    pub code: Option<i32>,
}

impl World {
    /// An empty working directory `work` and an empty home `home`.
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
    pub fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// The home directory.
    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Sets a variable for the runs that follow.
    pub fn set(&mut self, name: &str, value: &str) -> &mut Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Writes a file below the working directory.
    pub fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> &Self {
        let path = self.work().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Writes a plain valid skill below the working directory.
    pub fn skill(&self, dir: &str, description: &str) -> &Self {
        let name = dir.rsplit('/').next().unwrap();
        self.write(
            format!("{dir}/SKILL.md"),
            format!("---\nname: {name}\ndescription: {description}\n---\n\n# {name}\n"),
        )
    }

    /// Runs the program with words split at blanks.
    pub fn run(&self, line: &str) -> Ran {
        self.run_words(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// Runs the program.
    pub fn run_words(&self, words: &[&str]) -> Ran {
        let output = self.command(words).output().unwrap();
        self.ran(output)
    }

    /// Runs another program of this machine, such as a script that a test made.
    pub fn run_other(&self, program: &Path, words: &[&str], stdin: &str) -> Ran {
        let mut child = bare(program, self)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
        self.ran(child.wait_with_output().unwrap())
    }

    /// The program, ready to start.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = bare(Path::new(env!("CARGO_BIN_EXE_skillbox")), self);
        command.args(words);
        command
    }

    fn ran(&self, output: std::process::Output) -> Ran {
        let world = self.dir.path().display().to_string();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace(&world, "[WORLD]");
        Ran {
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            code: output.status.code(),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the test is the user who starts the program")]
fn bare(program: &Path, world: &World) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", world.home())
        .current_dir(world.work());
    command.envs(world.variables.iter().map(|(name, value)| (name, value)));
    command
}

impl Ran {
    /// Code and both streams, for a snapshot.
    pub fn whole(&self) -> String {
        let code = self.code.map_or("signal".to_owned(), |code| code.to_string());
        format!(
            "exit code {code}\n--- stdout\n{}--- stderr\n{}",
            self.stdout, self.stderr
        )
    }

    /// Stdout as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.whole()))
    }

    /// Fails unless the exit code is this one.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.whole());
        self
    }
}

/// Whether the owner may execute a file.
pub fn is_executable(path: &Path) -> bool {
    path.metadata().unwrap().permissions().mode() & 0o100 != 0
}
