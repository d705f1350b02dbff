//! One question to skillbox, and its answer.

use std::ffi::{OsStr, OsString};
use std::ops::Index;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Map, Value};

use super::host::behind;
use super::process::{Finished, run_to_end, start};
use super::scene::Scene;

/// Longer than any run of these tests; a run that needs it has hung.
const DEADLINE: Duration = Duration::from_secs(60);

/// A question that is still being put together.
pub struct Ask<'s> {
    scene: &'s Scene,
    words: Vec<OsString>,
    stdin: Vec<u8>,
    env: Vec<(OsString, OsString)>,
    launcher: Vec<String>,
    deadline: Duration,
    directory: PathBuf,
}

/// What skillbox said.
#[derive(Debug)]
pub struct Answer {
    /// The process.
    pub finished: Finished,
    /// Its exit code.
    pub code: Option<i32>,
    json: Value,
}

impl<'s> Ask<'s> {
    /// `skillbox run` with a whole request on standard input.
    pub(super) fn run(scene: &'s Scene, request: &Value) -> Self {
        let mut ask = Self::words(scene, &["run", "--json", "--request", "-"]);
        ask.stdin = request.to_string().into_bytes();
        ask
    }

    /// Any command line; the world's skills, profiles and state are given with it.
    pub(super) fn words(scene: &'s Scene, words: &[&str]) -> Self {
        let mut ask = Self::bare(scene, words);
        let places = [
            ("--skills", "skills"),
            ("--profiles", "profiles"),
            ("--state-dir", "state"),
        ];
        let given = places.map(|(flag, place)| [OsString::from(flag), scene.path(place).into_os_string()]);
        ask.words.splice(0..0, given.into_iter().flatten());
        ask
    }

    /// Any command line as it stands.
    pub(super) fn bare(scene: &'s Scene, words: &[&str]) -> Self {
        Self {
            scene,
            words: words.iter().map(OsString::from).collect(),
            stdin: Vec::new(),
            env: Vec::new(),
            launcher: Vec::new(),
            deadline: DEADLINE,
            directory: scene.path("scratch"),
        }
    }

    /// Another working directory.
    pub fn at(mut self, directory: &Path) -> Self {
        directory.clone_into(&mut self.directory);
        self
    }

    /// More words, before a `--` if there is one.
    pub fn with(mut self, words: &[&str]) -> Self {
        let at = self
            .words
            .iter()
            .position(|word| word == "--")
            .unwrap_or(self.words.len());
        self.words.splice(at..at, words.iter().map(OsString::from));
        self
    }

    /// A flag with a value that need not be text.
    pub fn word(mut self, flag: &str, value: &OsStr) -> Self {
        self.words.extend([flag.into(), value.to_owned()]);
        self
    }

    /// A session's workspace instead of one that is gone afterwards.
    pub fn session(self, id: &str) -> Self {
        self.with(&["--session", id])
    }

    /// The same where there is one.
    pub fn in_session(self, id: Option<&str>) -> Self {
        match id {
            Some(id) => self.session(id),
            None => self,
        }
    }

    /// Allows `host://` inputs from the world's `host` directory.
    pub fn host_allowed(self) -> Self {
        let dir = self.scene.text("host");
        self.with(&["--allow-host", &dir])
    }

    /// Bytes on standard input of skillbox itself.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// A variable in the environment of skillbox itself.
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Words in front of skillbox: a program that changes something and then executes the rest.
    pub fn behind(mut self, launcher: &[String]) -> Self {
        self.launcher.splice(0..0, launcher.iter().cloned());
        self
    }

