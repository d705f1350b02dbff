//! Finds and parses the config files: the named one, or the one of the working directory and the user's.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use skillbox_model::Digest;

use super::environment::Environment;
use super::secret_section::{SECRETS_KEY, SecretEntry, parse_secrets};
use super::suggestion::closest_name;
use super::trusted_files::{MAX_CONFIG_BYTES, TrustedFiles, config_digest, read_bounded};

const FILE_NAME: &str = "skillbox.toml";

/// A parsed config file: the words of each key, and the position of the key.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    path: PathBuf,
    entries: Vec<Entry>,
    secrets: Vec<(Position, SecretEntry)>,
}

/// The config file of the working directory, which anyone could have written.
#[derive(Clone, Debug)]
pub struct ProjectFile {
    /// The parsed file.
    pub file: ConfigFile,
    /// The digest of the file and of the profiles that it names.
    pub digest: Digest,
    /// Whether the user trusts this digest.
    pub is_trusted: bool,
}

/// The config files in force, highest first.
#[derive(Clone, Debug, Default)]
pub struct ConfigFiles {
    /// The file in the working directory.
    pub project: Option<ProjectFile>,
    /// The file that was named explicitly, else the user's.
    pub user: Option<ConfigFile>,
}

#[derive(Clone, Debug)]
struct Entry {
    key: String,
    words: Vec<OsString>,
    position: Position,
}

/// A position in a config file, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    line: usize,
    column: usize,
}

/// Why a config file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file was requested or exists, but cannot be read.
    #[error("cannot read the config file {path}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is not valid TOML.
    #[error("{path}:{position}: {message}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The position in the file.
        position: Position,
        /// The parser's message.
        message: String,
    },
    /// A key that is not a setting.
    #[error("{path}:{position}: unknown key `{key}`")]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// The position in the file.
        position: Position,
        /// The key as written.
        key: String,
        /// The setting that was probably meant.
        suggestion: Option<&'static str>,
    },
    /// A secret that cannot be used.
    #[error("{path}:{position}: {message}")]
    Secret {
        /// The file.
        path: PathBuf,
        /// The position in the file.
        position: Position,
        /// What is wrong. It never contains a value.
        message: String,
    },
    /// A value that is neither a scalar nor a list of scalars.
    #[error("{path}:{position}: `{key}` cannot be of type {found}")]
    UnsupportedType {
        /// The file.
        path: PathBuf,
        /// The position in the file.
        position: Position,
        /// The key.
        key: String,
        /// The TOML type found.
        found: &'static str,
    },
}

impl ConfigFiles {
    /// The file at `config_path`; without one, those of the working directory and of the user, where they exist.
    pub fn find(
        config_path: Option<&Path>,
        environment: &Environment,
        known_keys: &[&'static str],
    ) -> Result<Self, ConfigError> {
        if let Some(path) = config_path {
            let path = environment.working_dir().join(path);
            let text = std::fs::read(&path).map_err(ConfigError::unreadable(&path))?;
            return Ok(Self {
                project: None,
                user: Some(ConfigFile::parse_bytes(path, text, known_keys)?),
            });
        }
        let user_path = environment.config_dir().map(|dir| dir.join(FILE_NAME));
        let project_path = environment.working_dir().join(FILE_NAME);
        let user = match &user_path {
            Some(path) => read_optional(path)?.map(|text| ConfigFile::parse_bytes(path.clone(), text, known_keys)),
            None => None,
        };
        // In the user's config directory, both are the same file.
        let project = if user_path.as_ref() == Some(&project_path) {
            None
        } else {
            ProjectFile::read(project_path, environment, known_keys)?
        };
        Ok(Self {
            project,
            user: user.transpose()?,
        })
    }

    /// The files, highest first.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let project = self.project.iter().map(|project| &project.file);
        project.chain(&self.user).map(ConfigFile::path)
    }
}

