//! Tests of SKILL.md reading as other crates see it.

// Every recorded answer of the reference tool.
mod parity;
// What other readers of skills do with frontmatter, and what we do.
mod peer_cases;
// Any bytes in, an answer out.
mod properties;
// Broken and hostile frontmatter.
mod bad_input;
