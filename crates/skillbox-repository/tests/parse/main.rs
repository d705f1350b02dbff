//! Tests of SKILL.md reading as other crates see it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

// Broken and hostile frontmatter.
mod bad_input;
// Every recorded answer of the reference tool.
mod parity;
// What other readers of skills do with frontmatter, and what we do.
mod peer_cases;
// Any bytes in, an answer out.
mod properties;
