//! Lists the tools of the server's dialect and converts their outcomes into results.

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, Resource, Tool};
use serde_json::{Value, json};
use skillbox_model::ErrorBody;
use skillbox_runtime::{Dialect, ToolDefinition, ToolFormat, ToolOutcome};

use crate::blocking::internal_error;
use crate::server_state::ServerState;
use crate::session::{ClientSession, RunOutput};

/// The key under which a result that is not an object is returned.
const RESULT_KEY: &str = "result";

/// The tool definitions in the order of the dialect, each with the schema of its result.
pub(crate) fn list(server: &ServerState) -> Result<Vec<Tool>, ErrorData> {
    let tools = server.tools().map_err(|error| internal_error(&error))?;
    tools.iter().map(definition).collect()
}

fn definition(tool: &ToolDefinition) -> Result<Tool, ErrorData> {
    let mut json = tool.to_format(ToolFormat::Mcp);
    if tool.output_schema.is_none() {
        json["outputSchema"] = json!({
            "type": "object",
            "properties": {RESULT_KEY: {"description": "The result of the tool."}},
            "required": [RESULT_KEY],
        });
    }
    // Tools affect only the sandbox and the session's own state.
    json["annotations"]["openWorldHint"] = json!(false);
    serde_json::from_value(json).map_err(|error| internal_error(&error))
}

/// The result of a call: text for the model, structured content, and links to its files.
pub(crate) fn success_result(mut outcome: ToolOutcome, session: &ClientSession) -> CallToolResult {
    let mut content = vec![ContentBlock::text(std::mem::take(&mut outcome.text))];
    if let Some(report) = &outcome.report {
        content.extend(session.record_outputs(report).into_iter().map(resource_link));
    }
    let mut result = CallToolResult::success(content);
    result.structured_content = Some(structured_content(outcome));
    result
}

/// The structured content of a result: always an object, because clients of the older revisions accept nothing else.
fn structured_content(outcome: ToolOutcome) -> Value {
    if outcome.result.is_object() && has_object_schema(&outcome) {
        return outcome.into_json();
    }
    let state_delta = outcome.state_delta();
    json!({RESULT_KEY: outcome.into_json(), "state_delta": state_delta})
}

fn has_object_schema(outcome: &ToolOutcome) -> bool {
    !matches!(outcome.dialect, Dialect::Deepagents | Dialect::Saa)
}

fn resource_link(output: RunOutput) -> ContentBlock {
    ContentBlock::ResourceLink(output_resource(output))
}

/// A file that a run produced, as a resource.
pub(crate) fn output_resource(output: RunOutput) -> Resource {
    let mut resource = Resource::new(output.uri, output.name);
    resource.mime_type = output.mime_type;
    resource.size = output.size;
    resource
}

/// The result of a refused call, for the model to read.
pub(crate) fn error_result(body: &ErrorBody) -> CallToolResult {
    let mut text = body.message.clone();
    if let Some(hint) = &body.hint {
        text.push_str(&format!("\nhint: {hint}"));
    }
    let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
    result.structured_content = Some(json!({"error": body}));
    result
}
