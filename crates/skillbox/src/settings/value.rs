//! Parses the words of a flag, a variable or a config key into a typed value.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use clap::ArgAction;
use clap::builder::ValueRange;
use skillbox_artifacts::{Endpoint, Location};
use skillbox_executor::FixedAddress;
use skillbox_model::{ExecutorKind, HostPort};

/// The type of a setting. Every layer provides words, so that each type needs only one parser.
pub trait SettingValue: Sized {
    /// What separates the items in an environment variable; `None` for a single value.
    const SEPARATOR: Option<char> = None;

    /// Whether the flag may be given without a value, and then means `true`.
    const IS_SWITCH: bool = false;

    /// The type, for people.
    fn type_name() -> String;

    /// Parses the words; relative paths are joined to `base`.
    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String>;

    /// The value, for people.
    fn display_text(&self) -> String;

    /// How many values the flag takes at once.
    fn flag_value_count() -> ValueRange {
        let minimum = usize::from(!Self::IS_SWITCH);
        ValueRange::from(minimum..=1)
    }

    /// Whether the flag may be repeated.
    fn flag_action() -> ArgAction {
        if Self::SEPARATOR.is_some() {
            ArgAction::Append
        } else {
            ArgAction::Set
        }
    }
}

impl SettingValue for PathBuf {
    fn type_name() -> String {
        "path".to_owned()
    }

    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        let word = single_word(words)?;
        if word.is_empty() {
            return Err("the path is empty".to_owned());
        }
        Ok(base.join(word))
    }

    fn display_text(&self) -> String {
        self.display().to_string()
    }
}

impl SettingValue for Option<PathBuf> {
    fn type_name() -> String {
        "path".to_owned()
    }

    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        PathBuf::parse(words, base).map(Some)
    }

    fn display_text(&self) -> String {
        self.as_ref().map_or_else(|| "(none)".to_owned(), PathBuf::display_text)
    }
}

impl SettingValue for Vec<PathBuf> {
    const SEPARATOR: Option<char> = Some(':');

    fn type_name() -> String {
        "list of paths".to_owned()
    }

    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        words.into_iter().map(|word| PathBuf::parse(vec![word], base)).collect()
    }

    fn display_text(&self) -> String {
        match self.as_slice() {
            [] => "(none)".to_owned(),
            paths => paths.iter().map(PathBuf::display_text).collect::<Vec<_>>().join(", "),
        }
    }
}

impl SettingValue for usize {
    fn type_name() -> String {
        "number".to_owned()
    }

    fn parse(words: Vec<OsString>, _: &Path) -> Result<Self, String> {
        let word = single_word(words)?;
        let text = word.to_string_lossy();
        text.replace('_', "")
            .parse()
            .map_err(|_| format!("{text:?} is not a whole number"))
    }

    fn display_text(&self) -> String {
        self.to_string()
    }
}

impl SettingValue for Option<usize> {
    fn type_name() -> String {
        usize::type_name()
    }

    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        usize::parse(words, base).map(Some)
    }

    fn display_text(&self) -> String {
        self.as_ref()
            .map_or_else(|| "(as the dialect says)".to_owned(), usize::display_text)
    }
}

impl SettingValue for u8 {
    fn type_name() -> String {
        "number, 0 to 255".to_owned()
    }

    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        let number = usize::parse(words, base)?;
        Self::try_from(number).map_err(|_| format!("{number} is greater than {}", Self::MAX))
    }

    fn display_text(&self) -> String {
        self.to_string()
    }
}

impl SettingValue for String {
    fn type_name() -> String {
        "text".to_owned()
    }

    fn parse(words: Vec<OsString>, _: &Path) -> Result<Self, String> {
        let word = single_word(words)?;
        word.into_string()
            .map_err(|word| format!("{word:?} is not valid UTF-8"))
    }

    fn display_text(&self) -> String {
        self.clone()
    }
}

impl SettingValue for Option<String> {
    fn type_name() -> String {
        "text".to_owned()
    }

    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        String::parse(words, base).map(Some)
    }

    fn display_text(&self) -> String {
        self.clone().unwrap_or_else(|| "(none)".to_owned())
    }
}

impl SettingValue for Option<Location> {
    fn type_name() -> String {
        "path or URL".to_owned()
    }

    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        let word = String::parse(words, base)?;
        Location::parse(&word, base)
            .map(Some)
            .map_err(|error| error.to_string())
    }

    fn display_text(&self) -> String {
        let shown = self.as_ref().map(Location::to_string);
        shown.unwrap_or_else(|| "(in the state directory)".to_owned())
    }
}

