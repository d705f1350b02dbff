//! Compares the metadata of generated frontmatter with what PyYAML reads, value by value.
//!
//! `tests/run peers` installs PyYAML and sets `SKILLBOX_PYYAML_PYTHON`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Map, Value};
use skillbox_repository::parse_lenient;

use crate::generated_yaml::frontmatter_texts;

/// Names a Python with PyYAML.
const VARIABLE: &str = "SKILLBOX_PYYAML_PYTHON";
const TEXTS: usize = 6000;

/// Reads a JSON list of texts; prints, for each, the mapping with every scalar as text, or null. `BaseLoader` keeps the
/// source spelling of scalars, as the catalog does.
const READ_TEXTS: &str = "
import json, sys, yaml
assert yaml.__version__
def read(text):
    try:
        value = yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError:
        return None
    return value if isinstance(value, dict) else None
json.dump([read(text) for text in json.load(sys.stdin)], sys.stdout)
";

#[expect(clippy::disallowed_methods, reason = "tests/run exports which peers there are")]
#[expect(clippy::print_stderr, reason = "a skipped test prints the reason")]
fn python() -> Option<OsString> {
    let python = std::env::var_os(VARIABLE);
    if python.is_none() {
        let reason = format!("{VARIABLE} does not name a Python with PyYAML");
        let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        assert!(!is_ci, "not skipped in CI: {reason}");
        eprintln!("skipped: {reason}");
    }
    python
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test starts the program that it compares with"
)]
fn read_with_pyyaml(python: &OsString, texts: &[String]) -> Vec<Option<Map<String, Value>>> {
    let mut child = Command::new(python)
        .args(["-c", READ_TEXTS])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = serde_json::to_vec(texts).unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&input).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The metadata of a skill that the test compares, as texts.
type Fields = BTreeMap<String, String>;

/// The fields of PyYAML's mapping, with the documented rules for the metadata of a skill.
fn expected_fields(mapping: &Map<String, Value>) -> Option<Fields> {
    let mut fields = Fields::new();
    for (key, limit) in [
        ("name", 255),
        ("description", 1024),
        ("license", usize::MAX),
        ("compatibility", 500),
    ] {
        match mapping.get(key) {
            Some(Value::String(text)) => {
                let stripped: String = text.trim().chars().take(limit).collect();
                if !stripped.is_empty() {
                    fields.insert(key.to_owned(), stripped);
                }
            }
            Some(_) => return None,
            None => {}
        }
    }
    if let Some(Value::Object(metadata)) = mapping.get("metadata") {
        let texts = metadata.iter().filter_map(|(key, value)| Some((key, value.as_str()?)));
        fields.extend(texts.map(|(key, value)| (format!("metadata.{key}"), value.to_owned())));
    }
    for key in ["allowed-tools", "tags"] {
        if let Some(Value::Array(items)) = mapping.get(key) {
            let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            fields.insert(key.to_owned(), items.join("|"));
        }
    }
    let is_complete = fields.contains_key("name") && fields.contains_key("description");
    is_complete.then_some(fields)
}

/// The same fields as the catalog reads them, and whether a fallback read them.
fn read_fields(text: &str, expected: &Fields) -> (Option<Fields>, bool) {
    let parsed = parse_lenient(
        Path::new("s/SKILL.md"),
        "",
        format!("---\n{text}---\nBody.\n").as_bytes(),
    );
    let is_loose = parsed.diagnostics.iter().any(|it| it.code == "loose_yaml");
    let Some(meta) = parsed.meta else {
        return (None, is_loose);
    };
    let mut fields = Fields::new();
    let mut add = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            fields.insert(key.to_owned(), value);
        }
    };
    add("name", Some(meta.name.to_string()));
    add("description", Some(meta.description.to_string()));
    add("license", meta.license.map(Into::into));
    add("compatibility", meta.compatibility.map(Into::into));
    add("allowed-tools", meta.allowed_tools.map(|tools| tools.join("|")));
    if let Some(Value::Array(tags)) = meta.extra.as_ref().and_then(|extra| extra.get("tags")) {
        let tags: Vec<&str> = tags.iter().filter_map(Value::as_str).collect();
        add("tags", Some(tags.join("|")));
    }
    let metadata = meta
        .metadata
        .iter()
        .map(|(key, value)| (format!("metadata.{key}"), value));
    // Nested collections are compared by neither side.
    for (key, value) in metadata.filter(|(key, _)| expected.contains_key(key)) {
        add(&key, Some(value.to_string()));
    }
    (Some(fields), is_loose)
}

#[test]
fn metadata_is_what_pyyaml_reads() {
    let Some(python) = python() else { return };
    let texts = frontmatter_texts(TEXTS, 7);
    let (mut compared, mut loose) = (0, 0);
    let mut differences = Vec::new();
    for (text, mapping) in texts.iter().zip(read_with_pyyaml(&python, &texts)) {
        let Some(expected) = mapping.as_ref().and_then(expected_fields) else {
            continue;
        };
        let (read, is_loose) = read_fields(text, &expected);
        compared += 1;
        loose += usize::from(is_loose);
        if read.as_ref() != Some(&expected) {
            differences.push(format!("{text:?}\n  PyYAML   {expected:?}\n  skillbox {read:?}"));
        }
    }
    let shown: Vec<_> = differences.iter().take(10).map(String::as_str).collect();
    assert!(
        differences.is_empty(),
        "{} of {compared} differ:\n{}",
        differences.len(),
        shown.join("\n")
    );
    // The corpus must contain texts of both kinds, otherwise the comparison shows nothing.
    assert!(compared > TEXTS / 2, "PyYAML read only {compared} texts");
    assert!(loose > TEXTS / 20, "only {loose} texts needed the reading of PyYAML");
}
