//! `validate`, `read-properties` and `to-prompt` have the streams and exit codes of the reference tool `agentskills`,
//! byte for byte. The cases and the recorded answers of the reference are in `tests/parity/cases.json`, written by
//! `tests/parity/record.py`. A case with an intended difference contains its reason and our answer, and
//! `tests/parity/DIFFERENCES.md` explains it.

#![expect(
    clippy::disallowed_methods,
    reason = "the test starts the two programs that it compares, and the environment names the reference"
)]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, thread};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;

const CASES: &str = include_str!("../parity/cases.json");
const DIFFERENCES: &str = include_str!("../parity/DIFFERENCES.md");
const SKILLBOX: &str = env!("CARGO_BIN_EXE_skillbox");
/// Names the command of the reference; `tests/run` installs it and sets this.
const REFERENCE_VARIABLE: &str = "SKILLBOX_AGENTSKILLS";
const TRACEBACK: &str = "Traceback (most recent call last):";

#[derive(Deserialize)]
struct Recording {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    files: Vec<Entry>,
    #[serde(default)]
    cwd: PathBuf,
    args: Vec<String>,
    /// The answer of the reference.
    expect: Answer,
    /// The text after these words comes from the YAML parser and is not compared.
    free_after: Option<String>,
    /// The reference prints its usage text: only the exit code and the empty stdout are compared.
    #[serde(default)]
    usage: bool,
    /// The reason of an intended difference; then `ours` is our answer.
    differs: Option<String>,
    ours: Option<Answer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    path: PathBuf,
    text: Option<String>,
    base64: Option<String>,
    symlink_to: Option<String>,
    #[serde(default)]
    dir: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    stdout: String,
    stderr: String,
    exit_code: i32,
}

#[test]
fn recorded_reference_answers_are_reproduced() {
    let cases = cases();
    let answers = answers_of(Path::new(SKILLBOX), &cases);
    let mismatches = cases.iter().zip(&answers).filter_map(|(case, ours)| match &case.ours {
        Some(expected) => mismatch(case, Comparison::Exact, expected, ours),
        None => mismatch(case, case.comparison(), &case.expect, ours),
    });
    report("the recording", cases.len(), mismatches.collect());
}

#[test]
fn live_reference_agrees_with_the_recording() {
    let Some(reference) = env::var_os(REFERENCE_VARIABLE) else {
        let reason = format!("{REFERENCE_VARIABLE} does not name the command `agentskills` of the package skills-ref");
        let is_ci = env::var_os("CI").is_some_and(|value| value == "true");
        assert!(!is_ci, "not skipped in CI: {reason}");
        eprintln!("skipped: {reason}");
        return;
    };
    let cases = cases();
    let live = answers_of(Path::new(&reference), &cases);
    let ours = answers_of(Path::new(SKILLBOX), &cases);
    let mut mismatches = Vec::new();
    for (case, (live, ours)) in cases.iter().zip(live.iter().zip(&ours)) {
        if let Some(text) = mismatch(case, case.comparison(), &case.expect, live) {
            mismatches.push(format!("the recording is outdated: {text}"));
        }
        if case.differs.is_none() {
            mismatches.extend(mismatch(case, case.comparison(), live, ours));
        }
    }
    report("the live reference", cases.len(), mismatches);
}

#[test]
fn every_difference_is_explained() {
    let cases = cases();
    let reasons: BTreeSet<&str> = cases.iter().filter_map(|case| case.differs.as_deref()).collect();
    let explained: BTreeSet<&str> = DIFFERENCES
        .lines()
        .filter_map(|line| line.strip_prefix("- **")?.split("**").next())
        .collect();
    assert_eq!(
        reasons, explained,
        "reasons in cases.json and bold entries of DIFFERENCES.md"
    );
    assert!(
        cases.iter().all(|case| case.differs.is_some() == case.ours.is_some()),
        "`differs` and `ours` go together"
    );
}

fn cases() -> Vec<Case> {
    let recording: Recording = serde_json::from_str(CASES).expect("cases.json is a recording");
    let names: BTreeSet<&str> = recording.cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), recording.cases.len(), "two cases have the same name");
    recording.cases
}

/// Which part of an answer has to be equal.
#[derive(Clone, Copy)]
enum Comparison {
    Exact,
    UsageError,
}

impl Case {
    fn comparison(&self) -> Comparison {
        if self.usage {
            Comparison::UsageError
        } else {
            Comparison::Exact
        }
    }

    /// The compared part of stderr, and whether the part after it is not empty.
    fn compared_stderr<'a>(&self, stderr: &'a str) -> (&'a str, bool) {
        match self
            .free_after
            .as_deref()
            .and_then(|words| Some(stderr.find(words)? + words.len()))
        {
            Some(end) => (&stderr[..end], !stderr[end..].trim().is_empty()),
            None => (stderr, true),
        }
    }
}

