//! Which documents exist, how long the README is, where their links lead, and what they must mention.

use std::fs;
use std::path::Path;

use super::{assert_tidy, crate_names, read, shown};
use crate::harness::program;
use crate::workspace::{files_below, root};

const DOCUMENTS: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE",
    "docs/agents.md",
    "docs/batch.md",
    "docs/cli.md",
    "docs/clients/README.md",
    "docs/compatibility.md",
    "docs/concepts.md",
    "docs/configuration.md",
    "docs/docker.md",
    "docs/http-api.md",
    "docs/mcp.md",
    "docs/network.md",
    "docs/operations.md",
    "docs/packages.md",
    "docs/performance.md",
    "docs/profiles.md",
    "docs/sandbox-differences.md",
    "docs/security-model.md",
    "docs/security-tests.md",
    "docs/sessions-and-artifacts.md",
    "docs/troubleshooting.md",
    "docs/trust.md",
];
const README_MAX_LINES: usize = 200;

#[test]
fn every_document_exists_and_has_content() {
    let missing = DOCUMENTS
        .iter()
        .filter(|name| !fs::read_to_string(root().join(name)).is_ok_and(|text| text.len() > 200));
    assert_tidy(
        missing
            .map(|name| format!("{name} is missing or nearly empty"))
            .collect(),
    );
}

#[test]
fn the_readme_is_short() {
    let lines = read(&root().join("README.md")).lines().count();
    assert!(
        lines <= README_MAX_LINES,
        "README.md has {lines} lines, more than {README_MAX_LINES}: move details to docs/"
    );
}

#[test]
fn every_link_between_documents_leads_to_a_file() {
    assert_eq!(links("see [a](b.md#c) and [web](https://x.y)"), ["b.md"]);

    let top = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
    let pages = top.chain(files_below(&root().join("docs")));
    let mut complaints = Vec::new();
    for page in pages.filter(|path| path.extension().is_some_and(|extension| extension == "md")) {
        let directory = page.parent().unwrap_or(Path::new(""));
        let text = read(&page);
        let dead = links(&text).into_iter().filter(|link| !directory.join(link).exists());
        complaints.extend(dead.map(|link| format!("{} links to {link}, which does not exist", shown(&page))));
    }
    assert_tidy(complaints);
}

#[test]
fn the_architecture_names_every_crate() {
    let map = read(&root().join("ARCHITECTURE.md"));
    let unmapped = crate_names()
        .into_iter()
        .filter(|name| !map.contains(&format!("`{name}`")));
    assert_tidy(
        unmapped
            .map(|name| format!("ARCHITECTURE.md does not name `{name}`"))
            .collect(),
    );
}

#[test]
fn the_configuration_reference_is_what_the_program_prints() {
    let printed = program(env!("CARGO_BIN_EXE_skillbox"))
        .args(["help", "settings", "--markdown"])
        .output()
        .unwrap();
    let stored = read(&root().join("docs/configuration.md"));
    assert!(
        stored.as_bytes() == printed.stdout,
        "docs/configuration.md is outdated: run `skillbox help settings --markdown > docs/configuration.md`"
    );
}

/// The local targets of a Markdown text's links.
fn links(markdown: &str) -> Vec<&str> {
    let targets = markdown.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let local = targets.map(|target| target.split('#').next().unwrap_or_default());
    local
        .filter(|target| !target.is_empty() && !target.contains("://"))
        .collect()
}
