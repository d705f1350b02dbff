//! Tool definitions for a model.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use skillbox_model::{RunReport, RunRequest};

use super::input::{
    DeepagentsSkillInput, ListInput, LoadInput, ReadInput, SaaReadInput, SaaSkillInput, SearchInput, SelectDocsInput,
    SkillInput,
};
use super::result::{
    ListResult, LoadResult, ReadResult, SearchResult, SelectDocsResult, SetDisabledResult, UnloadResult,
};
use super::schema::{input_schema, output_schema, restrict_to_names};
use crate::dialect::Dialect;
use crate::host_tools::HostTool;
use crate::tool::Tool;

/// One tool as a model sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolDefinition {
    /// The name to call.
    pub name: String,
    /// When and how to use it.
    pub description: String,
    /// JSON Schema (draft 2020-12) of the arguments.
    pub input_schema: Map<String, Value>,
    /// JSON Schema of the result, for the tools that declare one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Whether a call changes nothing.
    pub read_only: bool,
    /// Who runs the tool.
    #[serde(skip_serializing_if = "ToolOwner::is_skillbox")]
    pub owner: ToolOwner,
}

/// Who runs a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOwner {
    /// skillbox.
    #[default]
    Skillbox,
    /// The host, which registered the tool.
    Host,
}

impl ToolOwner {
    fn is_skillbox(&self) -> bool {
        *self == Self::Skillbox
    }
}

/// The format of a tool definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolFormat {
    /// The format of `tools/list` in the Model Context Protocol.
    #[default]
    Mcp,
    /// The `tools` array of the OpenAI API.
    OpenAi,
    /// The `tools` array of the Anthropic API.
    Anthropic,
}

/// The key of `_meta` that marks a tool of the host in the format of MCP.
const HOST_TOOL_KEY: &str = "skillbox/host_tool";

impl From<&HostTool> for ToolDefinition {
    fn from(tool: &HostTool) -> Self {
        let mut input_schema = tool.input_schema().clone();
        if input_schema.is_empty() {
            input_schema.insert("type".to_owned(), json!("object"));
        }
        Self {
            name: tool.name().to_owned(),
            description: tool.description().to_owned(),
            input_schema,
            output_schema: None,
            read_only: false,
            owner: ToolOwner::Host,
        }
    }
}

impl ToolFormat {
    /// Parses the name of a format: `mcp`, `openai` or `anthropic`.
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
    /// Converts the definition to one of the formats.
    pub fn to_format(&self, format: ToolFormat) -> Value {
        let (name, description, schema) = (&self.name, &self.description, &self.input_schema);
        match format {
            ToolFormat::Mcp => {
                let mut tool = json!({
                    "name": name,
                    "description": description,
                    "inputSchema": schema,
                });
                match self.owner {
                    ToolOwner::Skillbox => tool["annotations"] = json!({"readOnlyHint": self.read_only}),
                    ToolOwner::Host => tool["_meta"] = json!({HOST_TOOL_KEY: true}),
                }
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

/// What tool definitions say about the skills that an agent can see.
pub(crate) struct VisibleSkills<'s> {
    /// Their names, in the order of lists.
    pub(crate) names: Vec<&'s str>,
    /// Whether one of them documents arguments.
    pub(crate) take_arguments: bool,
}

/// Defines the registered tools of a dialect, in display order.
pub(crate) fn define_tools(
    dialect: Dialect,
    is_registered: impl Fn(Tool) -> bool,
    skills: &VisibleSkills<'_>,
) -> Vec<ToolDefinition> {
    let tools = dialect.tools().iter().filter(|(tool, _)| is_registered(*tool));
    tools
        .map(|(tool, name)| define_tool(dialect, *tool, name, skills))
        .collect()
}

fn define_tool(dialect: Dialect, tool: Tool, name: &str, skills: &VisibleSkills<'_>) -> ToolDefinition {
    let mut input_schema = tool_input_schema(dialect, tool);
    // `skills` are the enabled skills, but `skill_enable` accepts disabled ones.
    if tool != Tool::Enable {
        for property in ["skill", "skill_name"] {
            restrict_to_names(&mut input_schema, property, &skills.names);
        }
    }
    // The systems behind the other dialects have no arguments; a skill that documents some adds them.
    if dialect != Dialect::Skillbox && tool == Tool::Load && !skills.take_arguments {
        for property in ["arguments", "args"] {
            remove_property(&mut input_schema, property);
        }
    }
    ToolDefinition {
        name: name.to_owned(),
        description: describe_tool(dialect, tool).to_owned(),
        input_schema,
        output_schema: tool_output_schema(dialect, tool),
        read_only: tool.is_read_only(),
        owner: ToolOwner::Skillbox,
    }
}

fn remove_property(schema: &mut Map<String, Value>, property: &str) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.remove(property);
    }
}

fn tool_input_schema(dialect: Dialect, tool: Tool) -> Map<String, Value> {
    match (dialect, tool) {
        (Dialect::Deepagents, _) => input_schema::<DeepagentsSkillInput>(),
        (Dialect::Saa, Tool::Load) => input_schema::<SaaReadInput>(),
        (Dialect::Saa, Tool::Disable) => input_schema::<SaaSkillInput>(),
        (_, Tool::List) => input_schema::<ListInput>(),
        (_, Tool::Load) => input_schema::<LoadInput>(),
        (_, Tool::SelectDocs) => input_schema::<SelectDocsInput>(),
        (_, Tool::Read) => input_schema::<ReadInput>(),
        (_, Tool::Run) => input_schema::<RunRequest>(),
        (_, Tool::Search) => input_schema::<SearchInput>(),
        (_, Tool::Unload | Tool::ListDocs | Tool::Disable | Tool::Enable) => input_schema::<SkillInput>(),
    }
}

/// Returns `None` for a result that is a list, and in the two dialects whose result is mainly the text for the model.
fn tool_output_schema(dialect: Dialect, tool: Tool) -> Option<Value> {
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
        (_, Tool::Disable | Tool::Enable) => some::<SetDisabledResult>(),
    }
}

