//! What the table declares about one setting.

/// The prefix of every setting's environment variable.
pub(super) const VARIABLE_PREFIX: &str = "SKILLBOX_";

/// A group of settings whose flags the same commands accept.
#[derive(Debug)]
pub struct SettingGroup {
    /// The heading in the reference.
    pub title: &'static str,
    /// The commands that accept the flags, as a phrase.
    pub accepted_by: &'static str,
    /// The settings, in the order of the table.
    pub settings: &'static [SettingDeclaration],
}

/// One setting.
#[derive(Debug)]
pub struct SettingDeclaration {
    /// The name, which is also the config key.
    pub key: &'static str,
    /// What the flag's value is called in the help.
    pub placeholder: &'static str,
    /// What the setting does.
    pub(super) description: &'static str,
    /// What separates the items of a list in an environment variable; `None` for a single value.
    pub(super) separator: Option<char>,
    /// The type, for people.
    pub type_name: fn() -> String,
    /// What an untrusted config file of the working directory may set, in a word.
    pub project_file: &'static str,
    /// The default in words, where its value depends on the host or the version.
    pub documented_default: Option<&'static str>,
}

impl SettingDeclaration {
    /// The flag, such as `--state-dir`.
    pub fn flag(&self) -> String {
        format!("--{}", self.key.replace('_', "-"))
    }

    /// The environment variable, such as `SKILLBOX_STATE_DIR`.
    pub fn variable(&self) -> String {
        format!("{VARIABLE_PREFIX}{}", self.key.to_ascii_uppercase())
    }

    /// What the setting does.
    pub fn description(&self) -> &'static str {
        self.description.trim()
    }
}
