//! The config file: which one, and what it says.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::layers::{Declared, nearest};
use super::{Environment, table};

const FILE_NAME: &str = "skillbox.toml";

/// A config file that was read: words for each key, with the key's place.
#[derive(Debug, Default)]
pub struct ConfigFile {
    path: PathBuf,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    key: String,
    words: Vec<OsString>,
    place: Place,
}

/// A place in a config file, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    line: usize,
    column: usize,
}

/// Why a config file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Asked for, or there, but not readable.
    #[error("cannot read the config file {path}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Not TOML.
    #[error("{path}:{place}: {message}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where in it.
        place: Place,
        /// What the parser said.
        message: String,
    },
    /// A key that no setting has.
    #[error("{path}:{place}: unknown key `{key}`")]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// Where in it.
        place: Place,
        /// The key as written.
        key: String,
        /// The setting that was probably meant.
        nearest: Option<&'static str>,
    },
    /// A value that is no word and no list of words.
    #[error("{path}:{place}: `{key}` cannot be {found}")]
    NotWords {
        /// The file.
        path: PathBuf,
        /// Where in it.
        place: Place,
        /// The key.
        key: String,
        /// The kind of value that stands there.
        found: &'static str,
    },
}

impl ConfigFile {
    /// The file asked for, else the one in the working directory, else the user's; none of them is fine.
    pub fn find(asked: Option<&Path>, environment: &Environment) -> Result<Option<Self>, ConfigError> {
        if let Some(path) = asked {
            return Self::read(environment.working_dir().join(path)).map(Some);
        }
        let here = environment.working_dir().join(FILE_NAME);
        let users = environment.config_dir().map(|dir| dir.join(FILE_NAME));
        for path in std::iter::once(here).chain(users) {
            match Self::read(path) {
                Err(ConfigError::Unreadable { source, .. })
                    if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
                result => return result.map(Some),
            }
        }
        Ok(None)
    }

    fn read(path: PathBuf) -> Result<Self, ConfigError> {
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::parse(path, &text),
            Err(source) => Err(ConfigError::Unreadable { path, source }),
        }
    }

    fn parse(path: PathBuf, text: &str) -> Result<Self, ConfigError> {
        let place = |offset: usize| Place::of(text, offset);
        let document = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
            place: place(error.span().map_or(0, |span| span.start)),
            message: error.message().to_owned(),
            path: path.clone(),
        })?;
        let mut entries = Vec::new();
        for (key, value) in document.get_ref() {
            let (name, place) = (key.get_ref().to_string(), place(key.span().start));
            let known: Vec<_> = table::all().map(|setting| setting.key).collect();
            if !known.contains(&name.as_str()) {
                let nearest = nearest(&name, known);
                return Err(ConfigError::UnknownKey {
                    path,
                    place,
                    key: name,
                    nearest,
                });
            }
            let Some(words) = words_of(value.get_ref()) else {
                let found = value.get_ref().type_str();
                return Err(ConfigError::NotWords {
                    path,
                    place,
                    key: name,
                    found,
                });
            };
            entries.push(Entry {
                key: name,
                words,
                place,
            });
        }
        Ok(Self { path, entries })
    }

    /// The words of a setting, and where they stand.
    pub fn get(&self, setting: &Declared) -> Option<(Vec<OsString>, Place)> {
        let entry = self.entries.iter().find(|entry| entry.key == setting.key)?;
        Some((entry.words.clone(), entry.place))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A scalar is one word and a list of scalars is several; nothing else is.
fn words_of(value: &DeValue<'_>) -> Option<Vec<OsString>> {
    let word = |value: &DeValue<'_>| match value {
        DeValue::String(text) => Some(OsString::from(text.as_ref())),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().into()),
        DeValue::Boolean(flag) => Some(flag.to_string().into()),
        _ => None,
    };
    match value {
        DeValue::Array(items) => items.iter().map(|item| word(item.get_ref())).collect(),
        scalar => Some(vec![word(scalar)?]),
    }
}

impl Place {
    fn of(text: &str, offset: usize) -> Self {
        let before = &text[..text.floor_char_boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ConfigFile, ConfigError> {
        ConfigFile::parse("skillbox.toml".into(), text)
    }

    fn error(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn errors_name_file_line_and_column() {
        assert_eq!(error("\nskils = \"x\""), "skillbox.toml:2:1: unknown key `skils`");
        assert_eq!(
            error("skills = 2024-01-01"),
            "skillbox.toml:1:1: `skills` cannot be datetime"
        );
        assert_eq!(error("[skills]\na = 1"), "skillbox.toml:1:2: `skills` cannot be table");
        assert!(
            error("skills = ").starts_with("skillbox.toml:1:10: "),
            "{}",
            error("skills = ")
        );
    }

    #[test]
    fn an_unknown_key_gets_the_nearest_name() {
        let nearest = |text| match parse(text) {
            Err(ConfigError::UnknownKey { nearest, .. }) => nearest,
            other => panic!("{other:?}"),
        };
        assert_eq!(nearest("skils = 1"), Some("skills"));
        assert_eq!(nearest("state-dir = 1"), Some("state_dir"));
        assert_eq!(nearest("zzzzzz = 1"), None);
    }

    #[test]
    fn scalars_and_lists_become_words() {
        let file = parse("skills = [\"a\", \"b\"]\nmax_directories = 7").unwrap();
        let words: Vec<_> = table::all()
            .filter_map(|setting| file.get(setting))
            .map(|(words, _)| words.len())
            .collect();
        assert_eq!(words, [2, 1]);
    }
}
