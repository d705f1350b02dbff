//! How a model is told of the tools.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use skillbox_model::{RunReport, RunRequest};

use super::input::{
    ListInput, LoadInput, NamedSkill, ReadInput, SearchInput, SelectDocsInput, SkillInput, SkillPointer,
};
use super::result::{DisableResult, ListResult, LoadResult, ReadResult, SearchResult, SelectDocsResult, UnloadResult};
use super::schema::{enumerate, input_schema, output_schema};
use super::tool::Tool;
use crate::dialect::Dialect;

/// One tool as a model sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolDefinition {
    /// The name to call.
    pub name: String,
    /// When and how to use it.
    pub description: String,
    /// JSON Schema, draft 2020-12, of the arguments.
    pub input_schema: Map<String, Value>,
    /// The same of the result, where that is an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Whether a call leaves everything as it was.
    pub read_only: bool,
}

/// In whose shape definitions are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolFormat {
    /// `tools/list` of the Model Context Protocol.
    #[default]
    Mcp,
    /// The `tools` array of OpenAI's interfaces.
    OpenAi,
    /// The `tools` array of Anthropic's interface.
    Anthropic,
}

impl ToolFormat {
    /// The format of that name: `mcp`, `openai` or `anthropic`.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "mcp" => Some(Self::Mcp),
            "openai" => Some(Self::OpenAi),
            "anthropic" => Some(Self::Anthropic),
            _ => None,
        }
    }
}

impl ToolDefinition {
    /// The definition in one of the shapes that model interfaces take.
    pub fn to_format(&self, format: ToolFormat) -> Value {
        let (name, description, schema) = (&self.name, &self.description, &self.input_schema);
        match format {
            ToolFormat::Mcp => {
                let mut tool = json!({
                    "name": name,
                    "description": description,
                    "inputSchema": schema,
                    "annotations": {"readOnlyHint": self.read_only},
                });
                if let Some(output) = &self.output_schema {
                    tool["outputSchema"] = output.clone();
                }
                tool
            }
            ToolFormat::OpenAi => json!({
                "type": "function",
                "function": {"name": name, "description": description, "parameters": schema},
            }),
            ToolFormat::Anthropic => json!({"name": name, "description": description, "input_schema": schema}),
        }
    }
}

/// The definitions of a dialect's tools, in its order, as far as `is_registered` says.
pub(crate) fn definitions(
    dialect: Dialect,
    is_registered: impl Fn(Tool) -> bool,
    skills: &[&str],
) -> Vec<ToolDefinition> {
    let tools = dialect.tools().iter().filter(|(tool, _)| is_registered(*tool));
    tools
        .map(|(tool, name)| definition(dialect, *tool, name, skills))
        .collect()
}

fn definition(dialect: Dialect, tool: Tool, name: &str, skills: &[&str]) -> ToolDefinition {
    let mut input_schema = input_of(dialect, tool);
    // Enabling is for skills that the others do not list.
    if tool != Tool::Enable {
        for property in ["skill", "skill_name"] {
            enumerate(&mut input_schema, property, skills);
        }
    }
    if dialect == Dialect::Trpc && tool == Tool::Load {
        remove_property(&mut input_schema, "arguments");
    }
    ToolDefinition {
        name: name.to_owned(),
        description: description_of(dialect, tool).to_owned(),
        input_schema,
        output_schema: output_of(dialect, tool),
        read_only: tool.is_read_only(),
    }
}

fn remove_property(schema: &mut Map<String, Value>, property: &str) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.remove(property);
    }
}

fn input_of(dialect: Dialect, tool: Tool) -> Map<String, Value> {
    match (dialect, tool) {
        (Dialect::Deepagents, _) => input_schema::<NamedSkill>(),
        (Dialect::Saa, Tool::Load | Tool::Disable) => input_schema::<SkillPointer>(),
        (_, Tool::List) => input_schema::<ListInput>(),
        (_, Tool::Load) => input_schema::<LoadInput>(),
        (_, Tool::SelectDocs) => input_schema::<SelectDocsInput>(),
        (_, Tool::Read) => input_schema::<ReadInput>(),
        (_, Tool::Run) => input_schema::<RunRequest>(),
        (_, Tool::Search) => input_schema::<SearchInput>(),
        (_, Tool::Unload | Tool::ListDocs | Tool::Disable | Tool::Enable) => input_schema::<SkillInput>(),
    }
}

/// None for the tools whose result is a text or a list.
fn output_of(dialect: Dialect, tool: Tool) -> Option<Value> {
    fn some<T: JsonSchema>() -> Option<Value> {
        Some(output_schema::<T>())
    }
    match (dialect, tool) {
        (Dialect::Deepagents | Dialect::Saa, _) | (_, Tool::ListDocs) => None,
        (_, Tool::List) => some::<ListResult>(),
        (_, Tool::Load) => some::<LoadResult>(),
        (_, Tool::Unload) => some::<UnloadResult>(),
        (_, Tool::SelectDocs) => some::<SelectDocsResult>(),
        (_, Tool::Read) => some::<ReadResult>(),
        (_, Tool::Run) => some::<RunReport>(),
        (_, Tool::Search) => some::<SearchResult>(),
        (_, Tool::Disable | Tool::Enable) => some::<DisableResult>(),
    }
}

fn description_of(dialect: Dialect, tool: Tool) -> &'static str {
    match (dialect, tool) {
        (Dialect::Deepagents, _) => {
            "Load a skill's full instructions and discover its resources. Use this instead of read_file when you \
             need to activate a skill from the available skills list."
        }
        (Dialect::Saa, Tool::Load) => {
            "Read the full instructions of a skill.\n\n- Give skill_name or skill_path as the list of skills shows \
             them; given both, they must refer to the same skill.\n- The answer is the text of its SKILL.md without \
             the frontmatter.\n- An unknown or disabled skill is an error.\n\nExample: read_skill(\"pdf-extractor\")"
        }
        (Dialect::Saa, Tool::Search) => {
            "Search the registered skills by name, description or path. The answer lists the matching skills with \
             their descriptions and paths; a blank query lists all."
        }
        (Dialect::Saa, Tool::Disable) => {
            "Disable a skill for this session; its files stay untouched. Give skill_name or skill_path; given both, \
             they must refer to the same skill. A disabled skill is no longer listed, found or read."
        }
        (_, Tool::List) => "List the skills there are, with what each is for and whether it is loaded.",
        (_, Tool::Load) => {
            "Load a skill: get its instructions, and the documents you name. Call it when a task fits a skill's \
             description, before working on the task. Loading again with `docs` replaces the chosen documents."
        }
        (_, Tool::Unload) => "Drop a loaded skill, with its documents, when it is no longer needed.",
        (_, Tool::ListDocs) => "List the documents of a skill, as paths that skill_load and skill_select_docs take.",
        (_, Tool::SelectDocs) => {
            "Choose which documents of a skill are shown: add to those chosen, replace them, or clear them."
        }
        (_, Tool::Read) => {
            "Read one file of a skill, in pieces where it is long. Text comes as text, anything else as base64."
        }
        (_, Tool::Run) => {
            "Run a command, or one of a skill's scripts, in a sandbox with the skill's files. The working directory \
             is the skill's own, read-only; write results to out/ and name them in `output_files`. Returns stdout, \
             stderr, exit code and the files."
        }
        (_, Tool::Search) => "Find skills by words of their name, description, path or instructions, best first.",
        (_, Tool::Disable) => "Do without a skill for the rest of this session; its files stay untouched.",
        (_, Tool::Enable) => "Take back a skill that was disabled in this session.",
    }
}
