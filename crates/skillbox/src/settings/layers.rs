//! Resolves a setting from its layers: flag, environment variable, config file of the working directory, config file of
//! the user, default.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use skillbox_model::SecretName;

use super::config_file::{ConfigError, ConfigFile, ConfigFiles, Position, ProjectFile};
use super::declaration::{SettingDeclaration, VARIABLE_PREFIX};
use super::environment::Environment;
use super::project_rule::ProjectRule;
use super::secret_section::{SECRETS_KEY, SecretEntry};
use super::suggestion::closest_name;
use super::value::{self, SettingValue};

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A flag on the command line.
    Flag(String),
    /// An environment variable.
    Variable(String),
    /// A position in the config file.
    File(PathBuf, Position),
    /// The default.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) | Self::Variable(name) => f.write_str(name),
            Self::File(path, position) => write!(f, "{}:{position}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A setting with its value and where the value came from.
#[derive(Clone, Debug)]
pub struct ResolvedSetting {
    /// The setting.
    pub declaration: &'static SettingDeclaration,
    /// The value in force, for people.
    pub value: String,
    /// Where the value came from.
    pub origin: Origin,
    /// The value of the working directory's config file, if it was refused.
    pub refused: Option<UntrustedSetting>,
}

/// A setting that the config file of the working directory may not have without the user's trust.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{position}: {}", path.display(), self.reason())]
pub struct UntrustedSetting {
    /// The file.
    pub path: PathBuf,
    /// The position of the key.
    pub position: Position,
    /// The key.
    pub key: &'static str,
    /// The values that are allowed without trust, if any.
    pub allowed: Option<&'static str>,
}

impl UntrustedSetting {
    fn reason(&self) -> String {
        let key = self.key;
        match self.allowed {
            None => format!("the config file of a working directory may not set `{key}` unless you trust the file"),
            Some(allowed) => format!(
                "without your trust, the config file of a working directory may {allowed}, and this value of `{key}` does not"
            ),
        }
    }
}

impl ResolvedSetting {
    /// The value with its origin, such as `7 (--budget)`.
    pub fn value_with_origin(&self) -> String {
        let value = self.value.strip_prefix('(').and_then(|value| value.strip_suffix(')'));
        format!("{} ({})", value.unwrap_or(&self.value), self.origin)
    }
}

/// Why a setting cannot be resolved.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// The config file cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A value of the wrong type.
    #[error("{origin}: {message}")]
    Value {
        /// Where the value came from.
        origin: Origin,
        /// What is wrong with the value.
        message: String,
    },
}

impl SettingError {
    /// A suggestion for the user.
    pub fn hint(&self) -> String {
        match self {
            Self::Config(ConfigError::UnknownKey {
                suggestion: Some(key), ..
            }) => format!("did you mean `{key}`?"),
            Self::Config(ConfigError::Unreadable { .. }) => {
                "check --config, SKILLBOX_CONFIG and the permissions of the file".to_owned()
            }
            _ => "run `skillbox help settings` for all settings and their values".to_owned(),
        }
    }
}

/// The layers below the flags: environment variables and config file.
#[derive(Debug)]
pub struct Layers {
    environment: Environment,
    files: ConfigFiles,
    known_keys: Vec<&'static str>,
    refusals: Vec<UntrustedSetting>,
}

impl Layers {
    /// Reads the config file at `config_path`, else the one that `SKILLBOX_CONFIG` names, else the default ones.
    pub(super) fn read(
        environment: Environment,
        config_path: Option<&Path>,
        known_keys: Vec<&'static str>,
    ) -> Result<Self, SettingError> {
        let config_path = config_path.or_else(|| environment.get("SKILLBOX_CONFIG").map(Path::new));
        let files = ConfigFiles::find(config_path, &environment, &known_keys)?;
        Ok(Self {
            environment,
            files,
            known_keys,
            refusals: Vec::new(),
        })
    }

    /// The layers of the config files alone, if one of them is not trusted: what it sets counts, even where a flag or a
    /// variable overrides it.
    pub(super) fn for_untrusted_file(&self) -> Option<Self> {
        let project = self.files.project.as_ref()?;
        (!project.is_trusted).then(|| Self {
            files: self.files.clone(),
            ..self.with_defaults_only()
        })
    }

