//! Lists the tools of the server's dialect and converts their outcomes into results.

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, Resource, Tool};
use serde_json::{Value, json};
use skillbox_model::ErrorBody;
use skillbox_runtime::{AgentName, Dialect, ToolDefinition, ToolFormat, ToolOutcome, ToolOwner, accept_error};

use crate::blocking::internal_error;
use crate::server_state::ServerState;
use crate::session::{ClientSession, RunOutput};

/// Maximum number of links in a result.
const MAX_LINKS: usize = 100;
/// The argument of a tool call that names a session, over HTTP.
pub(crate) const SESSION_ARGUMENT: &str = "session";
/// The key under which a result that is not an object is returned.
const RESULT_KEY: &str = "result";

/// The tool definitions in the order of the dialect, each with the schema of its result, and the tools of the host that
/// the client's loaded skills make visible.
///
/// The protocol has no turns. A client that asks for the tools learns which skills there are, so that its session picks up
/// changes on disk at this moment.
pub(crate) fn list(server: &ServerState, session: Option<&ClientSession>) -> Result<Vec<Tool>, ErrorData> {
    let tools = match session {
        None => server.tools(),
        Some(session) => session
            .agent
            .refresh()
            .and_then(|()| session.agent.tools(&AgentName::default())),
    };
    let tools = tools.map_err(|error| internal_error(&error))?;
    tools.iter().map(definition).collect()
}

fn definition(tool: &ToolDefinition) -> Result<Tool, ErrorData> {
    let mut json = tool.to_format(ToolFormat::Mcp);
    if tool.owner == ToolOwner::Host {
        return serde_json::from_value(json).map_err(|error| internal_error(&error));
    }
    if tool.output_schema.is_none() {
        json["outputSchema"] = json!({
            "type": "object",
            "properties": {RESULT_KEY: {"description": "The result of the tool."}},
            "required": [RESULT_KEY],
        });
        accept_error(&mut json["outputSchema"]);
    }
    // Tools affect only the sandbox and the session's own state.
    json["annotations"]["openWorldHint"] = json!(false);
    serde_json::from_value(json).map_err(|error| internal_error(&error))
}

/// The result of a call: text for the model, structured content, and links to its files.
///
/// The content of files is short, because it may enter the context of a model. The links lead to the rest.
pub(crate) fn success_result(mut outcome: ToolOutcome, links: impl Iterator<Item = RunOutput>) -> CallToolResult {
    let mut content = vec![ContentBlock::text(std::mem::take(&mut outcome.text))];
    content.extend(links.take(MAX_LINKS).map(resource_link));
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

/// Names to the model the session that a call has created, for clients that do not send its handle by themselves.
pub(crate) fn name_session(result: &mut CallToolResult, handle: &str) {
    result.content.push(ContentBlock::text(format!(
        "session: {handle}\nPass it as the argument `{SESSION_ARGUMENT}` of later calls to use the same files and loaded skills."
    )));
    if let Some(structured) = result.structured_content.as_mut().and_then(Value::as_object_mut) {
        structured.insert(SESSION_ARGUMENT.to_owned(), json!(handle));
    }
}

/// Adds the argument that names a session to the tools of skillbox.
pub(crate) fn add_session_argument(tools: &mut [Tool]) {
    for tool in tools.iter_mut().filter(|tool| tool.output_schema.is_some()) {
        let mut schema = tool.input_schema.as_ref().clone();
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            let argument = json!({
                "type": "string",
                "description": "The session that an earlier result names, to use its files and loaded skills; omit it in the first call.",
            });
            properties.insert(SESSION_ARGUMENT.to_owned(), argument);
        }
        tool.input_schema = schema.into();
    }
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
///
/// In the dialects of other systems, the text is exactly their message. In ours it has the hint too, unless that is for
/// the operator: a model cannot run commands of skillbox.
pub(crate) fn error_result(body: &ErrorBody, dialect: Dialect) -> CallToolResult {
    let mut text = body.message.clone();
    if let Some(hint) = body
        .hint
        .as_deref()
        .filter(|hint| dialect == Dialect::Skillbox && is_for_model(hint))
    {
        text.push_str(&format!("\nhint: {hint}"));
    }
    let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
    result.structured_content = Some(json!({"error": body}));
    result
}

/// Whether a hint names no command, flag, setting or route, which only an operator has.
fn is_for_model(hint: &str) -> bool {
    !["`skillbox ", "`--", "`GET /", "`artifacts", "`disable-", "`user-"]
        .iter()
        .any(|name| hint.contains(name))
}

#[cfg(test)]
mod tests {
    use skillbox_model::ErrorCode;

    use super::*;

    #[test]
    fn hints_of_codes_that_name_commands_are_not_for_models() {
        let for_models = |code: ErrorCode| is_for_model(code.remedy());
        assert!(!for_models(ErrorCode::UnknownSkill) && !for_models(ErrorCode::ExecutorUnavailable));
        assert!(!for_models(ErrorCode::HostNotAllowed) && !for_models(ErrorCode::RunUnknown));
        assert!(for_models(ErrorCode::NotLoaded) && for_models(ErrorCode::InvalidRequest));
        let shown: Vec<_> = ErrorCode::ALL.iter().filter(|code| for_models(**code)).collect();
        assert!(
            shown.iter().all(|code| !code.remedy().contains("skillbox ")),
            "{shown:?}"
        );
    }
}
