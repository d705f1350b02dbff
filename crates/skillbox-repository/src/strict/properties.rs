//! `read-properties`: the fields of a skill as the reference tool prints them.

use std::path::Path;

use super::python_format::{strip_terminal_escapes, to_json};
use super::skill_md::{Fields, find_skill_md, get_field, non_blank_text, read_fields, skill_directory};
use super::value::Value;
use crate::parse::python_strip;

/// Returns the properties as JSON without a final newline. An error is the text that the reference tool prints after
/// `Error: `.
pub fn read_properties(path: &Path) -> Result<String, String> {
    properties_json(&skill_directory(path)).map_err(|error| strip_terminal_escapes(&error))
}

fn properties_json(directory: &Path) -> Result<String, String> {
    let properties = Properties::read(directory)?;
    let mut object = vec![
        ("name".to_owned(), Value::Text(properties.name)),
        ("description".to_owned(), Value::Text(properties.description)),
    ];
    for name in ["license", "compatibility", "allowed-tools", "metadata"] {
        match properties.fields.iter().find(|(key, _)| key == name) {
            Some((_, value)) if name == "metadata" && is_empty(value) => {}
            Some((key, value)) => object.push((key.clone(), value.clone())),
            None => {}
        }
    }
    Ok(to_json(&Value::Map(object)))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Text(text) | Value::NonText(text) => text.is_empty(),
        Value::List(items) => items.is_empty(),
        Value::Map(pairs) => pairs.is_empty(),
    }
}

/// The properties that `read-properties` and `to-prompt` use. The rules of `validate` do not apply.
pub(super) struct Properties {
    pub name: String,
    pub description: String,
    fields: Fields,
}

impl Properties {
    /// Reads the skill in a directory.
    pub(super) fn read(directory: &Path) -> Result<Self, String> {
        let skill_md =
            find_skill_md(directory).ok_or_else(|| format!("SKILL.md not found in {}", directory.display()))?;
        let fields = read_fields(&skill_md)?;
        let required = |name: &str| {
            get_field(&fields, name).ok_or_else(|| format!("Missing required field in frontmatter: {name}"))
        };
        let (name, description) = (required("name")?, required("description")?);
        let require_text = |name: &str, value: &Value| {
            let text = non_blank_text(value).map(|text| python_strip(text).to_owned());
            text.ok_or_else(|| format!("Field '{name}' must be a non-empty string"))
        };
        let (name, description) = (require_text("name", name)?, require_text("description", description)?);
        Ok(Self {
            name,
            description,
            fields,
        })
    }
}
