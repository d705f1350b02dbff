//! The destination of an input in the workspace.

use skillbox_model::{ErrorCode, RelPath, RunId};

use super::variables::{self, ResolvedPath};
use super::{InputRef, RequestError};
use crate::layout;

/// The directories of the workspace that may contain inputs.
const WRITABLE_DIRECTORIES: [&str; 5] = [layout::WORK, layout::OUT, layout::RUNS, layout::HOME, layout::TMP];

/// Determines the destination of one input: a path in one of the writable directories of the workspace.
pub(super) fn parse(to: Option<&str>, from: &InputRef, run_id: &RunId, field: &str) -> Result<RelPath, RequestError> {
    let escape = |message: String| RequestError::new(field, ErrorCode::PathEscape, message);
    let base_name = || {
        from.base_name()
            .ok_or_else(|| RequestError::invalid(field, "the source has no file name to use").with_hint("give `to`"))
    };
    let text = match to {
        None | Some("inputs" | "inputs/") => format!("{}/{}", layout::INPUTS, base_name()?),
        Some("") => return Err(RequestError::invalid(field, "the destination is empty")),
        Some(typed) => {
            let resolved = match variables::resolve_prefix(typed, run_id) {
                ResolvedPath::Plain(plain) => match plain.strip_prefix("inputs/") {
                    Some(rest) => variables::join(layout::INPUTS, rest),
                    None if is_plain_name(plain) => variables::join(layout::INPUTS, plain),
                    None => plain.to_owned(),
                },
                ResolvedPath::Below { directory, rest } => variables::join(&directory, rest),
                ResolvedPath::UnknownVariable(text) => {
                    return Err(RequestError::invalid(
                        field,
                        format!("{text:?} starts with an unknown variable"),
                    ));
                }
            };
            // A trailing slash names a directory. The file in it gets the name of the source.
            if typed.ends_with('/') {
                format!("{resolved}{}", base_name()?)
            } else {
                resolved
            }
        }
    };
    let path = RelPath::parse_user_input(&text).map_err(|error| RequestError::invalid_path(field, &error))?;
    let first = path.components().next().unwrap_or_default();
    if first == layout::SKILLS.as_bytes() {
        return Err(escape(format!(
            "{text:?} would overwrite files of a skill, which are read-only"
        )));
    }
    if !WRITABLE_DIRECTORIES
        .iter()
        .any(|directory| directory.as_bytes() == first)
    {
        let message = format!("{text:?} is not below one of {}", WRITABLE_DIRECTORIES.join(", "));
        return Err(RequestError::invalid(field, message).with_hint("write `inputs/NAME` for work/inputs/NAME"));
    }
    if WRITABLE_DIRECTORIES
        .iter()
        .any(|directory| directory.as_bytes() == path.as_bytes())
        || text == layout::INPUTS
    {
        return Err(RequestError::invalid(
            field,
            format!("{text:?} is a directory of the workspace itself"),
        ));
    }
    Ok(path)
}

/// Whether a destination is a name without a directory, such as `data.csv` or `venv/`. The names of the workspace's own
/// directories are not.
fn is_plain_name(text: &str) -> bool {
    let name = text.strip_suffix('/').unwrap_or(text);
    let is_directory = WRITABLE_DIRECTORIES.contains(&name) || name == layout::SKILLS;
    !is_directory && !name.contains('/') && !matches!(name, "" | "." | "..")
}

/// Rejects two inputs with the same destination, and a destination below the destination of another input.
pub(super) fn refuse_collisions(destinations: &[&RelPath]) -> Result<(), RequestError> {
    for (index, path) in destinations.iter().enumerate() {
        let collision = destinations[..index]
            .iter()
            .position(|earlier| path.starts_with(earlier) || earlier.starts_with(path));
        if let Some(earlier) = collision {
            let message = format!(
                "{path:?} collides with inputs[{earlier}].to {:?}",
                destinations[earlier]
            );
            return Err(RequestError::invalid(format!("inputs[{index}].to"), message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(text: Option<&str>) -> Result<String, RequestError> {
        let from = InputRef::parse("host:///data/notes.txt", "from").unwrap();
        parse(text, &from, &RunId::parse("r1").unwrap(), "inputs[0].to").map(|path| path.to_string())
    }

    #[test]
    fn destinations_follow_the_documented_defaults() {
        for (text, expected) in [
            (None, "work/inputs/notes.txt"),
            (Some("inputs"), "work/inputs/notes.txt"),
            (Some("inputs/m.txt"), "work/inputs/m.txt"),
            (Some("venv"), "work/inputs/venv"),
            (Some("data/"), "work/inputs/data/notes.txt"),
            (Some("work/a/b"), "work/a/b"),
            (Some("work/a/"), "work/a/notes.txt"),
            (Some("$WORK_DIR/x"), "work/x"),
            (Some("${RUN_DIR}/x"), "runs/r1/x"),
            (Some("/workspace/home/.netrc"), "home/.netrc"),
        ] {
            assert_eq!(to(text).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn destinations_that_leave_or_overwrite_are_refused() {
        for text in [
            "../../x",
            "/abs/x",
            "work/../../x",
            "a//../..//x",
            "work/x/..",
            "skills",
            "skills/x",
            "$SKILLS_DIR/x",
            "..",
            "/workspace/../x",
        ] {
            assert_eq!(to(Some(text)).unwrap_err().code, ErrorCode::PathEscape, "{text}");
        }
        for text in [
            "",
            "work",
            "out",
            "work/inputs",
            "elsewhere/x",
            "$HOME/x",
            "work//x",
            "work/\0",
        ] {
            let error = to(Some(text)).unwrap_err();
            assert_eq!(
                (error.code, error.field.as_str()),
                (ErrorCode::InvalidRequest, "inputs[0].to"),
                "{text}"
            );
        }
    }

    #[test]
    fn collisions_name_the_later_input() {
        let path = |text: &str| RelPath::parse(text).unwrap();
        let (a, b, below) = (path("work/a"), path("work/b"), path("work/a/x"));
        assert!(refuse_collisions(&[&a, &b]).is_ok());
        assert_eq!(refuse_collisions(&[&a, &b, &a]).unwrap_err().field, "inputs[2].to");
        assert!(refuse_collisions(&[&below, &a]).is_err());
        assert!(refuse_collisions(&[&a, &below]).is_err());
    }
}
