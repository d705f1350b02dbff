//! The source of an input.

use std::path::PathBuf;

use skillbox_model::{ErrorCode, RelPath};

use super::{DataUrl, RequestError};

/// The source of an input. There are five kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputRef {
    /// A stored artifact: `name` or `name@version`. Not parsed here, because only the store knows the syntax of its
    /// names.
    Artifact(String),
    /// An absolute path of the host. Only paths below the directories in the settings are allowed.
    Host(PathBuf),
    /// A path in the session's workspace.
    Workspace(RelPath),
    /// A file or directory of a skill.
    Skill {
        /// The skill.
        skill: String,
        /// The path inside the skill; none for the whole skill.
        path: Option<RelPath>,
    },
    /// Content that is part of the request.
    Data(DataUrl),
}

const HOST_HINT: &str = "write three slashes: host:///absolute/path";

impl InputRef {
    /// Parses a reference. Errors name `field`.
    pub fn parse(text: &str, field: &str) -> Result<Self, RequestError> {
        let supported = "use artifact://name[@version], host:///abs/path, workspace://rel, skill://name/rel or data:";
        if let Some(data) = DataUrl::parse(text, field) {
            return data.map(Self::Data);
        }
        let (scheme, rest) = text
            .split_once("://")
            .ok_or_else(|| RequestError::invalid(field, format!("{text:?} has no scheme; {supported}")))?;
        if rest.contains('\0') {
            return Err(RequestError::invalid(field, "a reference contains a NUL byte"));
        }
        let path =
            |rest: &str| RelPath::parse_user_input(rest).map_err(|error| RequestError::invalid_path(field, &error));
        match scheme {
            "artifact" if rest.is_empty() => Err(RequestError::invalid(field, "artifact:// is not followed by a name")),
            "artifact" => Ok(Self::Artifact(rest.to_owned())),
            "host" => {
                let Some(inner) = rest.strip_prefix('/') else {
                    let message = format!("{text:?} is not an absolute path of the host");
                    return Err(RequestError::invalid(field, message).with_hint(HOST_HINT));
                };
                if inner.split('/').any(|part| part == "..") {
                    let message = format!("{text:?} contains `..`");
                    return Err(RequestError::new(field, ErrorCode::PathEscape, message));
                }
                Ok(Self::Host(PathBuf::from(rest)))
            }
            "workspace" => Ok(Self::Workspace(path(rest)?)),
            "skill" => {
                let (skill, inner) = rest.split_once('/').unwrap_or((rest, ""));
                if skill.is_empty() {
                    return Err(RequestError::invalid(field, "skill:// is not followed by a skill name"));
                }
                let path = if inner.trim_matches('/').is_empty() {
                    None
                } else {
                    Some(path(inner)?)
                };
                Ok(Self::Skill {
                    skill: skill.to_owned(),
                    path,
                })
            }
            _ => Err(RequestError::invalid(
                field,
                format!("the scheme {scheme:?} is unknown; {supported}"),
            )),
        }
    }

    /// The file name that the input gets if the request contains none.
    pub fn base_name(&self) -> Option<String> {
        let text = match self {
            Self::Artifact(reference) => {
                let name = match reference.rsplit_once('@') {
                    Some((name, digits)) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => name,
                    _ => reference,
                };
                name.rsplit('/').next()?.to_owned()
            }
            Self::Host(path) => path.file_name()?.to_str()?.to_owned(),
            Self::Workspace(path) => String::from_utf8(path.file_name().to_vec()).ok()?,
            Self::Skill { skill, path: None } => skill.clone(),
            Self::Skill { path: Some(path), .. } => String::from_utf8(path.file_name().to_vec()).ok()?,
            Self::Data(_) => return None,
        };
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheme_is_parsed() {
        let parse = |text| InputRef::parse(text, "inputs[0].from");
        assert_eq!(parse("artifact://a/b@1").unwrap().base_name().as_deref(), Some("b"));
        assert_eq!(parse("host:///etc/hosts").unwrap(), InputRef::Host("/etc/hosts".into()));
        assert_eq!(parse("workspace://out/x").unwrap().base_name().as_deref(), Some("x"));
        assert_eq!(
            parse("skill://pdf/a/b.txt").unwrap().base_name().as_deref(),
            Some("b.txt")
        );
        assert_eq!(parse("skill://pdf").unwrap().base_name().as_deref(), Some("pdf"));
    }

    #[test]
    fn errors_name_the_field_and_a_hint() {
        let error = InputRef::parse("host://etc/hosts", "inputs[2].from").unwrap_err();
        assert_eq!(
            (error.field.as_str(), error.hint.as_deref()),
            ("inputs[2].from", Some(HOST_HINT))
        );
        for text in [
            "workspace://../x",
            "skill://a/../../b",
            "host:///a/../b",
            "workspace:///x",
        ] {
            assert_eq!(
                InputRef::parse(text, "f").unwrap_err().code,
                ErrorCode::PathEscape,
                "{text}"
            );
        }
        for text in [
            "x",
            "file:///x",
            "artifact://",
            "skill://",
            "skill:///x",
            "workspace://",
            "host:///a\0b",
        ] {
            assert!(InputRef::parse(text, "f").is_err(), "{text}");
        }
    }
}
