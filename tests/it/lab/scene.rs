//! A small world for one test, below one temporary directory: skills, state, home, host files, and canaries in them.
//!
//! Canaries are readable by everybody on purpose: only the sandbox may stand between them and a script.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::ask::{Answer, Ask, is_refusal};
use super::docker::{self, Docker};
use super::leftovers;
use super::turn::Turn;
use crate::workspace::root;

/// The world of one test.
pub struct Scene {
    dir: TempDir,
    canary: String,
    binary: OnceLock<PathBuf>,
    docker: Option<Docker>,
    _turn: Turn,
}

impl Scene {
    /// A world beside those of other tests.
    pub fn new() -> Self {
        Self::with(Turn::shared())
    }

    /// The only world: for tests that count things of the whole machine, or measure time.
    pub fn alone() -> Self {
        Self::with(Turn::alone())
    }

    fn with(turn: Turn) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("skillbox-it-")
            .tempdir()
            .expect("a temporary directory");
        open_up(dir.path());
        let canary = format!("CANARY-{}", dir.path().file_name().unwrap().to_str().unwrap());
        let scene = Self {
            dir,
            canary,
            binary: OnceLock::new(),
            docker: docker::in_use(),
            _turn: turn,
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
        ] {
            fs::create_dir_all(scene.path(name)).unwrap();
        }
        for name in [
            "home/.ssh/id_ed25519",
            "home/.aws/credentials",
            "home/.netrc",
            "state/canary",
            "host/canary.txt",
        ] {
            fs::write(scene.path(name), format!("{}\n", scene.canary)).unwrap();
        }
        scene.skill("probe", &[]);
        for entry in fs::read_dir(root().join("tests/launchers")).unwrap().flatten() {
            if entry.file_type().unwrap().is_file() {
                fs::create_dir_all(scene.path("launchers")).unwrap();
                fs::copy(entry.path(), scene.path("launchers").join(entry.file_name())).unwrap();
            }
        }
        for entry in fs::read_dir(root().join("tests/probes")).unwrap().flatten() {
            if entry.file_type().unwrap().is_file() {
                fs::copy(
                    entry.path(),
                    scene.skill_file("probe", "scripts").join(entry.file_name()),
                )
                .unwrap();
            }
        }
        scene
    }

    /// A path below the world.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().join(relative)
    }

    /// The same as text.
    pub fn text(&self, relative: &str) -> String {
        self.path(relative).to_str().unwrap().to_owned()
    }

    /// The daemon that runs take place on, where they do not take place here.
    pub fn docker(&self) -> Option<&Docker> {
        self.docker.as_ref()
    }

    /// The directory of everything.
    pub fn top(&self) -> &Path {
        self.dir.path()
    }

    /// Words that stand in every canary file and in the environment of skillbox, and nowhere else.
    pub fn canary(&self) -> &str {
        &self.canary
    }

    /// Adds a skill with files; a path that ends in `/` is a directory.
    pub fn skill(&self, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let dir = self.path("skills").join(name);
        fs::create_dir_all(dir.join("scripts")).unwrap();
        let front = format!("---\nname: {name}\ndescription: A skill of the tests.\n---\n\n# {name}\n");
        fs::write(dir.join("SKILL.md"), front).unwrap();
        for (path, content) in files {
            let path = dir.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        dir
    }

    /// A file of a skill, on the host.
    pub fn skill_file(&self, name: &str, relative: &str) -> PathBuf {
        self.path("skills").join(name).join(relative)
    }

    /// A file among those that `host://` inputs may come from.
    pub fn host_file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path("host").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// A profile of its own: `default` with these limits.
    pub fn profile(&self, name: &str, limits: &[(&str, &str)]) {
        let limits: String = limits
            .iter()
            .map(|(key, value)| format!("  {key}: {value}\n"))
            .collect();
        self.profile_text(name, &format!("extends: default\nlimits:\n{limits}"));
    }

    /// A profile of its own, as YAML after name and description.
    pub fn profile_text(&self, name: &str, rest: &str) {
        let text = format!("name: {name}\ndescription: A profile of the tests.\n{rest}");
        fs::write(self.path("profiles").join(format!("{name}.yaml")), text).unwrap();
    }

    /// A question to `skillbox run`; the skill is `probe` where the request names none.
    pub fn ask(&self, mut request: Value) -> Ask<'_> {
        let object = request.as_object_mut().expect("a request is an object");
        if !object.contains_key("skill") {
            object.insert("skill".to_owned(), json!("probe"));
        }
        Ask::run(self, &request)
    }

    /// A question to another command of skillbox.
    pub fn tell(&self, words: &[&str]) -> Ask<'_> {
        Ask::words(self, words)
    }

    /// A command line that is given nothing of the world but its state directory.
    pub fn tell_bare(&self, words: &[&str]) -> Ask<'_> {
        let state = self.text("state");
        let words: Vec<&str> = ["--state-dir", &state]
            .into_iter()
            .chain(words.iter().copied())
            .collect();
        Ask::bare(self, &words)
    }

    /// Runs a shell command line to a report.
    pub fn sh(&self, command: &str) -> Answer {
        self.ask(json!({"command": command, "timeout": 20})).go().reported()
    }

    /// Runs a probe in the sandbox and gives its word.
    pub fn probe(&self, file: &str, args: &[&str]) -> String {
        self.ask(json!({"argv": probe_words(file, args), "timeout": 20}))
            .go()
            .word()
    }

    /// Runs several probes in one sandbox, one word each.
    pub fn probes(&self, probes: &[(&str, &[&str])]) -> Vec<String> {
        let lines: Vec<String> = probes.iter().map(|(file, args)| shell_line(file, args)).collect();
        let answer = self
            .ask(json!({"command": lines.join("\n"), "timeout": 30}))
            .go()
            .reported();
        let words: Vec<String> = answer.stdout().lines().map(str::to_owned).collect();
        assert_eq!(words.len(), probes.len(), "one word for each probe: {}", answer.told());
        words
    }

    /// Checks that probes succeed outside and are refused inside.
    pub fn refuses(&self, probes: &[(&str, &[&str])]) {
        for (file, args) in probes {
            let word = self.control(file, args);
            assert!(
                !is_refusal(&word),
                "the control {file} {args:?} says {word}: the test could not fail"
            );
        }
        self.refuses_inside(probes);
    }

    /// Checks that probes are refused inside, where the control is special or impossible.
    pub fn refuses_inside(&self, probes: &[(&str, &[&str])]) {
        for ((file, args), word) in probes.iter().zip(self.probes(probes)) {
            assert!(is_refusal(&word), "{file} {args:?} inside the sandbox: {word}");
        }
    }

    /// The program under test. Ordinary users may not be able to reach where cargo built it, so they get a copy.
    pub fn binary(&self) -> &Path {
        self.binary
            .get()
            .map_or(Path::new(env!("CARGO_BIN_EXE_skillbox")), PathBuf::as_path)
    }

    /// Makes the world an ordinary user's.
    pub fn give_to(&self, id: u32) {
        let copy = self.path("skillbox");
        if self.binary.get().is_none() {
            fs::copy(env!("CARGO_BIN_EXE_skillbox"), &copy).unwrap();
            fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
            self.binary.set(copy).unwrap();
        }
        for path in everything_below(self.top()) {
            chown(&path, Some(id), Some(id)).unwrap();
        }
    }

    /// Waits until a condition of the host holds.
    pub fn wait_for<T>(&self, what: &str, patience: Duration, mut look: impl FnMut() -> Option<T>) -> T {
        let end = Instant::now() + patience;
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(Instant::now() < end, "{what}: not within {patience:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Pids, as the host sees them, of processes with this word among their arguments.
    pub fn host_pids_with(&self, word: &str) -> Vec<i32> {
        let own = i32::try_from(std::process::id()).unwrap();
        let all = super::process::all_processes().into_iter().map(|(pid, ..)| pid);
        let has_word = |pid: &i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0)
                .any(|argument| argument == word.as_bytes())
        };
        all.filter(|pid| *pid != own && has_word(pid)).collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // A test that fails already says why; what it left behind is then no second failure.
        if !std::thread::panicking() {
            leftovers::refuse(self.top());
        }
    }
}

/// The words that run a probe inside the sandbox.
pub fn probe_words(file: &str, args: &[&str]) -> Vec<String> {
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
    let words = probe_words(file, args);
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn open_up(dir: &Path) {
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A directory and all below it, without following links.
fn everything_below(dir: &Path) -> Vec<PathBuf> {
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

/// Every file of a tree with its mode and content: equal before and after means untouched.
pub fn tree_digest(dir: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let files = everything_below(dir).into_iter();
    files
        .map(|path| {
            let mode = fs::symlink_metadata(&path).unwrap().permissions().mode();
            let content = fs::read(&path).unwrap_or_default();
            (path, (mode, content))
        })
        .collect()
}