    /// The same layers with the refused settings of the working directory's config file.
    pub(super) fn with_refusals(self, refusals: Vec<UntrustedSetting>) -> Self {
        Self { refusals, ..self }
    }

    /// The refused settings of the working directory's config file. Their values are not used.
    pub fn refusals(&self) -> &[UntrustedSetting] {
        &self.refusals
    }

    /// The configured secrets. The config file of the working directory counts only if the user trusts it; then it replaces
    /// secrets of the user's file.
    pub fn secrets(&self) -> BTreeMap<SecretName, SecretEntry> {
        let trusted = self.files.project.iter().filter(|project| project.is_trusted);
        let files = self.files.user.iter().chain(trusted.map(|project| &project.file));
        let entries = files.flat_map(ConfigFile::secrets);
        entries.map(|(_, entry)| (entry.name.clone(), entry.clone())).collect()
    }

    /// The secrets of a config file of the working directory that the user does not trust.
    pub(super) fn refused_secrets(&self) -> Option<UntrustedSetting> {
        let project = self.files.project.as_ref().filter(|project| !project.is_trusted)?;
        let (position, _) = project.file.secrets().first()?;
        Some(UntrustedSetting {
            path: project.file.path().to_owned(),
            position: *position,
            key: SECRETS_KEY,
            allowed: None,
        })
    }

    /// The config file of the working directory.
    pub fn project_file(&self) -> Option<&ProjectFile> {
        self.files.project.as_ref()
    }

    /// The same layers without the config file and the variables of settings, so that every setting has its default.
    pub fn with_defaults_only(&self) -> Self {
        Self {
            environment: self.environment.without_prefix(VARIABLE_PREFIX),
            files: ConfigFiles::default(),
            known_keys: self.known_keys.clone(),
            refusals: Vec::new(),
        }
    }

    /// The environment of the process.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The config files in force, highest first.
    pub fn config_paths(&self) -> impl Iterator<Item = &Path> {
        self.files.paths()
    }

    /// Variables that look like a misspelled setting, each with the one that was probably meant.
    pub fn misspelled_variables(&self) -> Vec<(String, String)> {
        let known = || self.known_keys.iter().copied().chain(["config"]);
        let mut misspelled = Vec::new();
        for name in self.environment.names_with_prefix(VARIABLE_PREFIX) {
            let key = name[VARIABLE_PREFIX.len()..].to_ascii_lowercase();
            if let Some(meant) = closest_name(&key, known()).filter(|meant| *meant != key) {
                misspelled.push((
                    name.to_owned(),
                    format!("{VARIABLE_PREFIX}{}", meant.to_ascii_uppercase()),
                ));
            }
        }
        misspelled
    }

    /// The value of a setting from the highest layer that has one and may set it, else its default.
    pub(super) fn resolve<T: SettingValue>(
        &self,
        setting: &'static SettingDeclaration,
        flag: &[OsString],
        rule: &ProjectRule<T>,
        resolved: &mut Vec<ResolvedSetting>,
        default: impl Fn() -> T,
    ) -> Result<T, SettingError> {
        let mut refused = None;
        let mut found = parse_layer(self.flag_or_variable(setting, flag))?;
        if found.is_none() {
            let without_project = || parse_layer(self.files.user.as_ref().and_then(|file| file_value(file, setting)));
            let project = self.files.project.as_ref();
            let (accepted, refusal) =
                match project.and_then(|project| Some((project, file_value(&project.file, setting)?))) {
                    None => (None, None),
                    Some((project, value)) => {
                        let position = value.position;
                        let value = parse_layer(Some(value))?;
                        let is_accepted = project.is_trusted
                            || match (rule, &value) {
                                (ProjectRule::Any, _) => true,
                                (ProjectRule::OnlyStricter { is_as_strict, .. }, Some((value, _))) => {
                                    let base = without_project()?.map_or_else(&default, |(base, _)| base);
                                    is_as_strict(value, &base)
                                }
                                _ => false,
                            };
                        if is_accepted {
                            (value, None)
                        } else {
                            (
                                None,
                                position.map(|position| refusal_of(&project.file, setting, position, rule)),
                            )
                        }
                    }
                };
            refused = refusal;
            found = match accepted {
                Some(value) => Some(value),
                None => without_project()?,
            };
        }
        let (value, origin) = found.unwrap_or_else(|| (default(), Origin::Default));
        resolved.push(ResolvedSetting {
            declaration: setting,
            value: value.display_text(),
            origin,
            refused,
        });
        Ok(value)
    }

