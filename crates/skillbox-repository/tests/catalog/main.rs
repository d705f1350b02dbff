//! Tests of the scan, the catalog and its updates, with real files.
#![expect(clippy::unwrap_used, reason = "an unexpected error ends the test")]

/// Creates trees of skills for tests.
mod skill_fixture;

/// Every kind of broken input: one diagnostic each, and the other skills load.
mod bad_input;
/// Files outside a skill are never read, listed or hashed.
mod containment;
/// The digest of a skill.
mod digest;
/// Which skills are found, in which order, within which limits.
mod discovery;
/// Embedded skills behave like skills on disk.
mod embedded;
/// Skills inside other skills, and skills that do not load.
mod nested_skills;
/// The precedence of sources, and shadowed skills.
mod precedence;
/// What a refresh reads and reports.
mod refresh;
/// Ranked search.
mod search;
/// The text, documents, resources and checks of one skill.
mod skill_files;
/// Updates in the background.
mod watch;
