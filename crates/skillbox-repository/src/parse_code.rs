//! The stable words of every finding about a SKILL.md.

use std::fmt;
use std::path::Path;

use skillbox_model::{Diagnostic, Severity};

macro_rules! codes {
    ($($variant:ident = $word:literal, $severity:ident, $text:literal;)*) => {
        /// What kind of finding it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ParseCode {
            $(#[doc = $text] $variant,)*
        }

        impl ParseCode {
            /// Every code, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable word.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// How much such a finding matters. An error means that the skill is not loaded.
            pub const fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)* }
            }

            /// What it means, in one sentence.
            pub const fn description(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

codes! {
    TooLarge = "too_large", Error, "The file has more than 10 MiB.";
    NotUtf8 = "not_utf8", Error, "The file is not UTF-8 text.";
    NoFrontmatter = "no_frontmatter", Error, "The file does not begin with a line of three dashes.";
    UnclosedFrontmatter = "unclosed_frontmatter", Error, "No line of three dashes ends the frontmatter.";
    FrontmatterBudget = "frontmatter_budget", Error, "The frontmatter is too large, too deep or repeats itself too often.";
    InvalidYaml = "invalid_yaml", Error, "The frontmatter is not YAML and could not be repaired.";
    YamlTag = "yaml_tag", Error, "A value has a YAML tag that belongs to some application.";
    NotAMapping = "not_a_mapping", Error, "The frontmatter is not a mapping of keys to values.";
    MissingName = "missing_name", Error, "The name is missing, null or blank.";
    MissingDescription = "missing_description", Error, "The description is missing, null or blank.";
    UnsafeName = "unsafe_name", Error, "The name cannot be used as one component of a path.";
    NameBreaksRules = "name_breaks_rules", Warning, "The name breaks the rules of the specification.";
    NameMismatch = "name_mismatch", Warning, "The name is not the name of the skill's directory.";
    DescriptionTooLong = "description_too_long", Warning, "The description has more than 1,024 characters and was cut.";
    CompatibilityTooLong = "compatibility_too_long", Warning, "The compatibility note has more than 500 characters and was cut.";
    UnquotedValue = "unquoted_value", Warning, "A value needs quotes; it was read as if it had them.";
    LooseYaml = "loose_yaml", Warning, "The frontmatter is not YAML 1.2, though the reference tool reads it.";
    OddDelimiter = "odd_delimiter", Warning, "A delimiter of the frontmatter is not alone at the start of its line.";
    DuplicateKey = "duplicate_key", Warning, "A key stands twice; the later one counts.";
    NotText = "not_text", Warning, "A field that should be text is a list or a mapping.";
    MetadataNotAMapping = "metadata_not_a_mapping", Warning, "The metadata is not a mapping and is left out.";
    AllowedTools = "allowed_tools", Warning, "The allowed tools are not all understood.";
    NotABoolean = "not_a_boolean", Warning, "A field that should be true or false is neither and is left out.";
    ByteOrderMark = "byte_order_mark", Info, "The file begins with a byte order mark, which other readers refuse.";
    LongBody = "long_body", Info, "The instructions have more than 500 lines or about 5,000 tokens.";
}

impl fmt::Display for ParseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl ParseCode {
    /// A finding of this kind about a whole file.
    pub(crate) fn finding(self, path: &Path, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code: self.as_str(),
            severity: self.severity(),
            path: path.to_owned(),
            line: None,
            column: None,
            message: message.into(),
            hint: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn words_are_distinct_and_described() {
        let words: HashSet<_> = ParseCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(words.len(), ParseCode::ALL.len());
        for code in ParseCode::ALL {
            assert!(
                code.as_str()
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b == b'_' || b.is_ascii_digit())
            );
            assert!(code.description().ends_with('.'), "{code}");
        }
    }
}
