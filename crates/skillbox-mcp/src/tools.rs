//! The tools of the host's dialect: listed, and called on a thread of their own.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ContentBlock, JsonObject, MetaObject, ProgressNotificationParam, Resource,
    Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use skillbox_executor::{Cancel, EventSink};
use skillbox_model::{ErrorBody, ErrorCode, RunReport};
use skillbox_runtime::{Dialect, ToolCall, ToolDefinition, ToolError, ToolFormat, ToolOutcome};

use crate::host::{Host, failed};
use crate::progress::News;
use crate::seat::{HANDLE, Seated};
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

/// Ends a run whose caller has gone, wherever that is noticed.
struct EndsWithCaller(Cancel);

impl Drop for EndsWithCaller {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Makes one call. A refused call is a result that the model can read; errors of the protocol are for the client.
pub(crate) async fn call(
    host: &Host,
    seated: &Seated,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let session = &seated.session;
    let _here = session.enter().await?;
    let _turn = tokio::select! {
        turn = host.calls.acquire() => turn.map_err(|error| failed(&error))?,
        () = context.ct.cancelled() => return Err(cancelled()),
        () = session.ended().cancelled() => return Err(cancelled()),
    };
    let dialect = host.dialect();
    let arguments = request.arguments.map_or(Value::Null, Value::Object);
    let call = ToolCall::new(request.name, arguments);
    let name = call.tool.clone();
    let outcome = make(session, call, context).await?;
    let mut result = match outcome {
        Ok(outcome) => success(&outcome, session),
        Err(error) if error.code() == ErrorCode::UnknownTool => {
            let message = format!("unknown tool {name:?}: {error}");
            return Err(ErrorData::invalid_params(message, None));
        }
        Err(error) => refusal(&error.body(dialect)),
    };
    if let Some(handle) = &seated.handle {
        let mut meta = JsonObject::new();
        meta.insert(HANDLE.to_owned(), json!(handle));
        result.meta = Some(MetaObject(meta));
    }
    Ok(result)
}

/// The call itself, with what it tells passed on meanwhile.
async fn make(
    session: &Arc<ClientSession>,
    call: ToolCall,
    context: &RequestContext<RoleServer>,
) -> Result<Result<ToolOutcome, ToolError>, ErrorData> {
    let cancel = Cancel::new().map_err(|error| failed(&error))?;
    let _switch = EndsWithCaller(cancel.clone());
    let news = Arc::new(News::default());
    let token = context.meta.get_progress_token();
    let mut work = tokio::task::spawn_blocking({
        let (session, cancel, news, span) = (session.clone(), cancel.clone(), news.clone(), tracing::Span::current());
        let is_heard = token.is_some();
        move || {
            let _inside = span.entered();
            let mut listener = |event| news.take(&event);
            let events = if is_heard {
                EventSink::to(&mut listener)
            } else {
                EventSink::silent()
            };
            session.agent.call_with(&call, events, Some(&cancel))
        }
    });
    let mut told = 0.0;
    let mut is_cancelled = false;
    let outcome = loop {
        tokio::select! {
            outcome = &mut work => break outcome,
            () = context.ct.cancelled(), if !is_cancelled => is_cancelled = true,
            () = session.ended().cancelled(), if !is_cancelled => is_cancelled = true,
            text = news.next() => tell(session, context, &mut told, text).await,
        }
        if is_cancelled {
            cancel.cancel();
        }
    };
    if let Some(text) = news.rest() {
        tell(session, context, &mut told, text).await;
    }
    outcome.map_err(|error| failed(&error))
}

async fn tell(session: &ClientSession, context: &RequestContext<RoleServer>, told: &mut f64, text: String) {
    let Some(token) = context.meta.get_progress_token() else {
        return;
    };
    *told += 1.0;
    let progress = ProgressNotificationParam::new(token, *told).with_message(text);
    tokio::select! {
        // A client that is gone is noticed by the connection.
        _unheard = context.peer.notify_progress(progress) => {}
        // The connection takes no news any more, and the answer must not wait for it.
        () = session.silent().cancelled() => {}
    }
}

fn success(outcome: &ToolOutcome, session: &ClientSession) -> CallToolResult {
    let mut content = vec![ContentBlock::text(outcome.text.clone())];
    if let Some(report) = report_of(outcome) {
        content.extend(session.note(&report).into_iter().map(link));
    }
    let mut result = CallToolResult::success(content);
    result.structured_content = Some(structured(outcome));
    result
}

/// An object always: clients of the older revisions take nothing else.
fn structured(outcome: &ToolOutcome) -> Value {
    match outcome.to_json() {
        whole @ Value::Object(_) if has_schema_of_its_own(outcome) => whole,
        other => json!({RESULT: other, "state_delta": outcome.state_delta()}),
    }
}

fn has_schema_of_its_own(outcome: &ToolOutcome) -> bool {
    !matches!(outcome.dialect, Dialect::Deepagents | Dialect::Saa)
}

fn report_of(outcome: &ToolOutcome) -> Option<RunReport> {
    outcome.result.get("run_id")?;
    serde_json::from_value(outcome.result.clone()).ok()
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

fn refusal(body: &ErrorBody) -> CallToolResult {
    let mut text = body.message.clone();
    if let Some(hint) = &body.hint {
        text.push_str(&format!("\nhint: {hint}"));
    }
    let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
    result.structured_content = Some(json!({"error": body}));
    result
}

fn cancelled() -> ErrorData {
    ErrorData::invalid_request("cancelled before it began", None)
}
