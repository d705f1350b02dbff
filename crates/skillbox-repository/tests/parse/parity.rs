//! Every recorded answer of the reference tool, against the strict half of this crate.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde::Deserialize;
use skillbox_repository::parse_lenient;
use skillbox_repository::strict::{read_properties, skill_path, to_prompt, validate, without_escapes};

#[derive(Deserialize)]
struct Recording {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    files: Vec<File>,
    #[serde(default)]
    cwd: String,
    args: Vec<String>,
    expect: Answer,
    ours: Option<Answer>,
    free_after: Option<String>,
    #[serde(default)]
    usage: bool,
}

#[derive(Deserialize)]
struct File {
    path: String,
    text: Option<String>,
    base64: Option<String>,
    symlink_to: Option<String>,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Answer {
    stdout: String,
    stderr: String,
    exit_code: i32,
}

/// What the command line does with the strict functions.
fn answer(args: &[String]) -> Answer {
    let mut answer = Answer {
        stdout: String::new(),
        stderr: String::new(),
        exit_code: 0,
    };
    let (command, paths) = args.split_first().unwrap();
    let paths = paths.strip_prefix(&["--".to_owned()]).unwrap_or(paths);
    let result = match command.as_str() {
        "validate" => {
            for path in paths {
                let shown = without_escapes(&skill_path(Path::new(path)).display().to_string());
                let errors = validate(Path::new(path));
                if errors.is_empty() {
                    writeln!(answer.stdout, "Valid skill: {shown}").unwrap();
                    continue;
                }
                writeln!(answer.stderr, "Validation failed for {shown}:").unwrap();
                for error in errors {
                    writeln!(answer.stderr, "  - {error}").unwrap();
                }
                answer.exit_code = 1;
            }
            return answer;
        }
        "read-properties" => read_properties(Path::new(&paths[0])),
        "to-prompt" => to_prompt(paths),
        other => panic!("no such command: {other}"),
    };
    match result {
        Ok(text) => answer.stdout = text + "\n",
        Err(error) => {
            answer.stderr = format!("Error: {error}\n");
            answer.exit_code = 1;
        }
    }
    answer
}

fn materialise(root: &Path, file: &File) {
    let path = root.join(&file.path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    match file {
        File {
            symlink_to: Some(target),
            ..
        } => symlink(target.replace("$DIR", root.to_str().unwrap()), path).unwrap(),
        File { base64: Some(data), .. } => fs::write(path, from_base64(data)).unwrap(),
        File { text: Some(text), .. } => fs::write(path, text).unwrap(),
        _ => fs::create_dir_all(path).unwrap(),
    }
}

fn from_base64(data: &str) -> Vec<u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for digit in data.bytes().filter(|digit| *digit != b'=') {
        bits = bits << 6 | ALPHABET.iter().position(|known| *known == digit).unwrap() as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

/// The part of a text that must be equal: all of it, or what stands before the YAML parser's own words.
fn comparable<'a>(text: &'a str, free_after: Option<&str>) -> &'a str {
    match free_after.and_then(|mark| Some(text.find(mark)? + mark.len())) {
        Some(end) => &text[..end],
        None => text,
    }
}

fn recorded_cases() -> Vec<Case> {
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/parity/cases.json");
    let recording: Recording = serde_json::from_str(&fs::read_to_string(recording).unwrap()).unwrap();
    recording.cases
}

/// What the reference calls valid and we do not load: dashes with something behind them, and a null name.
const VALID_BUT_NOT_LOADED: [&str; 2] = ["cut/byte order mark after the opening dashes", "name/null"];

#[test]
fn what_the_reference_calls_valid_loads() {
    let mut not_loaded = Vec::new();
    for case in recorded_cases()
        .iter()
        .filter(|case| case.expect.stdout.starts_with("Valid skill"))
    {
        for file in case
            .files
            .iter()
            .filter(|file| file.path.ends_with("/SKILL.md") || file.path.ends_with("/skill.md"))
        {
            let Some(text) = &file.text else { continue };
            let parsed = parse_lenient(Path::new(&file.path), "", text.as_bytes());
            if parsed.meta.is_none() {
                not_loaded.push(case.name.clone());
            }
        }
    }
    assert_eq!(not_loaded, VALID_BUT_NOT_LOADED);
}

#[test]
fn every_recorded_case_is_answered_alike() {
    let mut failures = Vec::new();
    let mut compared = 0;
    for case in recorded_cases().iter().filter(|case| !case.usage) {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        case.files.iter().for_each(|file| materialise(root, file));
        // No other test of this binary depends on the working directory.
        std::env::set_current_dir(root.join(&case.cwd)).unwrap();
        let args: Vec<String> = case
            .args
            .iter()
            .map(|arg| arg.replace("$DIR", root.to_str().unwrap()))
            .collect();
        let ours = answer(&args);
        let wanted = case.ours.as_ref().unwrap_or(&case.expect);
        let free = case.free_after.as_deref();
        let neutral = |text: &str| comparable(text, free).replace(root.to_str().unwrap(), "$DIR");
        let equal = neutral(&ours.stdout) == neutral(&wanted.stdout)
            && neutral(&ours.stderr) == neutral(&wanted.stderr)
            && ours.exit_code == wanted.exit_code;
        compared += 1;
        if !equal {
            failures.push(format!("{}\n  ours   {ours:?}\n  wanted {wanted:?}", case.name));
        }
    }
    assert!(compared > 100, "only {compared} cases");
    assert!(
        failures.is_empty(),
        "{} of {compared}:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
