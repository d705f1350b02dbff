//! `skill://NAME/PATH`: the name of a skill, and a file or directory of it.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use rmcp::ErrorData;
use skillbox_model::RelPath;

pub(crate) const SCHEME: &str = "skill://";
/// The one spelling on the wire, whatever the file on disk is called.
pub(crate) const SKILL_MD: &str = "SKILL.md";

/// Everything but what a URI carries as it is.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What a URI names; a skill itself where there is no path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SkillUri {
    pub skill: String,
    pub path: Option<RelPath>,
}

impl SkillUri {
    /// Parses a URI; one that names nothing that could be ours is a wrong parameter.
    pub(crate) fn parse(uri: &str) -> Result<Self, ErrorData> {
        let unknown = || unknown(uri);
        let rest = uri.strip_prefix(SCHEME).ok_or_else(unknown)?;
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

/// The error of every URI that names nothing.
pub(crate) fn unknown(uri: &str) -> ErrorData {
    ErrorData::invalid_params(
        format!("unknown resource {uri:?}"),
        Some(serde_json::json!({"uri": uri})),
    )
}

/// The URI of a file or directory of a skill.
pub(crate) fn uri_of(skill: &str, path: &RelPath) -> String {
    let mut uri = uri_of_skill(skill);
    for component in path.components() {
        uri.push('/');
        uri.extend(percent_encode(component, ENCODED));
    }
    uri
}

/// The URI of a skill's own directory.
pub(crate) fn uri_of_skill(skill: &str) -> String {
    format!("{SCHEME}{}", percent_encode(skill.as_bytes(), ENCODED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_the_way_there_and_back() {
        for path in ["SKILL.md", "scripts/a b.py", "references/ü%.md", "x/?#"] {
            let path = RelPath::parse(path).unwrap();
            let uri = uri_of("my skill", &path);
            assert!(uri.is_ascii() && !uri.contains(' '), "{uri}");
            let back = SkillUri::parse(&uri).unwrap();
            assert_eq!((back.skill.as_str(), back.path), ("my skill", Some(path)));
        }
        assert_eq!(SkillUri::parse("skill://a").unwrap().path, None);
    }

    #[test]
    fn what_leads_elsewhere_names_nothing() {
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
