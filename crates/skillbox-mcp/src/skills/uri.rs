//! URIs of skills and their files: `skill://NAME/PATH`.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use rmcp::ErrorData;
use skillbox_model::RelPath;

pub(crate) const SKILL_SCHEME: &str = "skill://";
/// The spelling in the protocol, whatever the case of the name on disk.
pub(crate) const SKILL_MD: &str = "SKILL.md";

/// The characters to be escaped: all but the unreserved ones.
const ESCAPED_CHARS: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The URI of a skill, or of a file or directory in it if it has a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SkillUri {
    pub skill: String,
    pub path: Option<RelPath>,
}

impl SkillUri {
    /// Parses a URI. The error for a URI that cannot name a file of a skill is that of an unknown resource.
    pub(crate) fn parse(uri: &str) -> Result<Self, ErrorData> {
        let unknown = || unknown_resource(uri);
        let rest = uri.strip_prefix(SKILL_SCHEME).ok_or_else(unknown)?;
        let (skill, path) = match rest.split_once('/') {
            None => (rest, None),
            Some((skill, path)) => (skill, Some(path)),
        };
        let skill = percent_decode_str(skill).decode_utf8().map_err(|_| unknown())?;
        let path = path.map(|path| {
            let bytes: Vec<u8> = percent_decode_str(path).collect();
            RelPath::parse(bytes).map_err(|_| unknown())
        });
        if skill.is_empty() {
            return Err(unknown());
        }
        Ok(Self {
            skill: skill.into_owned(),
            path: path.transpose()?,
        })
    }
}

/// The error for a URI without a resource.
pub(crate) fn unknown_resource(uri: &str) -> ErrorData {
    ErrorData::invalid_params(
        format!("unknown resource {uri:?}"),
        Some(serde_json::json!({"uri": uri})),
    )
}

/// The URI of a file or directory of a skill.
pub(crate) fn file_uri(skill: &str, path: &RelPath) -> String {
    let mut uri = skill_uri(skill);
    for component in path.components() {
        uri.push('/');
        uri.extend(percent_encode(component, ESCAPED_CHARS));
    }
    uri
}

/// The URI of a skill's own directory.
pub(crate) fn skill_uri(skill: &str) -> String {
    format!("{SKILL_SCHEME}{}", percent_encode(skill.as_bytes(), ESCAPED_CHARS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_the_round_trip() {
        for path in ["SKILL.md", "scripts/a b.py", "references/ü%.md", "x/?#"] {
            let path = RelPath::parse(path).unwrap();
            let uri = file_uri("my skill", &path);
            assert!(uri.is_ascii() && !uri.contains(' '), "{uri}");
            let parsed = SkillUri::parse(&uri).unwrap();
            assert_eq!((parsed.skill.as_str(), parsed.path), ("my skill", Some(path)));
        }
        assert_eq!(SkillUri::parse("skill://a").unwrap().path, None);
    }

    #[test]
    fn uris_that_lead_out_of_a_skill_are_refused() {
        for uri in [
            "skill://a/../b",
            "skill://a/%2e%2e/b",
            "skill:///x",
            "file:///etc/passwd",
            "skill://a//x",
            "skill://a/",
        ] {
            assert!(SkillUri::parse(uri).is_err(), "{uri}");
        }
    }
}
