//! How the words of a flag, a variable or a config key become a value.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use clap::ArgAction;
use clap::builder::ValueRange;
use skillbox_artifacts::Location;
use skillbox_model::ExecutorKind;

/// The type of a setting. Every layer is reduced to words first, so each type is parsed in one way.
pub trait SettingValue: Sized {
    /// What separates the words in an environment variable; `None` for a single word.
    const SEPARATOR: Option<char> = None;

    /// Whether the flag may stand alone, and then means yes.
    const MAY_STAND_ALONE: bool = false;

    /// Reads the words; `base` is what relative paths are relative to.
    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String>;

    /// The value for people.
    fn show(&self) -> String;

    /// How many words the flag takes.
    fn words() -> ValueRange {
        let fewest = usize::from(!Self::MAY_STAND_ALONE);
        ValueRange::from(fewest..=1)
    }

    /// Whether the flag may be repeated.
    fn action() -> ArgAction {
        if Self::SEPARATOR.is_some() {
            ArgAction::Append
        } else {
            ArgAction::Set
        }
    }
}

impl SettingValue for PathBuf {
    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        let word = single(words)?;
        if word.is_empty() {
            return Err("the path is empty".to_owned());
        }
        Ok(base.join(word))
    }

    fn show(&self) -> String {
        self.display().to_string()
    }
}

impl SettingValue for Option<PathBuf> {
    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        PathBuf::parse(words, base).map(Some)
    }

    fn show(&self) -> String {
        self.as_ref().map_or_else(|| "(none)".to_owned(), PathBuf::show)
    }
}

impl SettingValue for Vec<PathBuf> {
    const SEPARATOR: Option<char> = Some(':');

    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        words.into_iter().map(|word| PathBuf::parse(vec![word], base)).collect()
    }

    fn show(&self) -> String {
        match self.as_slice() {
            [] => "(none)".to_owned(),
            paths => paths.iter().map(PathBuf::show).collect::<Vec<_>>().join(", "),
        }
    }
}

impl SettingValue for usize {
    fn parse(words: Vec<OsString>, _: &Path) -> Result<Self, String> {
        let word = single(words)?;
        let text = word.to_string_lossy();
        text.replace('_', "")
            .parse()
            .map_err(|_| format!("{text:?} is not a whole number"))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl SettingValue for u8 {
    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        let number = usize::parse(words, base)?;
        Self::try_from(number).map_err(|_| format!("{number} is more than {}", Self::MAX))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl SettingValue for String {
    fn parse(words: Vec<OsString>, _: &Path) -> Result<Self, String> {
        let word = single(words)?;
        word.into_string().map_err(|word| format!("{word:?} is not text"))
    }

    fn show(&self) -> String {
        self.clone()
    }
}

impl SettingValue for Option<String> {
    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        String::parse(words, base).map(Some)
    }

    fn show(&self) -> String {
        self.clone().unwrap_or_else(|| "(none)".to_owned())
    }
}

impl SettingValue for Option<Location> {
    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        let word = String::parse(words, base)?;
        Location::parse(&word, base)
            .map(Some)
            .map_err(|error| error.to_string())
    }

    fn show(&self) -> String {
        let shown = self.as_ref().map(Location::to_string);
        shown.unwrap_or_else(|| "(in the state directory)".to_owned())
    }
}

impl SettingValue for Vec<String> {
    const SEPARATOR: Option<char> = Some(',');

    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        words.into_iter().map(|word| String::parse(vec![word], base)).collect()
    }

    fn show(&self) -> String {
        if self.is_empty() {
            "(none)".to_owned()
        } else {
            self.join(", ")
        }
    }
}

impl SettingValue for bool {
    // The flag alone means yes; a variable or a key says which.
    const MAY_STAND_ALONE: bool = true;

    fn parse(words: Vec<OsString>, _: &Path) -> Result<Self, String> {
        match single(words)?.to_string_lossy().as_ref() {
            "true" | "1" | "yes" | "on" => Ok(true),
            "false" | "0" | "no" | "off" => Ok(false),
            other => Err(format!("{other:?} is neither true nor false")),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl SettingValue for ExecutorKind {
    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        match String::parse(words, base)?.as_str() {
            "local" => Ok(Self::Local),
            "docker" => Ok(Self::Docker),
            other => Err(format!("{other:?} is no executor: local and docker are known")),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// The words of a variable: split where the type is a list; empty words mean nothing.
pub(super) fn split(text: OsString, separator: Option<char>) -> Vec<OsString> {
    let Some(separator) = separator else { return vec![text] };
    text.as_bytes()
        .split(|byte| *byte == separator as u8)
        .filter(|word| !word.is_empty())
        .map(|word| OsString::from_vec(word.to_vec()))
        .collect()
}

fn single(mut words: Vec<OsString>) -> Result<OsString, String> {
    match (words.pop(), words.is_empty()) {
        (Some(word), true) => Ok(word),
        _ => Err("one value is expected, not a list".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(texts: &[&str]) -> Vec<OsString> {
        texts.iter().map(OsString::from).collect()
    }

    #[test]
    fn paths_are_relative_to_their_layer() {
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
    fn numbers_are_whole() {
        assert_eq!(usize::parse(words(&["100_000"]), Path::new("")), Ok(100_000));
        for bad in ["", "-1", "1.5", "many"] {
            assert!(usize::parse(words(&[bad]), Path::new("")).is_err(), "{bad}");
        }
    }

    #[test]
    fn variables_split_only_where_the_type_is_a_list() {
        assert_eq!(split("a::b".into(), Some(':')), words(&["a", "b"]));
        assert_eq!(split("a:b".into(), None), words(&["a:b"]));
    }
}
