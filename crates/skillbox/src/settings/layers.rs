//! The layers of a setting, and how one is picked.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use super::config_file::{ConfigError, ConfigFile, Place};
use super::value::{self, SettingValue};
use super::{Environment, table};

const PREFIX: &str = "SKILLBOX_";

/// One setting as its declaration gives it.
#[derive(Debug)]
pub struct Declared {
    pub(super) key: &'static str,
    pub(super) placeholder: &'static str,
    pub(super) about: &'static str,
    pub(super) separator: Option<char>,
}

impl Declared {
    pub(super) fn flag(&self) -> String {
        format!("--{}", self.key.replace('_', "-"))
    }

    fn variable(&self) -> String {
        format!("{PREFIX}{}", self.key.to_ascii_uppercase())
    }
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The command line.
    Flag(String),
    /// A variable.
    Variable(String),
    /// The config file.
    File(PathBuf, Place),
    /// Nobody said anything.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) | Self::Variable(name) => f.write_str(name),
            Self::File(path, place) => write!(f, "{}:{place}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A resolved setting, for `skillbox help settings`.
#[derive(Clone, Debug)]
pub struct Told {
    /// The config key.
    pub key: &'static str,
    /// The flag with its placeholder.
    pub flag: String,
    /// The variable.
    pub variable: String,
    /// What it does.
    pub about: &'static str,
    /// The value in force.
    pub value: String,
    /// Where it came from.
    pub origin: Origin,
}

/// Why a setting cannot be resolved.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// The config file is unusable.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A value that its type refuses.
    #[error("{origin}: {message}")]
    Value {
        /// Who said it.
        origin: Origin,
        /// What is wrong with it.
        message: String,
    },
}

impl SettingError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Config(ConfigError::UnknownKey { nearest: Some(key), .. }) => format!("did you mean `{key}`?"),
            Self::Config(ConfigError::Unreadable { .. }) => {
                "check `--config`, SKILLBOX_CONFIG and the rights of the file".to_owned()
            }
            _ => "`skillbox help settings` lists every setting and its value".to_owned(),
        }
    }
}

/// Everything below the flags.
#[derive(Debug)]
pub struct Layers {
    environment: Environment,
    file: Option<ConfigFile>,
}

impl Layers {
    /// Reads the config file that was asked for, or that stands where one is looked for.
    pub fn read(environment: Environment, asked: Option<&Path>) -> Result<Self, SettingError> {
        let asked = asked.or_else(|| environment.get("SKILLBOX_CONFIG").map(Path::new));
        let file = ConfigFile::find(asked, &environment)?;
        Ok(Self { environment, file })
    }

    /// The environment that the process was started with.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The config file in force.
    pub fn config_path(&self) -> Option<&Path> {
        self.file.as_ref().map(ConfigFile::path)
    }

    /// Variables that look like a misspelt setting, each with the one that was probably meant.
    pub fn misspelt_variables(&self) -> Vec<(String, String)> {
        let known: Vec<_> = table::all().map(|setting| setting.key).chain(["config"]).collect();
        let mut misspelt = Vec::new();
        for name in self.environment.names_with(PREFIX) {
            let key = name[PREFIX.len()..].to_ascii_lowercase();
            if let Some(meant) = nearest(&key, known.iter().copied()).filter(|meant| *meant != key) {
                misspelt.push((name.to_owned(), format!("{PREFIX}{}", meant.to_ascii_uppercase())));
            }
        }
        misspelt
    }

    pub(super) fn pick<T: SettingValue>(
        &self,
        setting: &Declared,
        flag: &[OsString],
        told: &mut Vec<Told>,
        default: impl FnOnce() -> T,
    ) -> Result<T, SettingError> {
        let (value, origin) = match self.given(setting, flag) {
            None => (default(), Origin::Default),
            Some(Given { words, base, origin }) => match T::parse(words, &base) {
                Ok(value) => (value, origin),
                Err(message) => return Err(SettingError::Value { origin, message }),
            },
        };
        told.push(Told {
            key: setting.key,
            flag: format!("{} {}", setting.flag(), setting.placeholder),
            variable: setting.variable(),
            about: setting.about.trim(),
            value: value.show(),
            origin,
        });
        Ok(value)
    }

