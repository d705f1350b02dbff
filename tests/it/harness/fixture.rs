//! The files of one test, below one temporary directory: skills, state, home, host files, and canaries among them.
//!
//! Canaries are readable by everybody on purpose: only the sandbox keeps a script from reading them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::docker::{self, Docker};
use super::invocation::{Answer, Invocation, is_refusal};
use super::leak_check::assert_no_leaks;
use super::machine_load::CONDITION_TIMEOUT;
use super::machine_lock::MachineLock;
use super::process::pids_with_argument;
use crate::workspace::root;

/// The environment of one test.
pub struct Fixture {
    dir: TempDir,
    canary: String,
    binary: OnceLock<PathBuf>,
    docker: Option<Docker>,
    _lock: MachineLock,
}

impl Fixture {
    /// A fixture that shares the machine with other tests.
    pub fn new() -> Self {
        Self::with_lock(MachineLock::shared())
    }

    /// A fixture without other tests beside it, for tests that count things of the whole machine or measure time.
    pub fn exclusive() -> Self {
        Self::with_lock(MachineLock::exclusive())
    }

    fn with_lock(lock: MachineLock) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("skillbox-it-")
            .tempdir()
            .expect("a temporary directory");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let canary = format!("CANARY-{}", dir.path().file_name().unwrap().to_str().unwrap());
        let fixture = Self {
            dir,
            canary,
            binary: OnceLock::new(),
            docker: docker::daemon_of_thread(),
            _lock: lock,
        };
        for name in [
            "skills",
            "state",
            "home/.ssh",
            "home/.aws",
            "host",
            "tmp",
            "profiles",
            "scratch",
            "launchers",
        ] {
            fs::create_dir_all(fixture.path(name)).unwrap();
        }
        for name in [
            "home/.ssh/id_ed25519",
            "home/.aws/credentials",
            "home/.netrc",
            "state/canary",
            "host/canary.txt",
        ] {
            fs::write(fixture.path(name), format!("{}\n", fixture.canary)).unwrap();
        }
        fixture.add_skill("probe", &[]);
        copy_files(&root().join("tests/launchers"), &fixture.path("launchers"));
        copy_files(&root().join("tests/probes"), &fixture.skill_path("probe", "scripts"));
        fixture
    }

    /// A path below the fixture's directory.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().join(relative)
    }

    /// The same path as text.
    pub fn path_str(&self, relative: &str) -> String {
        self.path(relative).to_str().unwrap().to_owned()
    }

    /// The daemon whose containers the runs take place in, where they do.
    pub fn docker(&self) -> Option<&Docker> {
        self.docker.as_ref()
    }

    /// The directory of all files.
    pub fn root_dir(&self) -> &Path {
        self.dir.path()
    }

    /// A text that only the canary files and the environment of skillbox contain.
    pub fn canary(&self) -> &str {
        &self.canary
    }

    /// Adds a skill with files.
    pub fn add_skill(&self, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let dir = self.path("skills").join(name);
        fs::create_dir_all(dir.join("scripts")).unwrap();
        let skill_md = format!("---\nname: {name}\ndescription: A skill of the tests.\n---\n\n# {name}\n");
        fs::write(dir.join("SKILL.md"), skill_md).unwrap();
        for (path, content) in files {
            let path = dir.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        dir
    }

    /// The path of a skill's file on the host.
    pub fn skill_path(&self, name: &str, relative: &str) -> PathBuf {
        self.path("skills").join(name).join(relative)
    }

    /// Adds a file that `host://` inputs may name.
    pub fn add_host_file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path("host").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Adds a profile: `default` with these limits.
    pub fn add_profile(&self, name: &str, limits: &[(&str, &str)]) {
        let limits: String = limits
            .iter()
            .map(|(key, value)| format!("  {key}: {value}\n"))
            .collect();
        self.add_profile_yaml(name, &format!("extends: default\nlimits:\n{limits}"));
    }

    /// Adds a profile, given as the YAML after its name and description.
    pub fn add_profile_yaml(&self, name: &str, rest: &str) {
        let text = format!("name: {name}\ndescription: A profile of the tests.\n{rest}");
        fs::write(self.path("profiles").join(format!("{name}.yaml")), text).unwrap();
    }

    /// A `skillbox run` of a request; the skill is `probe` where the request names none.
    pub fn request(&self, mut request: Value) -> Invocation<'_> {
        let object = request.as_object_mut().expect("a request is an object");
        if !object.contains_key("skill") {
            object.insert("skill".to_owned(), json!("probe"));
        }
        Invocation::for_request(self, &request)
    }

    /// Any command of skillbox.
    pub fn command(&self, args: &[&str]) -> Invocation<'_> {
        Invocation::in_fixture(self, args)
    }

    /// A command with exactly these arguments.
    pub fn plain_command(&self, args: &[&str]) -> Invocation<'_> {
        Invocation::bare(self, args)
    }

    /// A command that gets nothing of the fixture but its state directory.
    pub fn bare_command(&self, args: &[&str]) -> Invocation<'_> {
        let state = self.path_str("state");
        let args: Vec<&str> = ["--state-dir", &state]
            .into_iter()
            .chain(args.iter().copied())
            .collect();
        Invocation::bare(self, &args)
    }

    /// Runs a shell command line in the sandbox and returns the report.
    #[track_caller]
    pub fn run_shell(&self, command: &str) -> Answer {
        self.request(json!({"command": command, "timeout": 100}))
            .run()
            .expect_report()
    }

    /// Runs a probe in the sandbox and returns the word it prints.
    #[track_caller]
    pub fn run_probe(&self, file: &str, args: &[&str]) -> String {
        self.request(json!({"argv": probe_argv(file, args), "timeout": 100}))
            .run()
            .expect_word()
    }

    /// Runs several probes in one sandbox and returns one word for each.
    #[track_caller]
    pub fn run_probes(&self, probes: &[(&str, &[&str])]) -> Vec<String> {
        let lines: Vec<String> = probes.iter().map(|(file, args)| shell_line(file, args)).collect();
        let answer = self.run_shell(&lines.join("\n"));
        let words: Vec<String> = answer.stdout().lines().map(str::to_owned).collect();
        assert_eq!(
            words.len(),
            probes.len(),
            "one word for each probe: {}",
            answer.describe()
        );
        words
    }

    /// Checks that probes succeed outside and are refused inside.
    #[track_caller]
    pub fn assert_refused(&self, probes: &[(&str, &[&str])]) {
        for (file, args) in probes {
            let word = self.control_probe(file, args);
            assert!(
                !is_refusal(&word),
                "the control {file} {args:?} prints {word}: the test could not fail"
            );
        }
        self.assert_refused_inside(probes);
    }

    /// Checks that probes are refused inside, where the control is special or impossible.
    #[track_caller]
    pub fn assert_refused_inside(&self, probes: &[(&str, &[&str])]) {
        for ((file, args), word) in probes.iter().zip(self.run_probes(probes)) {
            assert!(is_refusal(&word), "{file} {args:?} inside the sandbox: {word}");
        }
    }

    /// The program under test. Ordinary users may be unable to reach the directory of cargo, so they get a copy.
    pub fn binary(&self) -> &Path {
        self.binary
            .get()
            .map_or(Path::new(env!("CARGO_BIN_EXE_skillbox")), PathBuf::as_path)
    }

    /// Gives all files to an ordinary user, with a copy of the program under test.
    pub fn chown_to(&self, id: u32) {
        let copy = self.path("skillbox");
        if self.binary.get().is_none() {
            fs::copy(env!("CARGO_BIN_EXE_skillbox"), &copy).unwrap();
            fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
            self.binary.set(copy).unwrap();
        }
        for path in paths_below(self.root_dir()) {
            chown(&path, Some(id), Some(id)).unwrap();
        }
    }

    /// Waits until `look` finds something, and fails when it finds nothing within a minute.
    #[track_caller]
    pub fn wait_for<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let deadline = Instant::now() + CONDITION_TIMEOUT;
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(Instant::now() < deadline, "{what}: not within {CONDITION_TIMEOUT:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits until no process of the host has this word among its arguments.
    #[track_caller]
    pub fn wait_for_no_process_with(&self, word: &str) {
        self.wait_for("the end of the processes", || {
            self.host_pids_with(word).is_empty().then_some(())
        });
    }

    /// Pids on the host of the processes with this word among their arguments.
    pub fn host_pids_with(&self, word: &str) -> Vec<i32> {
        pids_with_argument(word)
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // A test that fails reports its own failure; what it left behind is not a second one.
        if !std::thread::panicking() {
            assert_no_leaks(self.root_dir());
        }
    }
}

