//! A set of tools, given by name.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use skillbox_runtime::Settings;

use super::value::SettingValue;

/// Tools that no policy blocks. A set that is given replaces the customary one, an empty one included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSet(pub BTreeSet<String>);

impl ToolSet {
    /// The tools that are always allowed unless somebody says otherwise.
    pub fn customary() -> Self {
        Self(Settings::default().always_allowed)
    }
}

impl SettingValue for ToolSet {
    const SEPARATOR: Option<char> = Some(',');

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

    fn show(&self) -> String {
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
    fn an_empty_set_is_a_set() {
        let check = |words: &[&str], expected: &[&str]| {
            let set = ToolSet::parse(words.iter().map(OsString::from).collect(), Path::new("")).unwrap();
            assert_eq!(set.0.iter().collect::<Vec<_>>(), expected, "{words:?}");
        };
        check(&[], &[]);
        check(&[""], &[]);
        check(&["b", "a"], &["a", "b"]);
        check(&["a, b"], &["a", "b"]);
        assert!(ToolSet::customary().0.contains("skill_load"));
    }
}
