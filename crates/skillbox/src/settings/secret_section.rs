//! The tables `[secrets.NAME]` of a config file.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use skillbox_model::{Digest, HostPort, SecretInjection, SecretName, SkillName};
use skillbox_runtime::SkillSelector;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The key of the table of secrets.
pub(super) const SECRETS_KEY: &str = "secrets";
/// A run cannot redact more secrets.
const MAX_SECRETS: usize = skillbox_executor::Redactor::MAX_VALUES;

/// Where the value of a secret comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// An environment variable of skillbox.
    Variable(String),
    /// A file.
    File(PathBuf),
    /// The standard output of a shell command.
    Command(String),
}

/// One configured secret. It has no value, only where the value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretEntry {
    /// The name.
    pub name: SecretName,
    /// Where the value comes from.
    pub source: SecretSource,
    /// The hosts that may receive the value.
    pub hosts: BTreeSet<HostPort>,
    /// The skills that have the secret without an approval.
    pub skills: Vec<SkillSelector>,
    /// How runs get it.
    pub injection: SecretInjection,
}

/// What is wrong with a table, and the offset where.
#[derive(Debug)]
pub(super) struct SecretProblem {
    pub(super) offset: usize,
    pub(super) message: String,
}

impl SecretSource {
    fn parse(text: &str) -> Result<Self, String> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        match kind {
            _ if rest.is_empty() => Err(()),
            "env" => Ok(Self::Variable(rest.to_owned())),
            "file" if rest.starts_with('/') => Ok(Self::File(rest.into())),
            "command" => Ok(Self::Command(rest.to_owned())),
            _ => Err(()),
        }
        // The text may be a value that was put here by mistake.
        .map_err(|()| "`from` is not `env:VARIABLE`, `file:/absolute/path` or `command:COMMAND`".to_owned())
    }
}

impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
            // A command line may contain a password.
            Self::Command(_) => f.write_str("command"),
        }
    }
}

/// Parses all tables, each with the offset of its name.
pub(super) fn parse_secrets(value: &Spanned<DeValue<'_>>) -> Result<Vec<(usize, SecretEntry)>, SecretProblem> {
    let problem = |offset: usize, message: String| SecretProblem { offset, message };
    let DeValue::Table(table) = value.get_ref() else {
        let message = "`secrets` is not a table; write `[secrets.NAME]`".to_owned();
        return Err(problem(value.span().start, message));
    };
    if table.len() > MAX_SECRETS {
        let message = format!("at most {MAX_SECRETS} secrets can be configured");
        return Err(problem(value.span().start, message));
    }
    let entries = table.iter().map(|(key, value)| {
        let name = SecretName::parse(key.get_ref()).map_err(|error| problem(key.span().start, error.to_string()))?;
        let DeValue::Table(fields) = value.get_ref() else {
            return Err(problem(key.span().start, format!("`secrets.{name}` is not a table")));
        };
        parse_entry(name, fields)
            .map(|entry| (key.span().start, entry))
            .map_err(|(offset, message)| problem(offset.unwrap_or(key.span().start), message))
    });
    entries.collect()
}

/// What is wrong, with the offset of the field.
type FieldProblem = (Option<usize>, String);

fn parse_entry(name: SecretName, fields: &DeTable<'_>) -> Result<SecretEntry, FieldProblem> {
    let (mut source, mut hosts, mut skills) = (None, BTreeSet::new(), Vec::new());
    let mut injection = SecretInjection::default();
    for (key, value) in fields {
        let offset = Some(key.span().start);
        let in_field = |message: String| (offset, format!("secrets.{name}: {message}"));
        let texts =
            || list_of_texts(value.get_ref()).ok_or_else(|| in_field(format!("`{}` is not text", key.get_ref())));
        match key.get_ref().as_ref() {
            "from" => source = Some(SecretSource::parse(&single(texts()?)).map_err(in_field)?),
            "hosts" => {
                for host in texts()? {
                    hosts.insert(HostPort::parse(host).map_err(|error| in_field(error.to_string()))?);
                }
            }
            "skills" => {
                for skill in texts()? {
                    skills.push(parse_selector(skill).map_err(in_field)?);
                }
            }
            "inject" => {
                injection = match &*single(texts()?) {
                    "header" => SecretInjection::Header,
                    "env" => SecretInjection::Env,
                    _ => return Err(in_field("`inject` is `header` or `env`".to_owned())),
                }
            }
            other => {
                let message = format!("unknown key `{other}`; a secret has `from`, `hosts`, `skills` and `inject`");
                return Err(in_field(message));
            }
        }
    }
    let missing = |message: &str| (None, format!("secrets.{name}: {message}"));
    let Some(source) = source else {
        return Err(missing("`from` is missing"));
    };
    if hosts.is_empty() && injection == SecretInjection::Header {
        return Err(missing("`hosts` is missing: name the hosts that may receive the value"));
    }
    Ok(SecretEntry {
        name,
        source,
        hosts,
        skills,
        injection,
    })
}

