//! One invocation of skillbox, and what it answers.

use std::ffi::{OsStr, OsString};
use std::ops::Index;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Map, Value};

use super::fixture::Fixture;
use super::host::launched_command;
use super::process::{ProcessOutput, run_to_completion, spawn_tracked};

/// Longer than any run of these tests, on a busy machine too: an invocation that reaches it hangs.
const INVOCATION_DEADLINE: Duration = Duration::from_secs(120);

/// An invocation that is being prepared.
pub struct Invocation<'f> {
    fixture: &'f Fixture,
    args: Vec<OsString>,
    stdin: Vec<u8>,
    env: Vec<(OsString, OsString)>,
    launcher: Vec<String>,
    directory: PathBuf,
}

/// The exit code of an invocation, and what it printed.
#[derive(Debug)]
pub struct Answer {
    /// The ended process.
    pub process: ProcessOutput,
    /// Its exit code.
    pub code: Option<i32>,
    json: Value,
}

impl<'f> Invocation<'f> {
    /// `skillbox run` with a whole request on standard input.
    pub(super) fn for_request(fixture: &'f Fixture, request: &Value) -> Self {
        let mut invocation = Self::in_fixture(fixture, &["run", "--json", "--request", "-"]);
        invocation.stdin = request.to_string().into_bytes();
        invocation
    }

    /// Any command, with the skills, profiles and state of the fixture.
    pub(super) fn in_fixture(fixture: &'f Fixture, args: &[&str]) -> Self {
        let mut invocation = Self::bare(fixture, args);
        let directories = [
            ("--skills", "skills"),
            ("--profiles", "profiles"),
            ("--state-dir", "state"),
        ];
        let flags = directories.map(|(flag, name)| [OsString::from(flag), fixture.path(name).into_os_string()]);
        invocation.args.splice(0..0, flags.into_iter().flatten());
        invocation
    }

    /// Any command, with exactly these arguments.
    pub(super) fn bare(fixture: &'f Fixture, args: &[&str]) -> Self {
        Self {
            fixture,
            args: args.iter().map(OsString::from).collect(),
            stdin: Vec::new(),
            env: Vec::new(),
            launcher: Vec::new(),
            directory: fixture.path("scratch"),
        }
    }

    /// Sets the working directory.
    pub fn in_dir(mut self, directory: &Path) -> Self {
        directory.clone_into(&mut self.directory);
        self
    }

    /// Adds arguments, before a `--` if there is one.
    pub fn with_args(mut self, args: &[&str]) -> Self {
        let at = self.args.iter().position(|arg| arg == "--").unwrap_or(self.args.len());
        self.args.splice(at..at, args.iter().map(OsString::from));
        self
    }

    /// Adds a flag with a value that need not be text.
    pub fn with_os_flag(mut self, flag: &str, value: &OsStr) -> Self {
        self.args.extend([flag.into(), value.to_owned()]);
        self
    }

    /// Uses the workspace of a session instead of a temporary one.
    pub fn in_session(self, id: &str) -> Self {
        self.with_args(&["--session", id])
    }

    /// Uses the workspace of a session where one is given.
    pub fn in_optional_session(self, id: Option<&str>) -> Self {
        match id {
            Some(id) => self.in_session(id),
            None => self,
        }
    }

    /// Allows `host://` inputs from the fixture's `host` directory.
    pub fn allow_host_inputs(self) -> Self {
        let dir = self.fixture.path_str("host");
        self.with_args(&["--allow-host", &dir])
    }

    /// Sets the standard input of skillbox itself.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Sets a variable in the environment of skillbox itself.
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Puts a launcher in front: a program that changes something and then executes the rest of its arguments.
    pub fn with_launcher(mut self, launcher: &[String]) -> Self {
        self.launcher.splice(0..0, launcher.iter().cloned());
        self
    }

    /// Runs skillbox to its end.
    pub fn run(self) -> Answer {
        let process = run_to_completion(&mut self.command(), &self.stdin, INVOCATION_DEADLINE);
        Answer::new(process)
    }

    /// Starts skillbox and writes its standard input. The caller kills it, or reads its output to the end.
    pub fn spawn(self) -> Child {
        let mut command = self.command();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = spawn_tracked(&mut command);
        let mut pipe = child.stdin.take().unwrap();
        // A short request fits the buffer of the pipe.
        std::io::Write::write_all(&mut pipe, &self.stdin).unwrap();
        child
    }

    /// Starts skillbox with open pipes to its standard input and output.
    pub fn spawn_with_stdin(self) -> Child {
        let mut command = self.command();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        spawn_tracked(&mut command)
    }

    fn command(&self) -> Command {
        let mut command = launched_command(&self.launcher, self.fixture.binary());
        command.args(&self.args).current_dir(&self.directory).env_clear();
        command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        command
            .env("HOME", self.fixture.path("home"))
            .env("TMPDIR", self.fixture.path("tmp"));
        command.env("SECRET_CANARY", self.fixture.canary()).env("NO_COLOR", "1");
        if let Some(slots) = slot_count() {
            command.env("SKILLBOX_SLOTS", slots);
        }
        if let Some(docker) = self.fixture.docker() {
            command
                .env("SKILLBOX_EXECUTOR", "docker")
                .env("SKILLBOX_DOCKER_HOST", docker.host());
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// The number of parked sandboxes, where the tests set one.
#[expect(
    clippy::disallowed_methods,
    reason = "the number of parked sandboxes is a setting of the tests"
)]
fn slot_count() -> Option<OsString> {
    std::env::var_os("SKILLBOX_TEST_SLOTS")
}

impl Answer {
    fn new(process: ProcessOutput) -> Self {
        let json = serde_json::from_slice(&process.stdout).unwrap_or(Value::Null);
        Self {
            code: process.status.code(),
            json,
            process,
        }
    }