fn mismatch(case: &Case, comparison: Comparison, expected: &Answer, actual: &Answer) -> Option<String> {
    let mut text = String::new();
    if expected.exit_code != actual.exit_code {
        let _ = writeln!(
            text,
            "    exit code  expected {}, got {}",
            expected.exit_code, actual.exit_code
        );
    }
    difference(&mut text, "stdout", &expected.stdout, &actual.stdout);
    match comparison {
        Comparison::UsageError if actual.stderr.is_empty() => text.push_str("    stderr     is empty\n"),
        Comparison::UsageError => {}
        Comparison::Exact => {
            let (compared, is_explained) = case.compared_stderr(&actual.stderr);
            difference(&mut text, "stderr", case.compared_stderr(&expected.stderr).0, compared);
            // The recording contains the compared part only, so that just our answer or a live one needs an explanation.
            if !is_explained {
                text.push_str("    stderr     does not describe the YAML error\n");
            }
        }
    }
    (!text.is_empty()).then(|| format!("{}  {:?} in {:?}\n{text}", case.name, case.args, case.cwd))
}

fn difference(text: &mut String, stream: &str, expected: &str, actual: &str) {
    if expected == actual {
        return;
    }
    let same = expected
        .chars()
        .zip(actual.chars())
        .take_while(|(left, right)| left == right)
        .count();
    let excerpt = |whole: &str| {
        whole
            .chars()
            .skip(same.saturating_sub(40))
            .take(240)
            .collect::<String>()
    };
    let _ = writeln!(text, "    {stream}     differs at character {same}");
    let _ = writeln!(text, "      expected  …{:?}", excerpt(expected));
    let _ = writeln!(text, "      got       …{:?}", excerpt(actual));
}

fn report(against: &str, cases: usize, mismatches: Vec<String>) {
    let (count, list) = (mismatches.len(), mismatches.join("\n"));
    assert!(
        mismatches.is_empty(),
        "{count} differences from {against} in {cases} cases:\n\n{list}"
    );
}

/// Runs every case with `program`, on all cores: the reference takes a tenth of a second to start.
fn answers_of(program: &Path, cases: &[Case]) -> Vec<Answer> {
    let next = AtomicUsize::new(0);
    let work = || {
        let indices = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        let claimed = indices.map_while(|index| Some((index, cases.get(index)?)));
        claimed
            .map(|(index, case)| (index, answer_of(program, case)))
            .collect::<Vec<_>>()
    };
    let mut answers = thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("a worker panicked"))
            .collect::<Vec<_>>()
    });
    answers.sort_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

fn answer_of(program: &Path, case: &Case) -> Answer {
    let directory = tempfile::Builder::new()
        .prefix("parity-")
        .tempdir()
        .expect("a temporary directory");
    // The prompt contains resolved paths, so the directory must have no symbolic links.
    let root = directory
        .path()
        .canonicalize()
        .expect("the temporary directory resolves");
    let root_text = root.to_str().expect("the temporary directory has a UTF-8 path");
    for entry in &case.files {
        create_entry(&root, root_text, entry)
            .unwrap_or_else(|error| panic!("{}: {}: {error}", case.name, entry.path.display()));
    }
    let output = Command::new(program)
        .args(
            case.args
                .iter()
                .map(|argument| OsString::from(argument.replace("$DIR", root_text))),
        )
        .current_dir(root.join(&case.cwd))
        .env_clear()
        .envs([
            ("PATH", env::var_os("PATH").unwrap_or_default()),
            ("HOME", root.clone().into()),
            ("LC_ALL", "C.UTF-8".into()),
        ])
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("cannot run {}: {error}", program.display()));
    let redact = |stream: &[u8]| String::from_utf8_lossy(stream).replace(root_text, "$DIR");
    Answer {
        stdout: redact(&output.stdout),
        stderr: without_frames(redact(&output.stderr)),
        exit_code: output
            .status
            .code()
            .unwrap_or_else(|| panic!("{}: ended by a signal", case.name)),
    }
}

fn create_entry(root: &Path, root_text: &str, entry: &Entry) -> std::io::Result<()> {
    let path = root.join(&entry.path);
    fs::create_dir_all(path.parent().expect("entries are below the root"))?;
    match entry {
        Entry { dir: true, .. } => fs::create_dir_all(path),
        Entry {
            symlink_to: Some(target),
            ..
        } => symlink(target.replace("$DIR", root_text), path),
        Entry {
            base64: Some(bytes), ..
        } => fs::write(path, BASE64.decode(bytes).expect("base64 in cases.json")),
        Entry { text, .. } => fs::write(
            path,
            text.as_deref().expect("an entry has text, base64, symlink_to or dir"),
        ),
    }
}

/// Reduces a Python traceback to the class of its exception: frames and message depend on the installation.
fn without_frames(stderr: String) -> String {
    if !stderr.contains(TRACEBACK) {
        return stderr;
    }
    let class = |line: &str| {
        let class = line.split([':', ' ']).next()?.rsplit('.').next()?;
        class.ends_with("Error").then(|| class.to_owned())
    };
    format!(
        "{TRACEBACK} {}\n",
        stderr.lines().filter_map(class).next_back().unwrap_or_default()
    )
}
