//! The stable words of every finding of discovery.

use std::fmt;

use skillbox_model::Severity;

/// What kind of finding it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScanCode {
    /// A source that does not exist.
    SourceMissing,
    /// A source that is not a directory.
    SourceNotADirectory,
    /// A file or directory that cannot be read.
    Unreadable,
    /// A SKILL.md that is a directory, a FIFO, a socket or a device.
    NotAFile,
    /// A link that leads out of its skill.
    LinkLeavesSkill,
    /// A link that leads nowhere.
    DanglingLink,
    /// A link that leads back to where it came from.
    LinkLoop,
    /// Something that was gone when it was opened.
    Vanished,
    /// A SKILL.md inside another skill.
    NestedSkill,
    /// The same name twice in one source.
    DuplicateName,
    /// Directories deeper than the scan goes.
    DepthLimit,
    /// More directories than the scan looks into.
    DirectoryLimit,
    /// A FIFO, a socket or a device among the files of a skill.
    SpecialFile,
    /// A file whose name the workspace takes for itself.
    HiddenByWorkspace,
    /// A reference that lies deeper than one level.
    DeepReference,
}

impl ScanCode {
    /// Every code, in the order of the documentation.
    pub const ALL: &'static [Self] = &[
        Self::SourceMissing,
        Self::SourceNotADirectory,
        Self::Unreadable,
        Self::NotAFile,
        Self::LinkLeavesSkill,
        Self::DanglingLink,
        Self::LinkLoop,
        Self::Vanished,
        Self::NestedSkill,
        Self::DuplicateName,
        Self::DepthLimit,
        Self::DirectoryLimit,
        Self::SpecialFile,
        Self::HiddenByWorkspace,
        Self::DeepReference,
    ];

    /// The stable word, its weight, and what it means in one sentence.
    const fn facts(self) -> (&'static str, Severity, &'static str) {
        use Severity::{Error, Info, Warning};
        match self {
            Self::SourceMissing => ("source_missing", Warning, "A source does not exist."),
            Self::SourceNotADirectory => ("source_not_a_directory", Error, "A source is not a directory."),
            Self::Unreadable => ("unreadable", Error, "A file or directory cannot be read."),
            Self::NotAFile => (
                "not_a_file",
                Error,
                "A SKILL.md is a directory, a FIFO, a socket or a device.",
            ),
            Self::LinkLeavesSkill => (
                "link_leaves_skill",
                Error,
                "A link leads out of its skill and is not followed.",
            ),
            Self::DanglingLink => ("dangling_link", Warning, "A link leads nowhere."),
            Self::LinkLoop => (
                "link_loop",
                Warning,
                "A link leads back to a directory above it and is not followed.",
            ),
            Self::Vanished => ("vanished", Warning, "Something was removed while it was being read."),
            Self::NestedSkill => (
                "nested_skill",
                Warning,
                "A SKILL.md lies inside another skill and is not loaded.",
            ),
            Self::DuplicateName => (
                "duplicate_name",
                Warning,
                "A name stands twice in one source; the later path wins.",
            ),
            Self::DepthLimit => ("depth_limit", Warning, "Directories lie deeper than the scan goes."),
            Self::DirectoryLimit => (
                "directory_limit",
                Warning,
                "A source has more directories than are searched.",
            ),
            Self::SpecialFile => (
                "special_file",
                Warning,
                "A skill ships a FIFO, a socket or a device, which is left out.",
            ),
            Self::HiddenByWorkspace => (
                "hidden_by_workspace",
                Info,
                "A skill ships a name that the workspace hides.",
            ),
            Self::DeepReference => ("deep_reference", Info, "A reference lies more than one level deep."),
        }
    }

    /// The stable word.
    pub const fn as_str(self) -> &'static str {
        self.facts().0
    }

    /// How much such a finding matters.
    pub const fn severity(self) -> Severity {
        self.facts().1
    }

    /// What it means, in one sentence.
    pub const fn description(self) -> &'static str {
        self.facts().2
    }
}

impl fmt::Display for ScanCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::parse_code::ParseCode;

    #[test]
    fn words_are_distinct_also_from_those_of_the_parser() {
        let scan = ScanCode::ALL.iter().map(|code| code.as_str());
        let words: HashSet<_> = scan.chain(ParseCode::ALL.iter().map(|code| code.as_str())).collect();
        assert_eq!(words.len(), ScanCode::ALL.len() + ParseCode::ALL.len());
    }
}
