//! The stable code, severity and description of every diagnostic.

use std::fmt;

use skillbox_model::Severity;

macro_rules! codes {
    ($(#[$attribute:meta])* $name:ident { $($variant:ident = $code:literal, $severity:ident, $description:literal;)* }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = $description] $variant,)*
        }

        impl $name {
            /// Every code, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable code.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// The severity of every diagnostic with this code. After an error, the skill is not loaded.
            pub const fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)* }
            }

            /// What the code means, in one sentence.
            pub const fn description(self) -> &'static str {
                match self { $(Self::$variant => $description,)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

codes! {
    /// Codes of diagnostics about the text of a SKILL.md.
    ParseCode {
        TooLarge = "too_large", Error, "The file is larger than 10 MiB.";
        NotUtf8 = "not_utf8", Error, "The file is not UTF-8 text.";
        NoFrontmatter = "no_frontmatter", Error, "The file does not begin with a line of three dashes.";
        UnclosedFrontmatter = "unclosed_frontmatter", Error, "No line of three dashes ends the frontmatter.";
        FrontmatterBudget = "frontmatter_budget", Error, "The frontmatter is too large, too deeply nested or has too many aliases.";
        InvalidYaml = "invalid_yaml", Error, "The frontmatter is not valid YAML and could not be repaired.";
        YamlTag = "yaml_tag", Error, "A value has an application-specific YAML tag.";
        NotAMapping = "not_a_mapping", Error, "The frontmatter is not a mapping of keys to values.";
        MissingName = "missing_name", Error, "The name is missing, null or blank.";
        MissingDescription = "missing_description", Error, "The description is missing, null or blank.";
        UnsafeName = "unsafe_name", Error, "The name cannot be used as a path component.";
        NameBreaksRules = "name_breaks_rules", Warning, "The name breaks the rules of the specification.";
        NameMismatch = "name_mismatch", Warning, "The name differs from the name of the skill's directory.";
        DescriptionTooLong = "description_too_long", Warning, "The description is longer than 1,024 characters and was truncated.";
        CompatibilityTooLong = "compatibility_too_long", Warning, "The compatibility note is longer than 500 characters and was truncated.";
        UnquotedValue = "unquoted_value", Warning, "A value needs quotes; it was read as if it had them.";
        LooseYaml = "loose_yaml", Warning, "The frontmatter is not valid YAML 1.2, but PyYAML or the reference tool accepts it.";
        OddDelimiter = "odd_delimiter", Warning, "A frontmatter delimiter is not alone at the start of its line.";
        DuplicateKey = "duplicate_key", Warning, "A key occurs twice; the later value is used.";
        NotText = "not_text", Warning, "A field that should be text is a list or a mapping.";
        MetadataNotAMapping = "metadata_not_a_mapping", Warning, "The metadata is not a mapping and is ignored.";
        AllowedTools = "allowed_tools", Warning, "Some of the allowed tools are not understood.";
        NotABoolean = "not_a_boolean", Warning, "A field that should be true or false is neither and is ignored.";
        InvalidHook = "invalid_hook", Warning, "A hook names an unknown event or is not understood; it never runs.";
        ByteOrderMark = "byte_order_mark", Info, "The file begins with a byte order mark, which other readers reject.";
        MetadataFallback = "metadata_fallback", Info, "The directory provides the name, or the body the description.";
        LongBody = "long_body", Info, "The instructions are longer than 500 lines or about 5,000 tokens.";
    }
}

codes! {
    /// Codes of diagnostics about the files and directories of a source or a skill.
    ScanCode {
        SourceMissing = "source_missing", Warning, "A source does not exist.";
        SourceNotADirectory = "source_not_a_directory", Error, "A source is not a directory.";
        Unreadable = "unreadable", Error, "A file or directory cannot be read.";
        NotAFile = "not_a_file", Error, "A SKILL.md is a directory, a FIFO, a socket or a device.";
        LinkLeavesSkill = "link_leaves_skill", Error, "A link points outside its skill and is not followed.";
        DanglingLink = "dangling_link", Warning, "The target of a link does not exist.";
        LinkLoop = "link_loop", Warning, "A link points back to itself or to a directory above it and is not followed.";
        Vanished = "vanished", Warning, "A file or directory was removed while it was being read.";
        NestedSkill = "nested_skill", Info, "A SKILL.md is inside another skill; it is a skill of its own.";
        DuplicateName = "duplicate_name", Warning, "Two skills in one source have the same name; the later path is used.";
        DepthLimit = "depth_limit", Warning, "A source has directories below the maximum scan depth.";
        DirectoryLimit = "directory_limit", Warning, "A source has more directories than the scan limit.";
        SpecialFile = "special_file", Warning, "A skill contains a FIFO, a socket or a device, which is ignored.";
        ResourcesUnreadable = "resources_unreadable", Warning, "The resources of a skill cannot be listed; it loads without them.";
        HiddenByWorkspace = "hidden_by_workspace", Info, "A skill contains a file whose name the workspace uses.";
        DeepReference = "deep_reference", Info, "A reference is more than one level below `references/`.";
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn codes_are_distinct_and_described() {
        let parse = ParseCode::ALL.iter().map(|code| (code.as_str(), code.description()));
        let scan = ScanCode::ALL.iter().map(|code| (code.as_str(), code.description()));
        let all: Vec<_> = parse.chain(scan).collect();
        for (code, description) in &all {
            let is_code_byte = |b: u8| b.is_ascii_lowercase() || b == b'_' || b.is_ascii_digit();
            assert!(code.bytes().all(is_code_byte), "{code}");
            assert!(description.ends_with('.'), "{code}");
        }
        let distinct: HashSet<_> = all.iter().map(|(code, _)| code).collect();
        assert_eq!(distinct.len(), ParseCode::ALL.len() + ScanCode::ALL.len());
    }
}