fn describe_tool(dialect: Dialect, tool: Tool) -> &'static str {
    match (dialect, tool) {
        (Dialect::Deepagents, _) => {
            "Load a skill's full instructions and discover its resources. Use this instead of read_file when you \
             need to activate a skill from the available skills list."
        }
        (Dialect::Saa, Tool::Load) => {
            "Reads the full content of a skill from the SkillRegistry.\nYou can use this tool to read the complete \
             content of any skill by providing its name or path.\n\nUsage:\n- Provide either skill_name or \
             skill_path\n- If both are provided, they must refer to the same skill\n- The tool returns the full \
             content of the skill file (e.g., SKILL.md) without frontmatter\n- If the skill is not found, an error \
             will be returned\n\nExample:\n- read_skill(\"pdf-extractor\")"
        }
        (Dialect::Saa, Tool::Search) => {
            "Searches the current SkillRegistry by skill name, description, or skill path.\n\nUsage:\n- Provide a \
             query to search the locally registered skills\n- Matching is performed against name, description, and \
             path\n- Returns matching skills with their descriptions and paths\n- A blank query lists all skills"
        }
        (Dialect::Saa, Tool::Disable) => {
            "Disables a skill in the current SkillRegistry instance without deleting any files.\n\nUsage:\n- \
             Provide either skill_name or skill_path\n- If both are provided, they must refer to the same skill\n- \
             Disabled skills are hidden from the current registry's listings and reads"
        }
        (_, Tool::List) => "List the available skills, with what each is for and whether it is loaded.",
        (_, Tool::Load) => {
            "Load a skill: get its instructions and the documents you name. Call it when a task fits a skill's \
             description, before working on the task. Loading again with `docs` replaces the selected documents."
        }
        (_, Tool::Unload) => "Unload a skill and its documents when they are no longer needed.",
        (_, Tool::ListDocs) => "List the documents of a skill, as paths that skill_load and skill_select_docs accept.",
        (_, Tool::SelectDocs) => {
            "Select which documents of a skill are shown: add to the selection, replace it, or clear it."
        }
        (_, Tool::Read) => {
            "Read one file of a skill, in chunks if it is long. Text is returned as text, anything else as base64."
        }
        (_, Tool::Run) => {
            "Run a command, or one of a skill's scripts, in a sandbox with the skill's files. The working directory \
             is the skill's own, where changes do not last; write results to out/ and name them in `output_files`. Returns stdout, \
             stderr, exit code and the files."
        }
        (_, Tool::Search) => {
            "Search skills by words in their name, description, path or instructions, best matches first."
        }
        (_, Tool::Disable) => "Disable a skill for the rest of this session; its files stay untouched.",
        (_, Tool::Enable) => "Enable a skill that was disabled in this session.",
    }
}