impl SettingValue for Option<Endpoint> {
    fn type_name() -> String {
        "URL".to_owned()
    }

    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        let word = String::parse(words, base)?;
        Endpoint::parse(&word).map(Some).map_err(|error| error.to_string())
    }

    fn display_text(&self) -> String {
        self.as_ref().map_or_else(|| "(none)".to_owned(), Endpoint::to_string)
    }
}

impl SettingValue for Vec<String> {
    const SEPARATOR: Option<char> = Some(',');

    fn type_name() -> String {
        "list of names".to_owned()
    }

    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        words.into_iter().map(|word| String::parse(vec![word], base)).collect()
    }

    fn display_text(&self) -> String {
        if self.is_empty() {
            "(none)".to_owned()
        } else {
            self.join(", ")
        }
    }
}

impl SettingValue for Vec<HostPort> {
    const SEPARATOR: Option<char> = Some(',');

    fn type_name() -> String {
        "list of hosts".to_owned()
    }

    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        let parse_word = |word| HostPort::parse(&String::parse(vec![word], base)?).map_err(|error| error.to_string());
        words.into_iter().map(parse_word).collect()
    }

    fn display_text(&self) -> String {
        display_list(self.iter().map(HostPort::to_string))
    }
}

impl SettingValue for Vec<FixedAddress> {
    const SEPARATOR: Option<char> = Some(',');

    fn type_name() -> String {
        "list of names with their addresses".to_owned()
    }

    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        let parse_word =
            |word| FixedAddress::parse(&String::parse(vec![word], base)?).map_err(|error| error.to_string());
        words.into_iter().map(parse_word).collect()
    }

    fn display_text(&self) -> String {
        display_list(self.iter().map(FixedAddress::to_string))
    }
}

fn display_list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() {
        "(none)".to_owned()
    } else {
        items.join(", ")
    }
}

impl SettingValue for bool {
    const IS_SWITCH: bool = true;

    fn type_name() -> String {
        "boolean".to_owned()
    }

    fn parse(words: Vec<OsString>, _: &Path) -> Result<Self, String> {
        match single_word(words)?.to_string_lossy().as_ref() {
            "true" | "1" | "yes" | "on" => Ok(true),
            "false" | "0" | "no" | "off" => Ok(false),
            other => Err(format!("{other:?} is neither true nor false")),
        }
    }

    fn display_text(&self) -> String {
        self.to_string()
    }
}

impl SettingValue for ExecutorKind {
    fn type_name() -> String {
        "`local` or `docker`".to_owned()
    }

    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        match String::parse(words, base)?.as_str() {
            "local" => Ok(Self::Local),
            "docker" => Ok(Self::Docker),
            other => Err(format!("{other:?} is not an executor: use local or docker")),
        }
    }

    fn display_text(&self) -> String {
        self.to_string()
    }
}

/// Splits the text of an environment variable into words if the type is a list, and drops empty words.
pub(super) fn split_words(text: OsString, separator: Option<char>) -> Vec<OsString> {
    let Some(separator) = separator else { return vec![text] };
    text.as_bytes()
        .split(|byte| *byte == separator as u8)
        .filter(|word| !word.is_empty())
        .map(|word| OsString::from_vec(word.to_vec()))
        .collect()
}

fn single_word(mut words: Vec<OsString>) -> Result<OsString, String> {
    match (words.pop(), words.is_empty()) {
        (Some(word), true) => Ok(word),
        _ => Err("expected one value, found a list".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(texts: &[&str]) -> Vec<OsString> {
        texts.iter().map(OsString::from).collect()
    }

    #[test]
    fn relative_paths_are_joined_to_the_base() {
        let base = Path::new("/etc/skillbox");
        assert_eq!(
            PathBuf::parse(words(&["x"]), base).unwrap(),
            Path::new("/etc/skillbox/x")
        );
        assert_eq!(PathBuf::parse(words(&["/y"]), base).unwrap(), Path::new("/y"));
        assert!(PathBuf::parse(words(&[""]), base).is_err());
        assert!(PathBuf::parse(words(&["x", "y"]), base).is_err());
    }

    #[test]
    fn only_whole_numbers_are_accepted() {
        assert_eq!(usize::parse(words(&["100_000"]), Path::new("")), Ok(100_000));
        for bad in ["", "-1", "1.5", "many"] {
            assert!(usize::parse(words(&[bad]), Path::new("")).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_lists_are_split() {
        assert_eq!(split_words("a::b".into(), Some(':')), words(&["a", "b"]));
        assert_eq!(split_words("a:b".into(), None), words(&["a:b"]));
    }
}
