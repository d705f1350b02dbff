//! Compares the strict functions of this crate with every recorded result of the reference tool.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde::Deserialize;
use skillbox_repository::parse_lenient;
use skillbox_repository::strict::{read_properties, skill_directory, strip_terminal_escapes, to_prompt, validate};

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
    expect: CommandResult,
    ours: Option<CommandResult>,
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
struct CommandResult {
    stdout: String,
    stderr: String,
    exit_code: i32,
}

/// Runs the strict functions as the command line does.
fn run_command(args: &[String]) -> CommandResult {
    let mut result = CommandResult {
        stdout: String::new(),
        stderr: String::new(),
        exit_code: 0,
    };
    let (command, paths) = args.split_first().unwrap();
    let paths = paths.strip_prefix(&["--".to_owned()]).unwrap_or(paths);
    let outcome = match command.as_str() {
        "validate" => {
            for path in paths {
                let shown = strip_terminal_escapes(&skill_directory(Path::new(path)).display().to_string());
                let errors = validate(Path::new(path));
                if errors.is_empty() {
                    writeln!(result.stdout, "Valid skill: {shown}").unwrap();
                    continue;
                }
                writeln!(result.stderr, "Validation failed for {shown}:").unwrap();
                for error in errors {
                    writeln!(result.stderr, "  - {error}").unwrap();
                }
                result.exit_code = 1;
            }
            return result;
        }
        "read-properties" => read_properties(Path::new(&paths[0])),
        "to-prompt" => to_prompt(paths),
        other => panic!("no such command: {other}"),
    };
    match outcome {
        Ok(text) => result.stdout = text + "\n",
        Err(error) => {
            result.stderr = format!("Error: {error}\n");
            result.exit_code = 1;
        }
    }
    result
}

fn write_to_disk(root: &Path, file: &File) {
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

/// The part of a text that must be equal: all of it, or the part before the message of the YAML parser.
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

/// Valid skills according to the reference tool that do not load: text after the opening dashes, and a null name.
const VALID_BUT_NOT_LOADED: [&str; 2] = ["cut/byte order mark after the opening dashes", "name/null"];

#[test]
fn skills_that_the_reference_tool_accepts_load() {
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
fn every_recorded_case_has_the_same_result() {
    let mut failures = Vec::new();
    let mut compared = 0;
    for case in recorded_cases().iter().filter(|case| !case.usage) {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        case.files.iter().for_each(|file| write_to_disk(root, file));
        // No other test of this binary depends on the working directory.
        std::env::set_current_dir(root.join(&case.cwd)).unwrap();
        let args: Vec<String> = case
            .args
            .iter()
            .map(|arg| arg.replace("$DIR", root.to_str().unwrap()))
            .collect();
        let ours = run_command(&args);
        let wanted = case.ours.as_ref().unwrap_or(&case.expect);
        let free = case.free_after.as_deref();
        let normalize = |text: &str| comparable(text, free).replace(root.to_str().unwrap(), "$DIR");
        let is_equal = normalize(&ours.stdout) == normalize(&wanted.stdout)
            && normalize(&ours.stderr) == normalize(&wanted.stderr)
            && ours.exit_code == wanted.exit_code;
        compared += 1;
        if !is_equal {
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
