//! Dependencies between crates, sizes of files, module files, leftovers, unsafe code, profiles, the list of tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::{assert_tidy, crate_names, is_source, read, rust_files, shown};
use crate::workspace::{files_below, root};

/// Which of our crates each crate may use: everything below it in the drawing of ARCHITECTURE.md, never sideways.
const MAY_USE: &[(&str, &[&str])] = &[
    ("skillbox-model", &[]),
    ("skillbox-repository", &["skillbox-model"]),
    ("skillbox-sandbox", &["skillbox-model"]),
    ("skillbox-artifacts", &["skillbox-model"]),
    ("skillbox-trust", &["skillbox-model"]),
    ("skillbox-egress", &["skillbox-model"]),
    ("skillbox-loader", &["skillbox-model", "skillbox-repository"]),
    ("skillbox-runner", &["skillbox-model", "skillbox-sandbox"]),
    (
        "skillbox-executor",
        &[
            "skillbox-model",
            "skillbox-sandbox",
            "skillbox-runner",
            "skillbox-egress",
        ],
    ),
    (
        "skillbox-environment",
        &[
            "skillbox-model",
            "skillbox-sandbox",
            "skillbox-runner",
            "skillbox-egress",
            "skillbox-executor",
        ],
    ),
    ("skillbox-runtime", ENGINE),
    ("skillbox-mcp", RUNTIME),
    ("skillbox-http", RUNTIME),
    ("skillbox-batch", RUNTIME),
    ("skillbox", EVERYTHING),
    ("skillbox-bench", EVERYTHING),
    ("skillbox-count", EVERYTHING),
];
const ENGINE: &[&str] = &[
    "skillbox-model",
    "skillbox-runner",
    "skillbox-repository",
    "skillbox-sandbox",
    "skillbox-artifacts",
    "skillbox-trust",
    "skillbox-loader",
    "skillbox-egress",
    "skillbox-executor",
    "skillbox-environment",
];
const RUNTIME: &[&str] = &[
    "skillbox-model",
    "skillbox-runner",
    "skillbox-repository",
    "skillbox-sandbox",
    "skillbox-artifacts",
    "skillbox-trust",
    "skillbox-loader",
    "skillbox-egress",
    "skillbox-executor",
    "skillbox-environment",
    "skillbox-runtime",
];
const EVERYTHING: &[&str] = &[
    "skillbox-model",
    "skillbox-runner",
    "skillbox-repository",
    "skillbox-sandbox",
    "skillbox-artifacts",
    "skillbox-trust",
    "skillbox-loader",
    "skillbox-egress",
    "skillbox-executor",
    "skillbox-environment",
    "skillbox-runtime",
    "skillbox-mcp",
    "skillbox-http",
    "skillbox-batch",
];

const MAX_LINES: usize = 800;
const VAGUE_NAMES: &[&str] = &[
    "util", "utils", "common", "helper", "helpers", "misc", "types", "manager", "managers",
];

#[test]
fn crates_depend_downwards_only() {
    let bad =
        toml::from_str("[dependencies]\nskillbox-mcp.workspace = true\n[dev-dependencies]\nserde = \"1\"").unwrap();
    assert_eq!(
        upward_dependencies("skillbox-http", &bad),
        ["skillbox-http must not use skillbox-mcp"]
    );
    assert_eq!(
        upward_dependencies("skillbox-new", &bad).len(),
        1,
        "a crate that no table knows"
    );

    let mut complaints = Vec::new();
    for name in crate_names() {
        let manifest = read(&root().join("crates").join(&name).join("Cargo.toml"));
        complaints.extend(upward_dependencies(&name, &toml::from_str(&manifest).unwrap()));
    }
    assert_tidy(complaints);
}

fn upward_dependencies(name: &str, manifest: &toml::Table) -> Vec<String> {
    let Some((_, may_use)) = MAY_USE.iter().find(|(known, _)| *known == name) else {
        return vec![format!(
            "{name} is not in the drawing: add it to ARCHITECTURE.md and to the table here"
        )];
    };
    let tables = ["dependencies", "dev-dependencies", "build-dependencies"];
    let used = tables
        .iter()
        .filter_map(|table| manifest.get(*table)?.as_table())
        .flat_map(|table| table.keys());
    let ours = used.filter(|used| used.starts_with("skillbox"));
    ours.filter(|used| !may_use.contains(&used.as_str()))
        .map(|used| format!("{name} must not use {used}"))
        .collect()
}

