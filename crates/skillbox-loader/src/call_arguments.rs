//! Parses the arguments of a tool call and names the argument that is invalid.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::loader_error::LoaderError;

/// The unparsed arguments of one call.
#[derive(Clone, Copy, Debug)]
pub struct CallArguments<'a> {
    /// The name under which the caller knows the tool.
    pub tool: &'static str,
    /// The JSON value that the caller sent.
    pub value: &'a Value,
}

impl CallArguments<'_> {
    /// Parses the arguments into the tool's input type. A call without arguments counts as an empty object.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, LoaderError> {
        let empty = json!({});
        let value = if self.value.is_null() { &empty } else { self.value };
        serde_path_to_error::deserialize(value).map_err(|error| LoaderError::InvalidArguments {
            tool: self.tool,
            field: find_invalid_field(&error),
            source: error.into_inner(),
        })
    }
}

/// Finds the field that a deserialisation error is about, if it is about one.
///
/// For a missing, unknown or duplicate field, the error's path ends at the parent; serde's message names the field.
pub fn find_invalid_field(error: &serde_path_to_error::Error<serde_json::Error>) -> Option<String> {
    let path = error.path().to_string();
    let parent = (path != "." && path != "?").then_some(path);
    let message = error.inner().to_string();
    let named = ["missing field `", "unknown field `", "duplicate field `"]
        .iter()
        .find_map(|start| message.strip_prefix(start)?.split('`').next().map(str::to_owned));
    match (parent, named) {
        (Some(parent), Some(named)) if parent != named && !parent.ends_with(&format!(".{named}")) => {
            Some(format!("{parent}.{named}"))
        }
        (parent, named) => parent.or(named),
    }
}

#[cfg(test)]
mod tests {
    use skillbox_model::RunRequest;

    use super::*;

    #[test]
    fn errors_name_the_invalid_argument() {
        let check = |value: Value, expected: Option<&str>| {
            let arguments = CallArguments {
                tool: "skill_run",
                value: &value,
            };
            let Err(LoaderError::InvalidArguments { field, .. }) = arguments.parse::<RunRequest>() else {
                panic!("{value} was accepted");
            };
            assert_eq!(field.as_deref(), expected, "{value}");
        };
        check(json!({"skill": 7}), Some("skill"));
        check(json!({"command": "x"}), Some("skill"));
        check(json!({"skill": "s", "comand": "x"}), Some("comand"));
        check(
            json!({"skill": "s", "inputs": [{"from": "a"}, {}]}),
            Some("inputs[1].from"),
        );
        check(
            json!({"skill": "s", "inputs": [{"from": "a", "form": 1}]}),
            Some("inputs[0].form"),
        );
        check(
            json!({"skill": "s", "inputs": [{"from": "a", "mode": "move"}]}),
            Some("inputs[0].mode"),
        );
        check(json!({"skill": "s", "env": {"A": 1}}), Some("env.A"));
        check(json!([]), None);
    }
}
