//! Which requests to an allowed host a rule allows: by method and by path.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::HostPort;

/// A request whose path is longer is refused where paths are restricted.
const MAX_PATH_BYTES: usize = 8 << 10;

/// A method of HTTP.
///
/// Invariants: 1 to 32 of `A-Z 0-9 - _`. Methods are case-sensitive (RFC 9110), and those that exist are upper-case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct RequestMethod(Box<str>);

/// A pattern for paths of requests: `/v1/items`, `/v1/items/*` with one part for `*`, or `/v1/**` for everything below
/// `/v1/`.
///
/// Invariants: it begins with `/`, has no empty part but the last, no `.` and `..`, and only characters that a path has
/// after decoding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct PathPattern(Box<str>);

/// The error for a method or a path of a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestRuleError {
    /// Not a method.
    #[error("{0:?} is not a method: upper-case letters are expected, as in GET")]
    Method(String),
    /// Not a pattern for paths.
    #[error("{0:?} is not a path: {1}")]
    Path(String, &'static str),
}

impl RequestMethod {
    /// Parses the text without changing it.
    pub fn parse(text: &str) -> Result<Self, RequestRuleError> {
        let is_valid = text
            .bytes()
            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_'));
        if is_valid && (1..=32).contains(&text.len()) {
            Ok(Self(text.into()))
        } else {
            Err(RequestRuleError::Method(text.chars().take(64).collect()))
        }
    }
}

impl PathPattern {
    /// Parses the text without changing it.
    pub fn parse(text: &str) -> Result<Self, RequestRuleError> {
        let fail = |problem| Err(RequestRuleError::Path(text.chars().take(200).collect(), problem));
        let Some(rest) = text.strip_prefix('/') else {
            return fail("it begins with `/`");
        };
        if text.len() > MAX_PATH_BYTES {
            return fail("it is too long");
        }
        if text.chars().any(|c| is_ambiguous(c) && c != '.') {
            return fail("write it decoded, without `%`, `?`, `#`, `;` and `\\`");
        }
        let parts: Vec<&str> = rest.split('/').collect();
        for (index, part) in parts.iter().enumerate() {
            let is_last = index + 1 == parts.len();
            match *part {
                "" if !is_last => return fail("it contains `//`"),
                "." | ".." => return fail("it contains `.` or `..`"),
                "**" if is_last => {}
                "*" => {}
                part if part.contains('*') => return fail("`*` stands for one whole part, and `/**` for the rest"),
                _ => {}
            }
        }
        Ok(Self(text.into()))
    }

    /// Whether the pattern covers this path.
    pub fn matches(&self, path: &RequestPath) -> bool {
        let mut parts = path.0[1..].split('/');
        for wanted in self.0[1..].split('/') {
            match (wanted, parts.next()) {
                ("**", Some(_)) => return true,
                ("*", Some(part)) if !part.is_empty() => {}
                (wanted, Some(part)) if wanted == part => {}
                _ => return false,
            }
        }
        parts.next().is_none()
    }
}

/// The path of a request, decoded.
///
/// Invariant: every server reads the text as the same path. A path with encoded separators, dots or percent signs, with
/// `//`, `.`, `..` or parameters is not parsed, because servers and what is in front of them disagree about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestPath(String);

impl RequestPath {
    /// Decodes the path of a request, without the query; none if servers could read it in several ways.
    pub fn parse(text: &str) -> Option<Self> {
        if !text.starts_with('/') || text.len() > MAX_PATH_BYTES || text.contains("//") {
            return None;
        }
        let mut decoded = Vec::with_capacity(text.len());
        let mut bytes = text.bytes();
        while let Some(byte) = bytes.next() {
            if byte != b'%' {
                decoded.push(byte);
                continue;
            }
            let mut digit = || bytes.next().and_then(|byte| char::from(byte).to_digit(16));
            let value = u8::try_from(digit()? * 16 + digit()?).ok()?;
            if value == b'/' || (value.is_ascii() && is_ambiguous(char::from(value))) {
                return None;
            }
            decoded.push(value);
        }
        let decoded = String::from_utf8(decoded).ok()?;
        let has_ambiguous_char = decoded.chars().any(|c| is_ambiguous(c) && c != '.');
        let has_dot_part = decoded.split('/').any(|part| matches!(part, "." | ".."));
        (!has_ambiguous_char && !has_dot_part).then_some(Self(decoded))
    }
}

/// Characters that change the meaning of a path if they are decoded once more or once less, or that only some servers
/// treat as separators.
fn is_ambiguous(c: char) -> bool {
    c.is_control() || matches!(c, '.' | '%' | '?' | '#' | ';' | '\\')
}

/// Which requests to a host are allowed. An empty list allows every method or every path.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestRule {
    /// The methods.
    #[serde(default)]
    pub methods: BTreeSet<RequestMethod>,
    /// The paths.
    #[serde(default)]
    pub paths: BTreeSet<PathPattern>,
}

impl RequestRule {
    /// Whether every request is allowed.
    pub fn is_unrestricted(&self) -> bool {
        self.methods.is_empty() && self.paths.is_empty()
    }