/// The argv that runs a probe inside the sandbox.
pub fn probe_argv(file: &str, args: &[&str]) -> Vec<String> {
    let interpreter = if file.ends_with(".py") { "python3" } else { "bash" };
    let script = format!("scripts/{file}");
    [interpreter, &script]
        .iter()
        .chain(args)
        .map(|word| (*word).to_owned())
        .collect()
}

/// A probe as a line of a shell script.
fn shell_line(file: &str, args: &[&str]) -> String {
    let quoted = |word: &String| format!("'{}'", word.replace('\'', "'\\''"));
    let argv = probe_argv(file, args);
    argv.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Copies the files of one directory into another.
fn copy_files(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().flatten() {
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// A directory and all that it contains, without following links.
fn paths_below(dir: &Path) -> Vec<PathBuf> {
    let mut all = vec![dir.to_owned()];
    let mut at = 0;
    while at < all.len() {
        let path = all[at].clone();
        if fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir()) {
            all.extend(
                fs::read_dir(&path)
                    .into_iter()
                    .flatten()
                    .flatten()
                    .map(|entry| entry.path()),
            );
        }
        at += 1;
    }
    all.retain(|path| fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_symlink()));
    all
}

/// Every file of a tree with its mode and content, to show that the tree is unchanged.
pub fn tree_contents(dir: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let files = paths_below(dir).into_iter();
    files
        .map(|path| {
            let mode = fs::symlink_metadata(&path).unwrap().permissions().mode();
            let content = fs::read(&path).unwrap_or_default();
            (path, (mode, content))
        })
        .collect()
}
