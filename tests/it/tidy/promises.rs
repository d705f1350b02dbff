//! Each promise of SECURITY.md has its tests in docs/security-tests.md.

use std::collections::{BTreeMap, BTreeSet};

use super::{assert_tidy, read};
use crate::workspace::root;

#[test]
fn every_promise_has_tests_that_exist() {
    assert_eq!(
        promises("- **S1. A.** b\n| **S2** | c |\nS3 and **S4**, **S5. x**\n"),
        [1, 2]
    );
    let sample = tests_of_promises("| S1 | `a.rs` (h001–h003, h009), `b/` |\n");
    assert_eq!(sample[&1].files, ["a.rs", "b/"]);
    assert_eq!(sample[&1].cases, ["h001", "h003", "h009"]);

    let promised = promises(&read(&root().join("SECURITY.md")));
    let tests = tests_of_promises(&read(&root().join("docs/security-tests.md")));
    let mut complaints = Vec::new();
    let distinct: BTreeSet<u32> = promised.iter().copied().collect();
    if distinct.len() != promised.len() {
        complaints.push("SECURITY.md has two promises of one number".to_owned());
    }
    let contiguous: BTreeSet<u32> = (1..=u32::try_from(distinct.len()).unwrap()).collect();
    if distinct != contiguous {
        complaints.push(format!("the numbers of the promises have gaps: {distinct:?}"));
    }
    let listed: BTreeSet<u32> = tests.keys().copied().collect();
    if listed != distinct {
        let differences: Vec<_> = listed.symmetric_difference(&distinct).collect();
        complaints.push(format!(
            "docs/security-tests.md and SECURITY.md differ in {differences:?}"
        ));
    }
    for (number, tests) in &tests {
        let existing: Vec<_> = tests.files.iter().map(|file| root().join(file)).collect();
        for (file, path) in tests.files.iter().zip(&existing) {
            if !path.exists() {
                complaints.push(format!("S{number}: {file} does not exist"));
            }
        }
        let text: String = existing
            .iter()
            .filter(|path| path.is_file())
            .map(|path| read(path))
            .collect();
        for case in &tests.cases {
            if !text.contains(&format!("{case}_")) {
                complaints.push(format!("S{number}: no test of its files is called {case}_…"));
            }
        }
        if tests.files.is_empty() {
            complaints.push(format!("S{number} has no tests"));
        }
    }
    let count = format!("({} promises", distinct.len());
    if !read(&root().join("README.md")).contains(&count) {
        complaints.push(format!("README.md does not say \"{count}\""));
    }
    assert_tidy(complaints);
}

/// The numbers of the promises, which begin an item or a row.
fn promises(text: &str) -> Vec<u32> {
    let number = |line: &str| {
        let rest = line.strip_prefix("- **S").or_else(|| line.strip_prefix("| **S"))?;
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        rest[..end].parse().ok()
    };
    text.lines().filter_map(number).collect()
}

#[derive(Debug, Default)]
struct PromiseTests {
    files: Vec<String>,
    /// The cases by name; of a range, its first and its last.
    cases: Vec<String>,
}

fn tests_of_promises(text: &str) -> BTreeMap<u32, PromiseTests> {
    let row = |line: &str| {
        let (number, tests) = line.strip_prefix("| S")?.split_once(" | ")?;
        let is_case = |word: &&str| word.len() == 4 && word.starts_with('h') && word[1..].parse::<u32>().is_ok();
        let words = tests.split(|c: char| !c.is_ascii_alphanumeric());
        let tests = PromiseTests {
            files: tests.split('`').skip(1).step_by(2).map(str::to_owned).collect(),
            cases: words.filter(is_case).map(str::to_owned).collect(),
        };
        Some((number.parse().ok()?, tests))
    };
    text.lines().filter_map(row).collect()
}
