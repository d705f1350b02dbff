//! Tidiness is a test: the shape of the workspace, checked on every file.
//!
//! Each check is a pure function from text to complaints. It is tried on a bad sample first, so that it can fail.

mod document_set;
mod module_cycles;
mod plain_words;
mod promises;
mod rust_paths;
mod structure;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::workspace::{files_below, root};

fn crate_names() -> BTreeSet<String> {
    let entries = fs::read_dir(root().join("crates")).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

fn rust_files() -> Vec<PathBuf> {
    files_below(root())
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

/// Product code, not tests.
fn is_source(path: &Path) -> bool {
    path.starts_with(root().join("crates")) && path.iter().any(|part| part == "src") && !path.ends_with("tests.rs")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn assert_tidy(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "\n  {}\n", complaints.join("\n  "));
}