    /// A tighter guard than usual.
    pub fn within(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Asks and waits.
    pub fn go(self) -> Answer {
        let finished = run_to_end(&mut self.command(), &self.stdin, self.deadline);
        Answer::of(finished)
    }

    /// Asks without waiting: the caller kills it, or reads it to its end. Its standard input is written before this returns.
    pub fn begin(self) -> Child {
        let mut command = self.command();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = start(&mut command);
        let mut pipe = child.stdin.take().unwrap();
        // A short request fits the pipe's buffer.
        std::io::Write::write_all(&mut pipe, &self.stdin).unwrap();
        child
    }

    fn command(&self) -> Command {
        let mut command = behind(&self.launcher, self.scene.binary());
        command.args(&self.words).current_dir(&self.directory).env_clear();
        command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        command
            .env("HOME", self.scene.path("home"))
            .env("TMPDIR", self.scene.path("tmp"));
        command.env("SECRET_CANARY", self.scene.canary()).env("NO_COLOR", "1");
        if let Some(slots) = slots() {
            command.env("SKILLBOX_SLOTS", slots);
        }
        if let Some(docker) = self.scene.docker() {
            command
                .env("SKILLBOX_EXECUTOR", "docker")
                .env("SKILLBOX_DOCKER_HOST", docker.host());
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// How many sandboxes are made ahead, where the tests are to be run with another number than usual.
#[expect(
    clippy::disallowed_methods,
    reason = "whether sandboxes are made ahead is a setting of the tests"
)]
fn slots() -> Option<OsString> {
    std::env::var_os("SKILLBOX_TEST_SLOTS")
}

impl Answer {
    fn of(finished: Finished) -> Self {
        let json = serde_json::from_slice(&finished.stdout).unwrap_or(Value::Null);
        Self {
            code: finished.status.code(),
            json,
            finished,
        }
    }

    /// The parsed answer; null where it was not JSON.
    pub fn json(&self) -> &Value {
        &self.json
    }

    /// The same, when it is a report of a run. A refusal fails the test.
    pub fn reported(self) -> Self {
        assert!(self.json.get("run_id").is_some(), "no report: {}", self.told());
        self
    }

    /// Code and field of a refusal. A report fails the test.
    pub fn refused(&self) -> (&str, Option<&str>) {
        let error = &self.json["error"];
        let code = error["code"]
            .as_str()
            .unwrap_or_else(|| panic!("not refused: {}", self.told()));
        let message = error["message"].as_str().unwrap_or_default();
        assert!(!message.is_empty(), "a refusal without a message: {}", self.told());
        (code, error["field"].as_str())
    }

    /// The one word that a probe printed.
    pub fn word(self) -> String {
        let answer = self.reported();
        let word = answer["stdout"].as_str().unwrap().trim().to_owned();
        assert!(!word.is_empty(), "the probe said nothing: {}", answer.told());
        word
    }

    /// What the script wrote.
    pub fn stdout(&self) -> &str {
        self.json["stdout"]
            .as_str()
            .unwrap_or_else(|| panic!("no stdout: {}", self.told()))
    }

    /// Names of the collected files.
    pub fn outputs(&self) -> Vec<&str> {
        self.names("output_files")
    }

    /// Names of the files that were not taken.
    pub fn refused_outputs(&self) -> Vec<&str> {
        self.names("refused_outputs")
    }

    fn names(&self, list: &str) -> Vec<&str> {
        let files = self.json[list]
            .as_array()
            .unwrap_or_else(|| panic!("no {list}: {}", self.told()));
        files.iter().map(|file| file["name"].as_str().unwrap()).collect()
    }

    /// One collected file.
    pub fn output(&self, name: &str) -> &Map<String, Value> {
        let files = self.json["output_files"].as_array().unwrap();
        let file = files.iter().find(|file| file["name"] == name);
        file.and_then(Value::as_object)
            .unwrap_or_else(|| panic!("{name} was not collected: {}", self.told()))
    }

    /// What became of a layer, `enforced` and so on.
    pub fn layer(&self, name: &str) -> &str {
        self.json["enforcement"]["layers"][name]["status"]
            .as_str()
            .unwrap_or_else(|| panic!("no layer {name}: {}", self.told()))
    }

    /// The layers that were asked for and are not fully in force.
    pub fn gaps(&self) -> Vec<&str> {
        let layers = self.json["enforcement"]["layers"].as_object().unwrap();
        let gaps = layers
            .iter()
            .filter(|(_, state)| state["status"] == "absent" || state["status"] == "partial");
        gaps.map(|(name, state)| {
            assert!(
                state["reason"].as_str().is_some_and(|reason| !reason.is_empty()),
                "{name}: a gap without a reason"
            );
            name.as_str()
        })
        .collect()
    }

    /// Whether some bytes stand anywhere in what skillbox printed.
    pub fn mentions(&self, text: &str) -> bool {
        let within = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        within(&self.finished.stdout) || within(&self.finished.stderr)
    }

    /// Everything, for the message of a failing test: shortened, and of the enforcement only the gaps.
    pub fn told(&self) -> String {
        let cut = |text: &str| text.chars().take(1500).collect::<String>();
        let Finished {
            status,
            stdout,
            stderr,
            wall,
            ..
        } = &self.finished;
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

/// Whether a probe's word says that it was kept from doing something.
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
