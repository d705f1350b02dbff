//! Settings whose value is one of a few words.

use std::ffi::OsString;
use std::path::Path;

use skillbox_runtime::{
    AtLimit, Dialect, EnvironmentMode, HookRunner, Inheritance, LoadMode, PolicyKind, SkillDirKeep,
};
use skillbox_sandbox::SkillDirAccess;
use skillbox_trust::{AuditMode, TrustMode};

use super::log_level::LogLevel;
use super::value::SettingValue;

/// A type with a word for each of its values.
trait Choice: Copy + PartialEq + 'static {
    /// What the type is called in error messages.
    const NOUN: &'static str;
    /// Each value with its word.
    const WORDS: &'static [(&'static str, Self)];
}

impl Choice for Dialect {
    const NOUN: &'static str = "dialect";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("skillbox", Self::Skillbox),
        ("trpc", Self::Trpc),
        ("deepagents", Self::Deepagents),
        ("saa", Self::Saa),
        ("agentskills", Self::Agentskills),
    ];
}

impl Choice for PolicyKind {
    const NOUN: &'static str = "policy";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("recommend", Self::Recommend),
        ("restrict", Self::Restrict),
        ("strict", Self::Strict),
    ];
}

impl Choice for AtLimit {
    const NOUN: &'static str = "limit action";
    const WORDS: &'static [(&'static str, Self)] = &[("refuse", Self::Refuse), ("evict", Self::EvictLeastRecent)];
}

impl Choice for LoadMode {
    const NOUN: &'static str = "load mode";
    const WORDS: &'static [(&'static str, Self)] =
        &[("session", Self::Session), ("turn", Self::Turn), ("once", Self::Once)];
}

impl Choice for HookRunner {
    const NOUN: &'static str = "hook action";
    const WORDS: &'static [(&'static str, Self)] = &[("run", Self::Skillbox), ("offer", Self::Host)];
}

impl Choice for Inheritance {
    const NOUN: &'static str = "kind of inheritance";
    const WORDS: &'static [(&'static str, Self)] = &[("isolated", Self::Isolated), ("inherit", Self::Inherit)];
}

impl Choice for EnvironmentMode {
    const NOUN: &'static str = "time to install packages";
    const WORDS: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("prebuilt", Self::Prebuilt), ("off", Self::Off)];
}

impl Choice for TrustMode {
    const NOUN: &'static str = "trust mode";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("open", Self::Open),
        ("approved", Self::Approved),
        ("locked", Self::Locked),
    ];
}

impl Choice for AuditMode {
    const NOUN: &'static str = "audit mode";
    const WORDS: &'static [(&'static str, Self)] = &[("on", Self::On), ("sync", Self::Sync), ("off", Self::Off)];
}

impl Choice for SkillDirAccess {
    const NOUN: &'static str = "kind of access";
    const WORDS: &'static [(&'static str, Self)] = &[("cow", Self::Cow), ("read_only", Self::ReadOnly)];
}

impl Choice for SkillDirKeep {
    const NOUN: &'static str = "time to keep changes";
    const WORDS: &'static [(&'static str, Self)] = &[("run", Self::Run), ("session", Self::Session)];
}

impl Choice for LogLevel {
    const NOUN: &'static str = "log level";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("off", Self::Off),
        ("error", Self::Error),
        ("warn", Self::Warn),
        ("info", Self::Info),
        ("debug", Self::Debug),
    ];
}

fn parse<T: Choice>(words: Vec<OsString>, base: &Path) -> Result<T, String> {
    let word = String::parse(words, base)?;
    let found = T::WORDS.iter().find(|(known, _)| *known == word);
    found
        .map(|(_, value)| *value)
        .ok_or_else(|| format!("{word:?} is not a {}: use {}", T::NOUN, alternatives::<T>("")))
}

/// The words as `a, b or c`, each between `quote`s.
fn alternatives<T: Choice>(quote: &str) -> String {
    let words: Vec<_> = T::WORDS
        .iter()
        .map(|(word, _)| format!("{quote}{word}{quote}"))
        .collect();
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

fn display_text<T: Choice>(value: &T) -> String {
    let found = T::WORDS.iter().find(|(_, known)| known == value);
    found.map_or_else(String::new, |(word, _)| (*word).to_owned())
}

macro_rules! setting_values {
    ($($kind:ty),+) => {
        $(impl SettingValue for $kind {
            fn type_name() -> String {
                alternatives::<$kind>("`")
            }

            fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
                parse(words, base)
            }

            fn display_text(&self) -> String {
                display_text(self)
            }
        })+
    };
}

setting_values!(
    Dialect,
    PolicyKind,
    AtLimit,
    LoadMode,
    EnvironmentMode,
    HookRunner,
    Inheritance,
    LogLevel,
    TrustMode,
    AuditMode,
    SkillDirAccess,
    SkillDirKeep
);

impl SettingValue for Option<EnvironmentMode> {
    fn type_name() -> String {
        EnvironmentMode::type_name()
    }

    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        EnvironmentMode::parse(words, base).map(Some)
    }

    fn display_text(&self) -> String {
        self.as_ref().map_or_else(
            || "(auto; prebuilt in servers)".to_owned(),
            EnvironmentMode::display_text,
        )
    }
}

impl SettingValue for Option<LoadMode> {
    fn type_name() -> String {
        LoadMode::type_name()
    }

    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        LoadMode::parse(words, base).map(Some)
    }

    fn display_text(&self) -> String {
        self.as_ref()
            .map_or_else(|| "(as the dialect says)".to_owned(), LoadMode::display_text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_its_word() {
        let check = |word: &str| {
            let dialect: Dialect = parse(vec![word.into()], Path::new("")).unwrap();
            assert_eq!((display_text(&dialect).as_str(), dialect.as_str()), (word, word));
        };
        Dialect::ALL.iter().for_each(|dialect| check(dialect.as_str()));
        let error = parse::<PolicyKind>(vec!["lax".into()], Path::new("")).unwrap_err();
        assert_eq!(error, "\"lax\" is not a policy: use recommend, restrict or strict");
    }
}