#[test]
fn files_stay_readable() {
    assert_eq!(length_without_tests("a\nb\n#[cfg(test)]\nmod tests {\n}\n"), 2);
    assert_eq!(length_without_tests(&"x\n".repeat(900)), 900);

    let long = rust_files()
        .into_iter()
        .filter(|path| is_source(path))
        .filter_map(|path| {
            let lines = length_without_tests(&read(&path));
            (lines > MAX_LINES)
                .then(|| format!("{} has {lines} lines before its tests, over {MAX_LINES}", shown(&path)))
        });
    assert_tidy(long.collect());
}

fn length_without_tests(text: &str) -> usize {
    text.lines()
        .take_while(|line| !line.starts_with("#[cfg(test)]"))
        .count()
}

#[test]
fn every_crate_introduces_itself() {
    assert!(header_complaint("x", "//! One line.\n\nmod a;").is_some());
    assert!(
        header_complaint(
            "x",
            "//! What.\n//!\n//! Where in the flow, and\n//! what it never does.\nmod a;"
        )
        .is_none()
    );

    let mut complaints = Vec::new();
    for name in crate_names() {
        let src = root().join("crates").join(&name).join("src");
        let entry = ["lib.rs", "main.rs"]
            .map(|file| src.join(file))
            .into_iter()
            .find(|path| path.exists());
        let entry = entry.unwrap_or_else(|| panic!("{name} has neither lib.rs nor main.rs"));
        complaints.extend(header_complaint(&shown(&entry), &read(&entry)));
    }
    assert_tidy(complaints);
}

fn header_complaint(file: &str, text: &str) -> Option<String> {
    let lines = text.lines().take_while(|line| line.starts_with("//!")).count();
    (!(3..=8).contains(&lines)).then(|| format!("{file}: its header has {lines} lines, not three to eight"))
}

#[test]
fn module_files_only_declare() {
    assert!(declares_more("mod a;\n\nfn work() {}\n"));
    assert!(!declares_more("//! Words: fn.\nmod a;\npub use a::{A, work};\n"));

    let bad = rust_files()
        .into_iter()
        .filter(|path| is_source(path) && path.ends_with("mod.rs") && declares_more(&read(path)));
    assert_tidy(
        bad.map(|path| format!("{} does more than declare", shown(&path)))
            .collect(),
    );
}

fn declares_more(text: &str) -> bool {
    let words = [
        "fn ",
        "pub fn ",
        "impl ",
        "impl<",
        "struct ",
        "pub struct ",
        "enum ",
        "pub enum ",
    ];
    text.lines().any(|line| words.iter().any(|word| line.starts_with(word)))
}

#[test]
fn file_names_tell_something() {
    assert!(is_vague(Path::new("src/utils.rs")) && is_vague(Path::new("src/common/mod.rs")));
    assert!(!is_vague(Path::new("src/rel_path.rs")));

    let vague = rust_files()
        .into_iter()
        .filter(|path| is_vague(path.strip_prefix(root()).unwrap()));
    assert_tidy(vague.map(|path| format!("{} tells nothing", shown(&path))).collect());
}

fn is_vague(path: &Path) -> bool {
    path.with_extension("")
        .iter()
        .any(|part| VAGUE_NAMES.iter().any(|vague| part == *vague))
}

#[test]
fn nothing_is_left_for_later() {
    assert_eq!(leftovers("fn f() { to", "do!() }").len(), 1);
    assert_eq!(leftovers("#[all", "ow(dead_code)]").len(), 1);

    let mut complaints = Vec::new();
    for path in rust_files() {
        for word in leftovers(&read(&path), "") {
            complaints.push(format!("{} contains {word}", shown(&path)));
        }
    }
    assert_tidy(complaints);
}

/// The two halves are joined first: neither this file nor its samples may contain the words whole.
fn leftovers(head: &str, tail: &str) -> Vec<String> {
    let words = [
        ["to", "do!("],
        ["unimple", "mented!("],
        ["FIX", "ME"],
        ["XX", "X"],
        ["#[ign", "ore"],
        ["#[all", "ow("],
        ["#![all", "ow("],
        ["assert!(", "true)"],
    ];
    let text = [head, tail].concat();
    words
        .iter()
        .map(|halves| halves.concat())
        .filter(|word| text.contains(word.as_str()))
        .collect()
}

