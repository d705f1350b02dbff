//! Tools of the host: what a session knows about them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use skillbox_model::SkillName;

/// The longest name of a tool, in characters.
const MAX_NAME_CHARS: usize = 128;

/// A tool that the host runs. skillbox lists it once a skill that needs it is loaded.
///
/// Invariants: the name has 1 to 128 characters, none of them white space or control characters; the schema is empty or
/// describes an object. In JSON, a name alone is a tool without description and schema.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostTool {
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(skip_serializing_if = "Map::is_empty")]
    input_schema: Map<String, Value>,
}

/// A value that is not a host tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostToolError {
    /// The name is empty, too long, or has characters that a tool name cannot have.
    #[error("{0:?} is not a tool name: expected 1 to 128 characters without blanks and control characters")]
    Name(String),
    /// The schema does not describe an object.
    #[error("the input schema of the tool {0:?} needs `\"type\": \"object\"`")]
    Schema(String),
}

impl HostTool {
    /// Creates a tool. An empty schema means that nothing is known about the arguments.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: Map<String, Value>,
    ) -> Result<Self, HostToolError> {
        let name = name.into();
        let is_unusable = |c: char| c.is_whitespace() || c.is_control();
        if name.is_empty() || name.chars().count() > MAX_NAME_CHARS || name.contains(is_unusable) {
            return Err(HostToolError::Name(name.chars().take(MAX_NAME_CHARS).collect()));
        }
        if !input_schema.is_empty() && input_schema.get("type") != Some(&Value::from("object")) {
            return Err(HostToolError::Schema(name));
        }
        Ok(Self {
            name,
            description: description.into(),
            input_schema,
        })
    }

    /// The name that the model calls.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// When and how to use it.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// JSON Schema of the arguments; empty if the host gave none.
    pub fn input_schema(&self) -> &Map<String, Value> {
        &self.input_schema
    }
}

impl<'de> Deserialize<'de> for HostTool {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// The names of the fields in the formats of MCP, Anthropic and OpenAI.
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Fields {
            name: String,
            #[serde(default)]
            description: String,
            #[serde(default, alias = "inputSchema", alias = "parameters")]
            input_schema: Map<String, Value>,
        }
        use serde::de::Error;
        let fields = match Value::deserialize(deserializer)? {
            Value::String(name) => Fields {
                name,
                description: String::new(),
                input_schema: Map::new(),
            },
            value => serde_json::from_value(value).map_err(D::Error::custom)?,
        };
        Self::new(fields.name, fields.description, fields.input_schema).map_err(D::Error::custom)
    }
}

/// Names of host tools that stay hidden until a skill is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DynamicTools {
    /// Tools that belong to a skill.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_skill: BTreeMap<SkillName, Vec<String>>,
    /// Tools that a skill can unlock by naming them in its `allowed-tools`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unlockable: BTreeSet<String>,
}

/// The tools that the host registered in a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct HostTools {
    #[serde(default)]
    pub(crate) unlocked_by: DynamicTools,
    #[serde(default)]
    pub(crate) definitions: BTreeMap<String, HostTool>,
}

impl HostTools {
    pub(crate) fn is_empty(&self) -> bool {
        self.definitions.is_empty()
    }

    /// Adds tools; a tool of the same name is replaced.
    pub(crate) fn register(&mut self, grouped: &BTreeMap<SkillName, Vec<HostTool>>, by_name: &[HostTool]) {
        for (skill, tools) in grouped {
            let names = self.unlocked_by.by_skill.entry(skill.clone()).or_default();
            for tool in tools {
                if !names.contains(&tool.name) {
                    names.push(tool.name.clone());
                }
            }
        }
        let unlockable = &mut self.unlocked_by.unlockable;
        unlockable.extend(by_name.iter().map(|tool| tool.name.clone()));
        for tool in grouped.values().flatten().chain(by_name) {
            self.definitions.insert(tool.name.clone(), tool.clone());
        }
    }

    /// Removes tools by name.
    pub(crate) fn unregister(&mut self, names: &[String]) {
        self.definitions.retain(|name, _| !names.contains(name));
        self.unlocked_by.unlockable.retain(|name| !names.contains(name));
        for tools in self.unlocked_by.by_skill.values_mut() {
            tools.retain(|name| !names.contains(name));
        }
        self.unlocked_by.by_skill.retain(|_, tools| !tools.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tool_is_a_name_or_an_object() {
        let parse = |value: Value| serde_json::from_value::<HostTool>(value);
        assert_eq!(parse(json!("extract_pdf")).unwrap().name(), "extract_pdf");
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        for key in ["input_schema", "inputSchema", "parameters"] {
            let tool = parse(json!({"name": "t", "description": "d", key: schema})).unwrap();
            assert_eq!(json!(tool.input_schema()), schema, "{key}");
        }
        for (value, expected) in [
            (json!(""), "not a tool name"),
            (json!("a b"), "not a tool name"),
            (json!("x".repeat(129)), "not a tool name"),
            (
                json!({"name": "t", "input_schema": {"type": "string"}}),
                "\"type\": \"object\"",
            ),
            (json!({"name": "t", "schema": {}}), "unknown field `schema`"),
            (json!(7), "invalid type"),
        ] {
            let error = parse(value.clone()).unwrap_err().to_string();
            assert!(error.contains(expected), "{value}: {error}");
        }
    }
}
