//! From what a caller wrote to what a tool takes, with the wrong argument named.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::loader_error::LoaderError;

/// The arguments of one call, not yet read.
#[derive(Clone, Copy, Debug)]
pub struct CallArguments<'a> {
    /// The tool, as the caller knows it.
    pub tool: &'static str,
    /// What the caller wrote.
    pub value: &'a Value,
}

impl CallArguments<'_> {
    /// Reads them as what the tool takes. A call without arguments means an empty object.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, LoaderError> {
        let empty = json!({});
        let value = if self.value.is_null() { &empty } else { self.value };
        serde_path_to_error::deserialize(value).map_err(|error| LoaderError::WrongArguments {
            tool: self.tool,
            field: wrong_field(&error),
            source: error.into_inner(),
        })
    }
}

/// The field that is wrong. A path ends above one that is missing, unknown or there twice; the message then names it.
/// None where nothing in particular is wrong.
pub fn wrong_field(error: &serde_path_to_error::Error<serde_json::Error>) -> Option<String> {
    let path = error.path().to_string();
    let above = (path != "." && path != "?").then_some(path);
    let message = error.inner().to_string();
    let named = ["missing field `", "unknown field `", "duplicate field `"]
        .iter()
        .find_map(|start| message.strip_prefix(start)?.split('`').next().map(str::to_owned));
    match (above, named) {
        (Some(above), Some(named)) if above != named && !above.ends_with(&format!(".{named}")) => {
            Some(format!("{above}.{named}"))
        }
        (above, named) => above.or(named),
    }
}

#[cfg(test)]
mod tests {
    use skillbox_model::RunRequest;

    use super::*;

    #[test]
    fn the_wrong_argument_is_named() {
        let check = |value: Value, expected: Option<&str>| {
            let arguments = CallArguments {
                tool: "skill_run",
                value: &value,
            };
            let Err(LoaderError::WrongArguments { field, .. }) = arguments.parse::<RunRequest>() else {
                panic!("{value} was taken");
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
