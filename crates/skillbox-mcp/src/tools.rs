//! The tools of the host's dialect: how they are listed, and how their results are put.

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, Resource, Tool};
use serde_json::{Value, json};
use skillbox_model::ErrorBody;
use skillbox_runtime::{Dialect, ToolDefinition, ToolFormat, ToolOutcome};

use crate::host::{Host, failed};
use crate::session::{ClientSession, Output};

/// The key that carries a result which is not an object.
const RESULT: &str = "result";

/// The definitions, in the order of the dialect. Each says what its result looks like.
pub(crate) fn list(host: &Host) -> Result<Vec<Tool>, ErrorData> {
    let tools = host.tools().map_err(|error| failed(&error))?;
    tools.iter().map(definition).collect()
}

fn definition(tool: &ToolDefinition) -> Result<Tool, ErrorData> {
    let mut json = tool.to_format(ToolFormat::Mcp);
    if tool.output_schema.is_none() {
        json["outputSchema"] = json!({
            "type": "object",
            "properties": {RESULT: {"description": "What the tool gives."}},
            "required": [RESULT],
        });
    }
    // Whatever a tool does happens in the sandbox or in the session's own state.
    json["annotations"]["openWorldHint"] = json!(false);
    serde_json::from_value(json).map_err(|error| failed(&error))
}

/// What a call gave, as text for the model, as data, and as links to its files.
pub(crate) fn success(mut outcome: ToolOutcome, session: &ClientSession) -> CallToolResult {
    let mut content = vec![ContentBlock::text(std::mem::take(&mut outcome.text))];
    if let Some(report) = &outcome.report {
        content.extend(session.note(report).into_iter().map(link));
    }
    let mut result = CallToolResult::success(content);
    result.structured_content = Some(structured(outcome));
    result
}

/// An object always: clients of the older revisions take nothing else.
fn structured(outcome: ToolOutcome) -> Value {
    if outcome.result.is_object() && has_schema_of_its_own(&outcome) {
        return outcome.into_json();
    }
    let state_delta = outcome.state_delta();
    json!({RESULT: outcome.into_json(), "state_delta": state_delta})
}

fn has_schema_of_its_own(outcome: &ToolOutcome) -> bool {
    !matches!(outcome.dialect, Dialect::Deepagents | Dialect::Saa)
}

fn link(output: Output) -> ContentBlock {
    ContentBlock::ResourceLink(resource(output))
}

/// A file that a run gave, as clients list and read it.
pub(crate) fn resource(output: Output) -> Resource {
    let mut resource = Resource::new(output.uri, output.name);
    resource.mime_type = output.mime_type;
    resource.size = output.size;
    resource
}

/// Why a call was refused, for the model to read.
pub(crate) fn refusal(body: &ErrorBody) -> CallToolResult {
    let mut text = body.message.clone();
    if let Some(hint) = &body.hint {
        text.push_str(&format!("\nhint: {hint}"));
    }
    let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
    result.structured_content = Some(json!({"error": body}));
    result
}
