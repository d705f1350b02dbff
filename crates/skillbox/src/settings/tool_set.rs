//! A set of tools as a setting.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use skillbox_runtime::Settings;

use super::value::SettingValue;

/// Tools that no policy blocks. A configured set replaces the default, even when it is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSet(pub BTreeSet<String>);

impl ToolSet {
    /// The tools that are always allowed by default.
    pub fn default_tools() -> Self {
        Self(Settings::default().always_allowed)
    }
}

impl SettingValue for ToolSet {
    const SEPARATOR: Option<char> = Some(',');

    fn type_name() -> String {
        "list of names".to_owned()
    }

    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        let mut tools = BTreeSet::new();
        for word in words {
            let word = String::parse(vec![word], base)?;
            tools.extend(
                word.split(',')
                    .map(str::trim)
                    .filter(|tool| !tool.is_empty())
                    .map(str::to_owned),
            );
        }
        Ok(Self(tools))
    }

    fn display_text(&self) -> String {
        if self.0.is_empty() {
            return "(none)".to_owned();
        }
        self.0.iter().cloned().collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_set_is_kept() {
        let check = |words: &[&str], expected: &[&str]| {
            let set = ToolSet::parse(words.iter().map(OsString::from).collect(), Path::new("")).unwrap();
            assert_eq!(set.0.iter().collect::<Vec<_>>(), expected, "{words:?}");
        };
        check(&[], &[]);
        check(&[""], &[]);
        check(&["b", "a"], &["a", "b"]);
        check(&["a, b"], &["a", "b"]);
        assert!(ToolSet::default_tools().0.contains("skill_load"));
    }
}