    /// Standard output as JSON; null where it is not JSON.
    pub fn json(&self) -> &Value {
        &self.json
    }

    /// The answer when it is the report of a run. Fails the test otherwise.
    #[track_caller]
    pub fn expect_report(self) -> Self {
        assert!(self.json.get("run_id").is_some(), "no report: {}", self.describe());
        self
    }

    /// The code and the field of a refusal. Fails the test when the run was not refused.
    #[track_caller]
    pub fn expect_refusal(&self) -> (&str, Option<&str>) {
        let error = &self.json["error"];
        let code = error["code"]
            .as_str()
            .unwrap_or_else(|| panic!("not refused: {}", self.describe()));
        let message = error["message"].as_str().unwrap_or_default();
        assert!(!message.is_empty(), "a refusal without a message: {}", self.describe());
        (code, error["field"].as_str())
    }

    /// The one word that a probe printed.
    #[track_caller]
    pub fn expect_word(self) -> String {
        let answer = self.expect_report();
        let word = answer["stdout"].as_str().unwrap().trim().to_owned();
        assert!(!word.is_empty(), "the probe printed nothing: {}", answer.describe());
        word
    }

    /// Whether the request was refused.
    pub fn is_refused(&self) -> bool {
        self.json.get("error").is_some()
    }

    /// The standard output of the script.
    #[track_caller]
    pub fn stdout(&self) -> &str {
        self.json["stdout"]
            .as_str()
            .unwrap_or_else(|| panic!("no stdout: {}", self.describe()))
    }

    /// Names of the collected files.
    pub fn output_names(&self) -> Vec<&str> {
        self.names("output_files")
    }

    /// Names of the files that were not collected.
    pub fn refused_output_names(&self) -> Vec<&str> {
        self.names("refused_outputs")
    }

    fn names(&self, list: &str) -> Vec<&str> {
        let files = self.json[list]
            .as_array()
            .unwrap_or_else(|| panic!("no {list}: {}", self.describe()));
        files.iter().map(|file| file["name"].as_str().unwrap()).collect()
    }

    /// One collected file.
    #[track_caller]
    pub fn output_file(&self, name: &str) -> &Map<String, Value> {
        let files = self.json["output_files"].as_array().unwrap();
        let file = files.iter().find(|file| file["name"] == name);
        file.and_then(Value::as_object)
            .unwrap_or_else(|| panic!("{name} was not collected: {}", self.describe()))
    }

    /// The status of an isolation layer: `enforced` and so on.
    #[track_caller]
    pub fn layer_status(&self, name: &str) -> &str {
        self.json["enforcement"]["layers"][name]["status"]
            .as_str()
            .unwrap_or_else(|| panic!("no layer {name}: {}", self.describe()))
    }

    /// The layers that were asked for and are not fully in force.
    #[track_caller]
    pub fn missing_layers(&self) -> Vec<&str> {
        let layers = self.json["enforcement"]["layers"].as_object().unwrap();
        let missing = layers
            .iter()
            .filter(|(_, state)| state["status"] == "absent" || state["status"] == "partial");
        missing
            .map(|(name, state)| {
                assert!(
                    state["reason"].as_str().is_some_and(|reason| !reason.is_empty()),
                    "{name} is missing without a reason"
                );
                name.as_str()
            })
            .collect()
    }

    /// Whether skillbox printed a text, on either stream.
    pub fn mentions(&self, text: &str) -> bool {
        let contains = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        contains(&self.process.stdout) || contains(&self.process.stderr)
    }

    /// The whole answer for the message of a failing test, shortened and without the enforced layers.
    pub fn describe(&self) -> String {
        let cut = |text: &str| text.chars().take(1500).collect::<String>();
        let ProcessOutput {
            status,
            stdout,
            stderr,
            wall,
            ..
        } = &self.process;
        let mut json = self.json.clone();
        let layers = json.pointer_mut("/enforcement/layers").and_then(Value::as_object_mut);
        if let Some(layers) = layers {
            layers.retain(|_, state| state["status"] != "enforced");
        }
        let answer = match &json {
            Value::Null => cut(&String::from_utf8_lossy(stdout)),
            Value::Object(fields) => {
                let lines = fields
                    .iter()
                    .map(|(key, value)| format!("  {key}: {}\n", cut(&value.to_string())));
                lines.collect()
            }
            other => cut(&other.to_string()),
        };
        format!(
            "{status} after {wall:?}\n{answer}\n--- stderr\n{}",
            cut(&String::from_utf8_lossy(stderr))
        )
    }
}

impl Index<&str> for Answer {
    type Output = Value;

    fn index(&self, key: &str) -> &Value {
        &self.json[key]
    }
}

/// Whether the word of a probe means that its attempt was denied.
pub fn is_refusal(word: &str) -> bool {
    const REFUSALS: &[&str] = &[
        "EPERM",
        "EACCES",
        "ENOSYS",
        "EROFS",
        "ENOENT",
        "ENXIO",
        "ENODEV",
        "EAFNOSUPPORT",
        "EPROTONOSUPPORT",
        "ESRCH",
        "EXDEV",
        "ENETUNREACH",
        "ECONNREFUSED",
        "EADDRNOTAVAIL",
        "EINVAL",
        "EOPNOTSUPP",
        "ENOTTY",
        "ELOOP",
        "refused",
    ];
    REFUSALS.contains(&word)
}