    fn flag_or_variable(&self, setting: &SettingDeclaration, flag: &[OsString]) -> Option<LayerValue> {
        // Relative paths from the command line and the environment stay as written, so that messages show what the
        // user typed.
        let as_written = PathBuf::new();
        if !flag.is_empty() {
            return Some(LayerValue {
                words: flag.to_vec(),
                base: as_written,
                origin: Origin::Flag(setting.flag()),
                position: None,
            });
        }
        let variable = setting.variable();
        let text = self.environment.get(&variable)?;
        Some(LayerValue {
            words: value::split_words(text.to_owned(), setting.separator),
            base: as_written,
            origin: Origin::Variable(variable),
            position: None,
        })
    }
}

fn file_value(file: &ConfigFile, setting: &SettingDeclaration) -> Option<LayerValue> {
    let (words, position) = file.get(setting.key)?;
    Some(LayerValue {
        words,
        base: file.directory().to_owned(),
        origin: Origin::File(file.path().to_owned(), position),
        position: Some(position),
    })
}

fn parse_layer<T: SettingValue>(value: Option<LayerValue>) -> Result<Option<(T, Origin)>, SettingError> {
    let Some(LayerValue {
        words, base, origin, ..
    }) = value
    else {
        return Ok(None);
    };
    match T::parse(words, &base) {
        Ok(value) => Ok(Some((value, origin))),
        Err(message) => Err(SettingError::Value { origin, message }),
    }
}

fn refusal_of<T>(
    file: &ConfigFile,
    setting: &SettingDeclaration,
    position: Position,
    rule: &ProjectRule<T>,
) -> UntrustedSetting {
    UntrustedSetting {
        path: file.path().to_owned(),
        position,
        key: setting.key,
        allowed: match rule {
            ProjectRule::OnlyStricter { allowed, .. } => Some(allowed),
            ProjectRule::NeedsTrust | ProjectRule::Any => None,
        },
    }
}

/// The unparsed value of one layer; `base` is the directory of relative paths in it.
struct LayerValue {
    words: Vec<OsString>,
    base: PathBuf,
    origin: Origin,
    /// The position of the key, in a config file.
    position: Option<Position>,
}

#[cfg(test)]
mod tests {
    use super::super::{GlobalFlags, read_layers};
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct CommandLine {
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
        let layers = read_layers(environment, None).map_err(|error| error.to_string())?;
        let flags = CommandLine::parse_from(std::iter::once(&"skillbox").chain(line)).flags;
        let (settings, resolved) = flags.resolve(&layers).map_err(|error| error.to_string())?;
        let paths = settings.skills.iter().map(|path| {
            let below = path
                .strip_prefix(dir.path())
                .map(|rest| Path::new("<config dir>").join(rest));
            below.unwrap_or_else(|_| path.clone()).display().to_string()
        });
        let origin = resolved[0]
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
                .ends_with("skillbox.toml:1:1: expected one value, found a list")
        );
    }

    #[test]
    fn misspelled_variables_are_reported() {
        let variables = ["SKILLBOX_SKILS", "SKILLBOX_SKILLS", "SKILLBOX_QQQ", "OTHER"];
        let variables = variables.map(|name| (OsString::from(name), OsString::from("x")));
        let layers = read_layers(Environment::new(variables, "/nowhere".into()), None).unwrap();
        assert_eq!(
            layers.misspelled_variables(),
            [("SKILLBOX_SKILS".to_owned(), "SKILLBOX_SKILLS".to_owned())]
        );
    }
}