#[test]
fn unsafe_code_stays_in_the_sandbox() {
    assert!(has_unsafe("    unsafe { call() }") && has_unsafe("unsafe impl Send for X {}"));
    assert!(!has_unsafe("// An unsafe word in a comment."));

    let outside = rust_files()
        .into_iter()
        .filter(|path| !path.starts_with(root().join("crates/skillbox-sandbox")));
    let bad = outside.filter(|path| !path.starts_with(root().join("tests/it/tidy")) && has_unsafe(&read(path)));
    assert_tidy(bad.map(|path| format!("{} has unsafe code", shown(&path))).collect());
}

fn has_unsafe(text: &str) -> bool {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.into_iter().any(|line| {
        ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"]
            .iter()
            .any(|w| line.contains(w))
    })
}

#[test]
fn profile_entries_have_reasons() {
    let sample = "mounts:\n  - path: /usr\n    reason: programs\n  - path: /etc\n    mode: ro\nenv:\n  - LANG\n";
    assert_eq!(entries_without_reason(sample), [4]);

    let mut complaints = Vec::new();
    for path in files_below(&root().join("sandbox-profiles")) {
        for line in entries_without_reason(&read(&path)) {
            complaints.push(format!("{}:{line}: an entry without a reason", shown(&path)));
        }
    }
    assert_tidy(complaints);
}

/// Lines of list entries that are mappings and have no `reason` among their keys.
fn entries_without_reason(yaml: &str) -> Vec<usize> {
    let lines: Vec<&str> = yaml.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let is_mapping_entry = |line: &str| {
        line.trim_start()
            .strip_prefix("- ")
            .is_some_and(|rest| rest.contains(": "))
    };
    let mut missing = Vec::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| is_mapping_entry(line)) {
        let rest = lines[at + 1..]
            .iter()
            .take_while(|next| next.trim().is_empty() || indent(next) > indent(line));
        let block = std::iter::once(line).chain(rest);
        if !block
            .into_iter()
            .any(|line| line.trim_start().trim_start_matches("- ").contains("reason:"))
        {
            missing.push(at + 1);
        }
    }
    missing
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    let here = root().display().to_string();
    assert!(machine_words(&format!("see {here}/x"), &here).len() == 1);
    assert!(!machine_words(&["https://", "index.crates.io/x"].concat(), &here).is_empty());
    assert!(machine_words("/workspace/skills, https://example.org", &here).is_empty());

    let mut complaints = Vec::new();
    for path in files_below(root()) {
        // Cargo writes the lock file; what is not text names nothing.
        if path.ends_with("Cargo.lock") {
            continue;
        }
        if let Ok(text) = fs::read_to_string(&path) {
            let words = machine_words(&text, &here);
            complaints.extend(
                words
                    .into_iter()
                    .map(|word| format!("{} contains {word}", shown(&path))),
            );
        }
    }
    assert_tidy(complaints);
}

fn machine_words(text: &str, here: &str) -> Vec<String> {
    let hosts = ["index.", "static.", "registry.", "files.", "deb."];
    let hosts = hosts
        .iter()
        .flat_map(|host| ["http", "https"].map(|scheme| format!("{scheme}://{host}")));
    // A checkout directly below `/` has a name too short to search for.
    let own = (here.matches('/').count() > 1).then(|| format!("{here}/"));
    hosts.chain(own).filter(|word| text.contains(word.as_str())).collect()
}

#[test]
fn every_integration_test_is_in_the_list() {
    let list = read(&root().join("tests/it/main.rs"));
    let files = fs::read_dir(root().join("tests/it"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let modules = files.filter_map(|path| path.file_name()?.to_str()?.strip_suffix(".rs").map(str::to_owned));
    let missing = modules.filter(|name| name != "main" && !list.contains(&format!("mod {name};")));
    assert_tidy(
        missing
            .map(|name| format!("tests/it/main.rs does not declare {name}"))
            .collect(),
    );
}

#[test]
fn continuous_integration_runs_what_everybody_runs() {
    let commands: Vec<_> = read(&root().join(".ci/run"))
        .lines()
        .filter(|l| !l.starts_with('#'))
        .map(str::to_owned)
        .collect();
    assert_eq!(commands, ["cd \"$(dirname \"$0\")/..\" && exec ./tests/run"]);
}

#[test]
fn the_table_of_directions_has_no_way_back() {
    let table: BTreeMap<_, _> = MAY_USE.iter().copied().collect();
    for (name, below) in &table {
        for used in *below {
            assert!(!table[used].contains(name), "{name} and {used} use each other");
        }
    }
}
