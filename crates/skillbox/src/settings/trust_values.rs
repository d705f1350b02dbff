//! The value types of trust settings: denied skills, publishers and their keys.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use skillbox_model::PublisherName;
use skillbox_trust::DenyEntry;

use super::value::SettingValue;
use crate::forward_target::ForwardTarget;

/// A publisher and the file of one of its public keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublisherKey {
    /// The publisher.
    pub publisher: PublisherName,
    /// The file.
    pub file: PathBuf,
}

/// Parses each word of a list.
fn parse_list<T>(
    words: Vec<OsString>,
    base: &Path,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let parse_word = |word| parse(&String::parse(vec![word], base)?);
    words.into_iter().map(parse_word).collect()
}

fn display_list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() {
        "(none)".to_owned()
    } else {
        items.join(", ")
    }
}

impl SettingValue for Vec<DenyEntry> {
    const SEPARATOR: Option<char> = Some(',');

    fn type_name() -> String {
        "list of names and digests".to_owned()
    }

    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        parse_list(words, base, |word| {
            DenyEntry::parse(word).map_err(|error| error.to_string())
        })
    }

    fn display_text(&self) -> String {
        display_list(self.iter().map(DenyEntry::to_string))
    }
}

impl SettingValue for Option<ForwardTarget> {
    fn type_name() -> String {
        "address".to_owned()
    }

    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        ForwardTarget::parse(&String::parse(words, base)?).map(Some)
    }

    fn display_text(&self) -> String {
        self.as_ref().map_or_else(|| "(none)".to_owned(), ToString::to_string)
    }
}

impl SettingValue for Vec<PublisherName> {
    const SEPARATOR: Option<char> = Some(',');

    fn type_name() -> String {
        "list of publishers".to_owned()
    }

    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        parse_list(words, base, |word| {
            PublisherName::parse(word).map_err(|error| error.to_string())
        })
    }

    fn display_text(&self) -> String {
        display_list(self.iter().map(PublisherName::to_string))
    }
}

impl SettingValue for Vec<PublisherKey> {
    const SEPARATOR: Option<char> = Some(',');

    fn type_name() -> String {
        "list of `NAME=FILE`".to_owned()
    }

    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        parse_list(words, base, |word| {
            let (name, file) = word
                .split_once('=')
                .filter(|(_, file)| !file.is_empty())
                .ok_or_else(|| format!("{word:?} is not NAME=FILE"))?;
            Ok(PublisherKey {
                publisher: PublisherName::parse(name).map_err(|error| error.to_string())?,
                file: base.join(file),
            })
        })
    }

    fn display_text(&self) -> String {
        display_list(
            self.iter()
                .map(|key| format!("{}={}", key.publisher, key.file.display())),
        )
    }
}
