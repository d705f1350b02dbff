//! Discovery, from directories to an up-to-date catalogue, on real files.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so and ends")]

/// Trees of skills to test on.
mod workshop;

/// Every kind of broken input: one finding each, and no sibling lost.
mod bad_input;
/// Nothing outside a skill is read, listed or hashed.
mod containment;
/// Same tree, same digest.
mod digest;
/// What is found, in which order, under which limits.
mod discovery;
/// Skills inside the program are like those on disk.
mod embedded;
/// Which of several sources wins, and what is said of the others.
mod precedence;
/// What a refresh re-reads and reports.
mod refresh;
/// Ranked search.
mod search;
/// Instructions, docs, resources and advice of one skill.
mod skill_files;
/// Changes that come in by themselves.
mod watch;
