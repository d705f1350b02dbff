//! Every hostile case has a test or an excuse.

use std::collections::BTreeSet;
use std::fs;

use crate::workspace::{files_below, root};

const CASES: std::ops::RangeInclusive<u32> = 1..=140;

#[test]
fn every_case_is_tested_or_excused() {
    let dir = root().join("tests/it/security");
    let mut tested = BTreeSet::new();
    for path in files_below(&dir)
        .iter()
        .filter(|path| path.extension().is_some_and(|kind| kind == "rs"))
    {
        let text = fs::read_to_string(path).unwrap();
        // A test is named after its case: three digits after the letter.
        let names = text
            .lines()
            .map(|line| line.strip_prefix("pub ").unwrap_or(line))
            .filter_map(|line| line.strip_prefix("fn h"));
        tested.extend(names.filter_map(|name| name.get(..3)?.parse::<u32>().ok()));
    }
    let notes = fs::read_to_string(dir.join("NOT_COVERED.md")).unwrap();
    let (excuses, scales) = notes
        .split_once("smaller scale")
        .expect("the part about smaller scales");
    let first_cells = |text: &str| -> BTreeSet<u32> {
        let rows = text.lines().filter_map(|line| line.strip_prefix("| "));
        rows.filter_map(|row| row.split(' ').next()?.parse().ok()).collect()
    };
    let excused = first_cells(excuses);
    let both: Vec<_> = tested.intersection(&excused).collect();
    assert!(both.is_empty(), "tested and excused: {both:?}");
    let forgotten: Vec<u32> = CASES
        .filter(|case| !tested.contains(case) && !excused.contains(case))
        .collect();
    assert!(forgotten.is_empty(), "neither tested nor excused: {forgotten:?}");
    assert!(first_cells(scales).is_subset(&tested));
    let count = format!("{} of the 140 cases have a test", tested.len());
    assert!(notes.contains(&count), "NOT_COVERED.md should say: {count}");
}
