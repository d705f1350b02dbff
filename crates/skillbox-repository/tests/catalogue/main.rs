//! Discovery, from directories to an up-to-date catalogue, on real files.

/// Trees of skills to test on.
mod workshop;

/// What is found, in which order, under which limits.
mod discovery;
/// Which of several sources wins, and what is said of the others.
mod precedence;
/// Every kind of broken input: one finding each, and no sibling lost.
mod bad_input;
/// Nothing outside a skill is read, listed or hashed.
mod containment;
/// Instructions, docs, resources and advice of one skill.
mod skill_files;
/// Same tree, same digest.
mod digest;
/// Skills inside the program are like those on disk.
mod embedded;
/// What a refresh re-reads and reports.
mod refresh;
/// Changes that come in by themselves.
mod watch;
/// Ranked search.
mod search;