    /// Whether the rule allows a request. `path` is none if servers could read it in several ways.
    pub fn allows(&self, method: &str, path: Option<&RequestPath>) -> bool {
        let allows_method = self.methods.is_empty() || self.methods.iter().any(|allowed| &*allowed.0 == method);
        let allows_path =
            self.paths.is_empty() || path.is_some_and(|path| self.paths.iter().any(|pattern| pattern.matches(path)));
        allows_method && allows_path
    }
}

impl fmt::Display for RequestRule {
    /// Such as `GET, HEAD /v1/**`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let methods: Vec<&str> = self.methods.iter().map(|method| &*method.0).collect();
        let paths: Vec<&str> = self.paths.iter().map(|path| &*path.0).collect();
        let methods = (!methods.is_empty()).then(|| methods.join(", "));
        let paths = (!paths.is_empty()).then(|| paths.join(", "));
        f.write_str(&methods.into_iter().chain(paths).collect::<Vec<_>>().join(" "))
    }
}

/// A host that may be reached, and the requests to it that are allowed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostRule {
    /// The host and the port.
    pub host: HostPort,
    /// The requests.
    pub requests: RequestRule,
}

impl From<HostPort> for HostRule {
    /// Allows every request to the host.
    fn from(host: HostPort) -> Self {
        Self {
            host,
            requests: RequestRule::default(),
        }
    }
}

impl TryFrom<String> for RequestMethod {
    type Error = RequestRuleError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<RequestMethod> for String {
    fn from(method: RequestMethod) -> Self {
        method.0.into()
    }
}

impl TryFrom<String> for PathPattern {
    type Error = RequestRuleError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<PathPattern> for String {
    fn from(path: PathPattern) -> Self {
        path.0.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(methods: &[&str], paths: &[&str]) -> RequestRule {
        RequestRule {
            methods: methods.iter().map(|text| RequestMethod::parse(text).unwrap()).collect(),
            paths: paths.iter().map(|text| PathPattern::parse(text).unwrap()).collect(),
        }
    }

    #[test]
    fn a_rule_allows_its_methods_and_paths_only() {
        let rule = rule(&["GET", "HEAD"], &["/v1/items", "/v1/items/*", "/open/**"]);
        let allows = |method: &str, path: &str| rule.allows(method, RequestPath::parse(path).as_ref());
        for (method, path) in [
            ("GET", "/v1/items"),
            ("HEAD", "/v1/items/7"),
            ("GET", "/v1/%69tems/a%20b"),
            ("GET", "/open/"),
            ("GET", "/open/a/b.json"),
            ("GET", "/v1/items/caf%C3%A9"),
        ] {
            assert!(allows(method, path), "{method} {path}");
        }
        for (method, path) in [
            ("POST", "/v1/items"),
            ("get", "/v1/items"),
            ("GET", "/v1/items/"),
            ("GET", "/v1/items/7/secrets"),
            ("GET", "/v1/Items"),
            ("GET", "/open"),
            ("GET", "/opened"),
            ("GET", "/"),
        ] {
            assert!(!allows(method, path), "{method} {path}");
        }
        assert_eq!(rule.to_string(), "GET, HEAD /open/**, /v1/items, /v1/items/*");
    }

    #[test]
    fn paths_that_servers_read_differently_are_not_parsed() {
        for path in [
            "",
            "*",
            "v1",
            "//evil.example/",
            "/open//x",
            "/open/../admin",
            "/open/./x",
            "/open/..",
            "/open/%2e%2e/admin",
            "/open/%2E./admin",
            "/open/.%2e/admin",
            "/open%2fadmin",
            "/open/%2Fadmin",
            "/open/%5cadmin",
            "/open/..\\admin",
            "/open/..;/admin",
            "/open/x;v=1",
            "/open/%3b",
            "/open/%252e%252e/admin",
            "/open/%00",
            "/open/%0a",
            "/open/%3fx",
            "/open/%23x",
            "/open/%",
            "/open/%4",
            "/open/%zz",
            "/open/%+1",
            "/open/%ff",
            "/open/\u{7f}",
        ] {
            assert_eq!(RequestPath::parse(path), None, "{path}");
        }
        // A control: the same rule allows an unambiguous path below the same directory.
        assert!(rule(&[], &["/open/**"]).allows("GET", RequestPath::parse("/open/admin").as_ref()));
        assert!(!rule(&[], &["/open/**"]).allows("GET", None));
        assert!(rule(&["GET"], &[]).allows("GET", None));
    }

    #[test]
    fn methods_and_patterns_are_checked() {
        for bad in ["", "get", "GET ", "G/T", "É", &"A".repeat(33)] {
            assert!(RequestMethod::parse(bad).is_err(), "{bad:?}");
        }
        for bad in [
            "", "v1", "/a//b", "/a/../b", "/a/.", "/a/b*", "/**/b", "/a/***", "/a%20b", "/a?b", "/a#b", "/a;b",
            "/a\\b", "/a\n",
        ] {
            assert!(PathPattern::parse(bad).is_err(), "{bad:?}");
        }
        for good in ["/", "/**", "/a", "/a/", "/a/*", "/a/*/b", "/a/**", "/a.b/c", "/a b"] {
            assert!(PathPattern::parse(good).is_ok(), "{good:?}");
        }
    }
}
