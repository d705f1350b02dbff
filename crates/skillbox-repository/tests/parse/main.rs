//! Tests of the SKILL.md parsers through the public interface.
#![expect(clippy::unwrap_used, reason = "an unexpected error ends the test")]

/// Broken and hostile frontmatter.
mod bad_input;
/// The metadata and diagnostics of valid, odd and broken frontmatter.
mod frontmatter_cases;
/// Generated frontmatter.
mod generated_yaml;
/// Every recorded result of the reference tool.
mod parity;
/// Property tests with arbitrary bytes.
mod properties;
/// The values that PyYAML reads.
mod pyyaml;
