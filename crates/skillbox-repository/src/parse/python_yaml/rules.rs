//! The rules in which the tools differ.

/// The tool whose rules apply. Both share a scanner, because the reader of the reference tool descends from PyYAML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rules {
    /// Only block collections and scalars. After an empty line, tabs may indent.
    ReferenceTool,
    /// PyYAML's reading of YAML 1.1. Anchors, aliases, tags and directives are rejected here: frontmatter that only
    /// PyYAML can read and that uses them has not been seen.
    PyYaml,
}
