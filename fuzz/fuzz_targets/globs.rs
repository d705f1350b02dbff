//! Compiles any lines as output globs, and matches any path with them. What matches lies below a root of the globs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skillbox_executor::job::OutputGlobs;
use skillbox_model::{RelPath, RunId};

fuzz_target!(|input: (&str, &str)| {
    let (lines, path) = input;
    let globs: Vec<String> = lines.lines().map(str::to_owned).collect();
    let run_id = RunId::parse("0190a").expect("an id");
    let Ok(globs) = OutputGlobs::parse(&[("output_files", &globs)], &run_id) else { return };
    for root in globs.roots() {
        assert!(!root.split('/').any(|part| part == ".."));
    }
    let Ok(path) = RelPath::parse(path) else { return };
    if globs.names_exactly(&path) {
        assert!(globs.matches(&path));
    }
});
