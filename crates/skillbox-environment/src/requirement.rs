//! One requirement of Python: a package of a registry, its versions and its conditions (the grammar of "dependency
//! specifiers" of packaging.python.org, without direct references).

/// A checked requirement. It names a package of a registry and nothing else: no URL, no path, no option.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requirement {
    /// The normalized name: lower case, with `-` for each run of `-`, `_` and `.`.
    pub name: String,
    /// The requirement as pip reads it, without hashes.
    pub text: String,
    /// Expected hashes, `sha256:` and hexadecimal digits.
    pub hashes: Vec<String>,
}

/// Why a text is not a requirement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequirementError {
    /// It names a URL or a repository.
    #[error("a URL or a repository; only packages of a registry are allowed")]
    Url,
    /// It names a file or a directory.
    #[error("a path; only packages of a registry are allowed")]
    Path,
    /// It is no requirement.
    #[error("not a requirement such as `numpy==2.1.0`")]
    Syntax,
    /// It is too long.
    #[error("longer than {MAX_BYTES} bytes")]
    TooLong,
}

/// The longest requirement. Those of public skills have at most 200 bytes.
const MAX_BYTES: usize = 2048;

const OPERATORS: [&str; 8] = ["===", "==", "~=", "!=", "<=", ">=", "<", ">"];

impl Requirement {
    /// Parses a requirement without hashes.
    pub fn parse(text: &str) -> Result<Self, RequirementError> {
        let text = text.trim();
        if text.len() > MAX_BYTES {
            return Err(RequirementError::TooLong);
        }
        let (specifier, marker) = match text.split_once(';') {
            Some((specifier, marker)) => (specifier.trim(), Some(marker.trim())),
            None => (text, None),
        };
        if is_url(specifier) {
            return Err(RequirementError::Url);
        }
        if is_path(specifier) {
            return Err(RequirementError::Path);
        }
        let end = specifier
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')))
            .unwrap_or(specifier.len());
        let (name, rest) = specifier.split_at(end);
        if !is_name(name) || !marker.is_none_or(is_marker) {
            return Err(RequirementError::Syntax);
        }
        let (extras, versions) = split_extras(rest.trim()).ok_or(RequirementError::Syntax)?;
        let versions = versions
            .strip_prefix('(')
            .and_then(|inner| inner.strip_suffix(')'))
            .unwrap_or(versions)
            .trim();
        if !versions.is_empty() && !versions.split(',').all(|clause| is_version_clause(clause.trim())) {
            return Err(RequirementError::Syntax);
        }
        let versions: String = versions.split_whitespace().collect();
        let extras = if extras.is_empty() {
            String::new()
        } else {
            format!("[{}]", extras.join(","))
        };
        let marker = marker.map(|marker| format!(" ; {marker}")).unwrap_or_default();
        Ok(Self {
            name: normalized_name(name),
            text: format!("{name}{extras}{versions}{marker}"),
            hashes: Vec::new(),
        })
    }

    /// The line of a requirements file.
    pub fn to_line(&self) -> String {
        let hashes: String = self.hashes.iter().map(|hash| format!(" --hash={hash}")).collect();
        format!("{}{hashes}", self.text)
    }
}

/// The name of a package as registries compare it.
pub fn normalized_name(name: &str) -> String {
    let mut normalized = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '-' | '_' | '.' if normalized.ends_with('-') => {}
            '-' | '_' | '.' => normalized.push('-'),
            c => normalized.push(c.to_ascii_lowercase()),
        }
    }
    normalized
}

fn is_name(name: &str) -> bool {
    let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    name.len() <= 128 && is_end(name.chars().next()) && is_end(name.chars().last())
}

fn is_url(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let schemes = ["git+", "hg+", "svn+", "bzr+", "file:", "git@"];
    lower.contains("://") || lower.contains('@') || schemes.iter().any(|scheme| lower.starts_with(scheme))
}

fn is_path(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let archives = [".whl", ".tar.gz", ".tgz", ".tar.bz2", ".zip", ".tar.xz"];
    text.starts_with(['.', '/', '~', '\\'])
        || text.contains(['/', '\\'])
        || archives.iter().any(|archive| lower.ends_with(archive))
}

/// Splits `[a,b] >=1` into its extras and the rest.
fn split_extras(text: &str) -> Option<(Vec<String>, &str)> {
    let Some(inner) = text.strip_prefix('[') else {
        return Some((Vec::new(), text));
    };
    let (extras, rest) = inner.split_once(']')?;
    let extras: Vec<String> = extras.split(',').map(|extra| extra.trim().to_owned()).collect();
    let is_valid = extras.iter().all(|extra| {
        is_name(extra)
            && extra
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    });
    is_valid.then_some((extras, rest.trim()))
}

fn is_version_clause(clause: &str) -> bool {
    let Some(operator) = OPERATORS.iter().find(|operator| clause.starts_with(**operator)) else {
        return false;
    };
    let version = clause[operator.len()..].trim();
    !version.is_empty()
        && version
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '*' | '+' | '!'))
}

/// Whether the text has only the characters of a marker. pip checks its grammar.
fn is_marker(marker: &str) -> bool {
    let is_character = |c: char| c.is_ascii_alphanumeric() || " ._-+*'\"<>=!~(),".contains(c);
    !marker.is_empty() && marker.chars().all(is_character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_of_a_registry_are_read() {
        for (text, name, expected) in [
            ("numpy", "numpy", "numpy"),
            ("  NumPy >= 1.2 , <3 ", "numpy", "NumPy>=1.2,<3"),
            ("ruamel.yaml==0.18.*", "ruamel-yaml", "ruamel.yaml==0.18.*"),
            ("a__b.-c", "a-b-c", "a__b.-c"),
            (
                "requests[socks, use_chardet]~=2.0",
                "requests",
                "requests[socks,use_chardet]~=2.0",
            ),
            ("six (>=1.0)", "six", "six>=1.0"),
            (
                "tomli; python_version < '3.11'",
                "tomli",
                "tomli ; python_version < '3.11'",
            ),
            ("x===1.0+local", "x", "x===1.0+local"),
        ] {
            let requirement = Requirement::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(
                (requirement.name.as_str(), requirement.text.as_str()),
                (name, expected),
                "{text}"
            );
        }
    }

    #[test]
    fn nothing_else_is() {
        use RequirementError::{Path, Syntax, Url};
        for (text, expected) in [
            ("x @ https://example.org/x.whl", Url),
            ("https://example.org/x.whl", Url),
            ("git+ssh://example.org/x", Url),
            ("file:x", Url),
            ("./x", Path),
            ("/opt/x", Path),
            ("..", Path),
            ("~/x", Path),
            ("dist/x.whl", Path),
            ("x.whl", Path),
            ("x-1.0.tar.gz", Path),
            ("a\\b", Path),
            ("", Syntax),
            ("-e", Syntax),
            ("--index-url", Syntax),
            ("${HOME}", Syntax),
            ("x==", Syntax),
            ("x 1.0", Syntax),
            ("x==1.0 --global-option=x", Syntax),
            ("x[a", Syntax),
            ("x; `id`", Syntax),
            ("x;", Syntax),
            ("x\ny", Syntax),
            ("é", Syntax),
        ] {
            assert_eq!(Requirement::parse(text), Err(expected), "{text:?}");
        }
        assert_eq!(Requirement::parse(&"a".repeat(3000)), Err(RequirementError::TooLong));
    }
}