impl ProjectFile {
    fn read(
        path: PathBuf,
        environment: &Environment,
        known_keys: &[&'static str],
    ) -> Result<Option<Self>, ConfigError> {
        let Some(text) = read_optional(&path)? else {
            return Ok(None);
        };
        let file = ConfigFile::parse_bytes(path, text.clone(), known_keys)?;
        let digest =
            config_digest(&text, file.profiles_dir().as_deref()).map_err(ConfigError::unreadable(&file.path))?;
        let list = environment.config_dir().map(|dir| TrustedFiles::in_config_dir(&dir));
        Ok(Some(Self {
            is_trusted: list.is_some_and(|list| list.contains(&file.path, &digest)),
            file,
            digest,
        }))
    }
}

/// The content of a default config file; `None` if there is no such file.
fn read_optional(path: &Path) -> Result<Option<Vec<u8>>, ConfigError> {
    match read_bounded(path, MAX_CONFIG_BYTES) {
        Ok(text) => Ok(Some(text)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(ConfigError::unreadable(path)(error)),
    }
}

impl ConfigError {
    fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Unreadable { path, source }
    }
}

impl ConfigFile {
    fn parse_bytes(path: PathBuf, text: Vec<u8>, known_keys: &[&'static str]) -> Result<Self, ConfigError> {
        match String::from_utf8(text) {
            Ok(text) => Self::parse(path, &text, known_keys),
            Err(error) => Err(ConfigError::unreadable(&path)(io::Error::new(
                io::ErrorKind::InvalidData,
                error.utf8_error(),
            ))),
        }
    }

    /// The directory of profiles that the file names.
    fn profiles_dir(&self) -> Option<PathBuf> {
        let (words, _) = self.get("profiles")?;
        Some(self.directory().join(words.first()?))
    }

    /// The directory that relative paths in the file start from.
    pub fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    fn parse(path: PathBuf, text: &str, known_keys: &[&'static str]) -> Result<Self, ConfigError> {
        let document = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
            position: Position::of(text, error.span().map_or(0, |span| span.start)),
            message: error.message().to_owned(),
            path: path.clone(),
        })?;
        let mut entries = Vec::new();
        let mut secrets = Vec::new();
        for (key, value) in document.get_ref() {
            let (name, position) = (key.get_ref().to_string(), Position::of(text, key.span().start));
            if name == SECRETS_KEY {
                let parsed = parse_secrets(value).map_err(|problem| ConfigError::Secret {
                    path: path.clone(),
                    position: Position::of(text, problem.offset),
                    message: problem.message,
                })?;
                let placed = parsed
                    .into_iter()
                    .map(|(offset, entry)| (Position::of(text, offset), entry));
                secrets = placed.collect();
                continue;
            }
            if !known_keys.contains(&name.as_str()) {
                let suggestion = closest_name(&name, known_keys.iter().copied());
                return Err(ConfigError::UnknownKey {
                    path,
                    position,
                    key: name,
                    suggestion,
                });
            }
            let Some(words) = value_words(value.get_ref()) else {
                let found = value.get_ref().type_str();
                return Err(ConfigError::UnsupportedType {
                    path,
                    position,
                    key: name,
                    found,
                });
            };
            entries.push(Entry {
                key: name,
                words,
                position,
            });
        }
        Ok(Self { path, entries, secrets })
    }

    /// The words of a key and the key's position.
    pub fn get(&self, key: &str) -> Option<(Vec<OsString>, Position)> {
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        Some((entry.words.clone(), entry.position))
    }

    /// The secrets that the file configures, each with its position.
    pub fn secrets(&self) -> &[(Position, SecretEntry)] {
        &self.secrets
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// One word for a scalar, several for a list of scalars, `None` for anything else.
fn value_words(value: &DeValue<'_>) -> Option<Vec<OsString>> {
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

impl Position {
    fn of(text: &str, offset: usize) -> Self {
        let before = &text[..text.floor_char_boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ConfigFile, ConfigError> {
        ConfigFile::parse(
            "skillbox.toml".into(),
            text,
            &["skills", "state_dir", "max_directories"],
        )
    }

    fn error(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn errors_name_file_line_and_column() {
        assert_eq!(error("\nskils = \"x\""), "skillbox.toml:2:1: unknown key `skils`");
        assert_eq!(
            error("skills = 2024-01-01"),
            "skillbox.toml:1:1: `skills` cannot be of type datetime"
        );
        assert_eq!(
            error("[skills]\na = 1"),
            "skillbox.toml:1:2: `skills` cannot be of type table"
        );
        assert!(
            error("skills = ").starts_with("skillbox.toml:1:10: "),
            "{}",
            error("skills = ")
        );
    }

    #[test]
    fn an_unknown_key_gets_a_suggestion() {
        let suggestion = |text| match parse(text) {
            Err(ConfigError::UnknownKey { suggestion, .. }) => suggestion,
            other => panic!("{other:?}"),
        };
        assert_eq!(suggestion("skils = 1"), Some("skills"));
        assert_eq!(suggestion("state-dir = 1"), Some("state_dir"));
        assert_eq!(suggestion("zzzzzz = 1"), None);
    }

    #[test]
    fn scalars_and_lists_become_words() {
        let file = parse("skills = [\"a\", \"b\"]\nmax_directories = 7").unwrap();
        let word_count = |key| file.get(key).map(|(words, _)| words.len());
        assert_eq!(word_count("skills"), Some(2));
        assert_eq!(word_count("max_directories"), Some(1));
        assert_eq!(word_count("state_dir"), None);
    }
}