    /// The highest layer that says something.
    fn given(&self, setting: &Declared, flag: &[OsString]) -> Option<Given> {
        // Relative paths of the command line stay as they were written: that is how people know them.
        let as_written = PathBuf::new();
        if !flag.is_empty() {
            return Some(Given {
                words: flag.to_vec(),
                base: as_written,
                origin: Origin::Flag(setting.flag()),
            });
        }
        let variable = setting.variable();
        if let Some(text) = self.environment.get(&variable) {
            let words = value::split(text.to_owned(), setting.separator);
            return Some(Given {
                words,
                base: as_written,
                origin: Origin::Variable(variable),
            });
        }
        let file = self.file.as_ref()?;
        let (words, place) = file.get(setting)?;
        let base = file.path().parent().unwrap_or(Path::new("")).to_owned();
        Some(Given {
            words,
            base,
            origin: Origin::File(file.path().to_owned(), place),
        })
    }
}

struct Given {
    words: Vec<OsString>,
    base: PathBuf,
    origin: Origin,
}

/// The candidate that was probably meant.
pub(super) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let close = candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate));
    close
        .filter(|(score, _)| *score > 0.85)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::super::GlobalFlags;
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: GlobalFlags,
    }

    /// Resolves with a config file's text, variables and a command line.
    fn resolve(file: &str, variables: &[(&str, &str)], line: &[&str]) -> Result<(String, Vec<String>), String> {
        let dir = tempfile::tempdir().unwrap();
        if !file.is_empty() {
            std::fs::write(dir.path().join("skillbox.toml"), file).unwrap();
        }
        let variables = variables
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let environment = Environment::new(variables, dir.path().to_owned());
        let layers = Layers::read(environment, None).map_err(|error| error.to_string())?;
        let flags = Line::parse_from(std::iter::once(&"skillbox").chain(line)).flags;
        let (settings, told) = flags.resolve(&layers).map_err(|error| error.to_string())?;
        let paths = settings.skills.iter().map(|path| {
            let below = path
                .strip_prefix(dir.path())
                .map(|rest| Path::new("<config dir>").join(rest));
            below.unwrap_or_else(|_| path.clone()).display().to_string()
        });
        let origin = told[0]
            .origin
            .to_string()
            .replace(&dir.path().display().to_string(), "<config dir>");
        Ok((origin, paths.collect()))
    }

    #[test]
    fn flags_win_over_environment_over_file_over_defaults() {
        let file = "\nskills = [\"from-file\", \"/abs\"]";
        let env = [("SKILLBOX_SKILLS", "one:two")];
        let check = |file, env: &[_], line: &[_], origin: &str, paths: &[&str]| {
            let (got_origin, got_paths) = resolve(file, env, line).unwrap();
            assert_eq!(
                (got_origin.as_str(), got_paths),
                (origin, paths.iter().map(|p| p.to_string()).collect())
            );
        };
        check(
            file,
            &env,
            &["--skills", "a:b", "--skills", "c"],
            "--skills",
            &["a:b", "c"],
        );
        check(file, &env, &[], "SKILLBOX_SKILLS", &["one", "two"]);
        check(
            file,
            &[],
            &[],
            "<config dir>/skillbox.toml:2:1",
            &["<config dir>/from-file", "/abs"],
        );
        check("", &[], &[], "default", &[]);
        check("", &[("SKILLBOX_SKILLS", "")], &[], "default", &[]);
    }

    #[test]
    fn a_bad_value_names_its_origin() {
        let error = |file, env: &[_], line: &[_]| resolve(file, env, line).unwrap_err();
        assert_eq!(
            error("", &[], &["--max-directories", "x"]),
            "--max-directories: \"x\" is not a whole number"
        );
        assert_eq!(
            error("", &[("SKILLBOX_MAX_DIRECTORIES", "-1")], &[]),
            "SKILLBOX_MAX_DIRECTORIES: \"-1\" is not a whole number"
        );
        assert!(
            error("max_directories = [1, 2]", &[], &[])
                .ends_with("skillbox.toml:1:1: one value is expected, not a list")
        );
    }

    #[test]
    fn misspelt_variables_are_noticed() {
        let variables = ["SKILLBOX_SKILS", "SKILLBOX_SKILLS", "SKILLBOX_QQQ", "OTHER"];
        let variables = variables.map(|name| (OsString::from(name), OsString::from("x")));
        let layers = Layers::read(Environment::new(variables, "/nowhere".into()), None).unwrap();
        assert_eq!(
            layers.misspelt_variables(),
            [("SKILLBOX_SKILS".to_owned(), "SKILLBOX_SKILLS".to_owned())]
        );
    }
}