fn parse_selector(text: &str) -> Result<SkillSelector, String> {
    if text.starts_with("sha256:") {
        return Digest::parse(text)
            .map(SkillSelector::Digest)
            .map_err(|error| error.to_string());
    }
    SkillName::parse(text)
        .map(SkillSelector::Name)
        .map_err(|error| error.to_string())
}

/// The text of a field that is not a list; a list has no meaning there.
fn single(texts: Vec<&str>) -> String {
    match texts.as_slice() {
        [text] => (*text).to_owned(),
        _ => String::new(),
    }
}

fn list_of_texts<'v>(value: &'v DeValue<'_>) -> Option<Vec<&'v str>> {
    match value {
        DeValue::String(text) => Some(vec![text]),
        DeValue::Array(items) => items
            .iter()
            .map(|item| match item.get_ref() {
                DeValue::String(text) => Some(&**text),
                _ => None,
            })
            .collect(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<SecretEntry>, String> {
        let document = DeTable::parse(text).unwrap();
        let (_, value) = document.get_ref().iter().next().unwrap();
        let parsed = parse_secrets(value).map_err(|problem| format!("{} {}", problem.offset, problem.message))?;
        Ok(parsed.into_iter().map(|(_, entry)| entry).collect())
    }

    #[test]
    fn a_table_is_one_secret() {
        let entries = parse(
            "[secrets.API_TOKEN]\nfrom = \"env:TOKEN\"\nhosts = [\"api.example.com\"]\nskills = [\"weather\"]\n\
             [secrets.OTHER]\nfrom = \"command:pass show other\"\ninject = \"env\"\n",
        )
        .unwrap();
        assert_eq!(entries[0].source, SecretSource::Variable("TOKEN".to_owned()));
        assert_eq!(entries[0].injection, SecretInjection::Header);
        assert_eq!(entries[0].hosts.first().unwrap().to_string(), "api.example.com:443");
        assert_eq!(entries[1].source.to_string(), "command");
        assert_eq!(entries[1].injection, SecretInjection::Env);
    }

    #[test]
    fn errors_name_the_secret_and_never_the_text_of_from() {
        for (text, expected) in [
            ("[secrets.A]\nhosts = [\"a.example\"]", "9 secrets.A: `from` is missing"),
            ("[secrets.A]\nfrom = \"env:A\"", "9 secrets.A: `hosts` is missing"),
            (
                "[secrets.A]\nfrom = \"hunter2hunter2\"",
                "12 secrets.A: `from` is not `env:VARIABLE`",
            ),
            ("[secrets.A]\nfrom = \"file:relative\"", "12 secrets.A: `from` is not"),
            (
                "[secrets.A]\nfrom = \"env:A\"\ninject = \"file\"",
                "27 secrets.A: `inject` is",
            ),
            ("[secrets.A]\nvalue = \"x\"", "12 secrets.A: unknown key `value`"),
            (
                "[secrets.\"A-B\"]\nfrom = \"env:A\"",
                "9 \"A-B\" is not the name of a secret",
            ),
            ("secrets = \"x\"", "10 `secrets` is not a table"),
            ("[secrets]\nA = \"x\"", "10 `secrets.A` is not a table"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(expected) && !error.contains("hunter2"), "{error}");
        }
    }
}
