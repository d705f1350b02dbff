//! One tool call: it waits for a permit, runs on a blocking thread, reports progress and returns its result. A long call
//! continues as a task if the client supports tasks.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CreateTaskResult, JsonObject, MetaObject,
    ProgressNotificationParam, TaskPayload,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use skillbox_executor::{CancelToken, EventSink};
use skillbox_model::{EndedBy, ErrorCode};
use skillbox_runtime::{Dialect, ToolCall, ToolError, ToolOutcome};
use tokio::sync::{OwnedRwLockReadGuard, OwnedSemaphorePermit};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;

use crate::blocking::internal_error;
use crate::output_uri;
use crate::progress::ProgressBuffer;
use crate::server_state::ServerState;
use crate::session::ClientSession;
use crate::session_resolver::{HANDLE_KEY, ResolvedSession, is_stateless};
use crate::tools;

/// A call that takes longer becomes a task if the client supports tasks.
const TASK_THRESHOLD: Duration = Duration::from_millis(500);

/// The longest time without a progress notification. Clients time out without one, and this one leaves room for a busy
/// machine within the documented 5 seconds.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(4);

/// The end of a call.
struct CallEnd {
    result: Result<CallToolResult, ErrorData>,
    /// Whether cancellation ended the call. It is false if the call completed first.
    is_cancelled: bool,
    /// Whether the client sees other tools of its host than before the call.
    changes_host_tools: bool,
}

/// Makes one call. A refused call is a result that the model can read; protocol errors are for the client.
pub(crate) async fn call(
    server: &Arc<ServerState>,
    resolved: ResolvedSession,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    // Clients of the older revisions may declare the extension, but do not understand its results.
    let supports_tasks = is_stateless(context)
        && context
            .client_capabilities()
            .is_some_and(|capabilities| capabilities.supports_tasks());
    let permit = CallPermit::acquire(server, &resolved.session, context).await?;
    let has_listener = supports_tasks || wants_progress(context);
    let mut running = RunningCall::start(server, &resolved, request, permit, has_listener)?;
    let response = match running.wait(context, supports_tasks.then_some(TASK_THRESHOLD)).await {
        Some(end) => {
            let end = end.map_err(|error| internal_error(&error))?;
            if end.changes_host_tools && !is_stateless(context) {
                // Fails only if the client has disconnected.
                let _ = context.peer.notify_tool_list_changed().await;
            }
            end.result?.into()
        }
        None => match resolved
            .session
            .tasks
            .create(running.cancel.0.clone(), running.progress.clone())
        {
            Some(task) => {
                let meta = handle_meta(running.handle.as_deref());
                let id = task.task_id.clone();
                tokio::spawn(running.finish_as_task(id));
                let mut created = CreateTaskResult::new(task);
                created.meta = meta;
                CallToolResponse::Task(created)
            }
            None => {
                let end = running.wait(context, None).await;
                into_result(end.ok_or_else(cancelled_error)?)?.into()
            }
        },
    };
    if !context.ct.is_cancelled() {
        resolved.mark_announced();
    }
    Ok(response)
}

/// Whether the client asked for progress notifications.
fn wants_progress(context: &RequestContext<RoleServer>) -> bool {
    context.meta.get_progress_token().is_some()
}

/// Keeps the session open, and counts towards the server's limit of concurrent calls.
struct CallPermit {
    _session_guard: OwnedRwLockReadGuard<()>,
    _permit: OwnedSemaphorePermit,
}

impl CallPermit {
    async fn acquire(
        server: &ServerState,
        session: &ClientSession,
        context: &RequestContext<RoleServer>,
    ) -> Result<Self, ErrorData> {
        let session_guard = session.begin_call()?;
        let permit = tokio::select! {
            permit = server.call_permits.clone().acquire_owned() => permit.map_err(|error| internal_error(&error))?,
            () = context.ct.cancelled() => return Err(cancelled_error()),
            () = session.ended().cancelled() => return Err(cancelled_error()),
        };
        Ok(Self {
            _session_guard: session_guard,
            _permit: permit,
        })
    }
}

/// Cancels the run when it is dropped.
struct CancelOnDrop(CancelToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// A call in progress. Dropping it cancels it.
struct RunningCall {
    session: Arc<ClientSession>,
    work: JoinHandle<CallEnd>,
    cancel: CancelOnDrop,
    progress: Arc<ProgressBuffer>,
    sent_notifications: f64,
    started: Instant,
    last_notification: Instant,
    handle: Option<String>,
    _permit: CallPermit,
}

impl RunningCall {
    fn start(
        server: &ServerState,
        resolved: &ResolvedSession,
        request: CallToolRequestParams,
        permit: CallPermit,
        has_listener: bool,
    ) -> Result<Self, ErrorData> {
        let arguments = request.arguments.map_or(Value::Null, Value::Object);
        let call = ToolCall::new(request.name, arguments);
        let builder = ResultBuilder {
            tool: call.tool.clone(),
            dialect: server.dialect(),
            handle: resolved.handle.clone(),
            session: resolved.session.clone(),
            link_session: resolved.link_session.clone(),
            new_session: resolved.new_session().map(str::to_owned),
        };
        let cancel = CancelOnDrop(CancelToken::new().map_err(|error| internal_error(&error))?);
        let progress = Arc::new(ProgressBuffer::default());
        let work = tokio::task::spawn_blocking({
            let (session, cancel, progress) = (resolved.session.clone(), cancel.0.clone(), progress.clone());
            let span = tracing::Span::current();
            move || {
                let _entered = span.entered();
                let mut listener = |event| progress.push(&event);
                let events = if has_listener {
                    EventSink::with_listener(&mut listener)
                } else {
                    EventSink::silent()
                };
                // The result is built on this thread as well, because a large one takes a while.
                builder.build(session.agent.call_with(&call, events, Some(&cancel)))
            }
        });
        Ok(Self {
            session: resolved.session.clone(),
            work,
            cancel,
            progress,
            sent_notifications: 0.0,
            started: Instant::now(),
            last_notification: Instant::now(),
            handle: resolved.handle.clone(),
            _permit: permit,
        })
    }

    /// Waits for the end of the call and sends progress meanwhile; `None` if the timeout passes first.
    async fn wait(
        &mut self,
        context: &RequestContext<RoleServer>,
        timeout: Option<Duration>,
    ) -> Option<Result<CallEnd, JoinError>> {
        let timeout = async {
            match timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(timeout);
        let mut is_cancelled = false;
        let end = loop {
            tokio::select! {
                end = &mut self.work => break end,
                () = context.ct.cancelled(), if !is_cancelled => is_cancelled = true,
                () = self.session.ended().cancelled(), if !is_cancelled => is_cancelled = true,
                () = &mut timeout, if !is_cancelled => return None,
                text = self.progress.next_text(), if wants_progress(context) => self.send_progress(context, text).await,
                () = tokio::time::sleep_until(self.last_notification + HEARTBEAT_INTERVAL), if wants_progress(context) => {
                    let text = format!("[running for {} s]\n", self.started.elapsed().as_secs());
                    self.send_progress(context, text).await;
                }
            }
            if is_cancelled {
                self.cancel.0.cancel();
            }
        };
        if let Some(text) = self.progress.take_text() {
            self.send_progress(context, text).await;
        }
        Some(end)
    }

    async fn send_progress(&mut self, context: &RequestContext<RoleServer>, text: String) {
        let Some(token) = context.meta.get_progress_token() else {
            return;
        };
        self.sent_notifications += 1.0;
        self.last_notification = Instant::now();
        let notification = ProgressNotificationParam::new(token, self.sent_notifications).with_message(text);
        tokio::select! {
            // The connection itself notices a client that has disconnected.
            _ = context.peer.notify_progress(notification) => {}
            // The connection accepts no more notifications, and the result must not wait for them.
            () = self.session.input_closed().cancelled() => {}
        }
    }

    /// Waits for the call after its request was answered, and stores its result in the task.
    async fn finish_as_task(mut self, task: String) {
        let end = tokio::select! {
            end = &mut self.work => end,
            () = self.session.ended().cancelled() => {
                self.cancel.0.cancel();
                (&mut self.work).await
            }
        };
        let payload = match end {
            Ok(CallEnd { is_cancelled: true, .. }) => TaskPayload::Cancelled,
            end => task_payload(into_result(end)),
        };
        self.session.tasks.complete(&task, payload);
    }
}

fn into_result(end: Result<CallEnd, JoinError>) -> Result<CallToolResult, ErrorData> {
    end.map_err(|error| internal_error(&error))?.result
}

fn task_payload(result: Result<CallToolResult, ErrorData>) -> TaskPayload {
    match result {
        Ok(result) => TaskPayload::Completed {
            result: to_object(&result),
        },
        Err(error) => TaskPayload::Failed {
            error: to_object(&error),
        },
    }
}

fn was_cancelled(outcome: &Result<ToolOutcome, ToolError>) -> bool {
    match outcome {
        Ok(outcome) => outcome
            .report
            .as_ref()
            .is_some_and(|report| report.ended_by == EndedBy::Cancelled),
        Err(error) => error.code() == ErrorCode::Cancelled,
    }
}

/// Builds the result of a call from its outcome.
struct ResultBuilder {
    tool: String,
    dialect: Dialect,
    handle: Option<String>,
    session: Arc<ClientSession>,
    /// The session that links have to name, so that they can be read by a request without session.
    link_session: Option<String>,
    /// The handle of a session that this call created.
    new_session: Option<String>,
}

impl ResultBuilder {
    fn build(&self, outcome: Result<ToolOutcome, ToolError>) -> CallEnd {
        let is_cancelled = was_cancelled(&outcome);
        let changes_host_tools = outcome.as_ref().is_ok_and(|outcome| outcome.changes_host_tools);
        let result = match outcome {
            Ok(outcome) => Ok(self.success_result(outcome)),
            Err(error) if error.code() == ErrorCode::UnknownTool => {
                let message = format!("unknown tool {:?}: {error}", self.tool);
                Err(ErrorData::invalid_params(message, None))
            }
            Err(error) => Ok(tools::error_result(&error.body(self.dialect), self.dialect)),
        };
        let with_session = |mut result: CallToolResult| {
            if let Some(handle) = &self.new_session {
                tools::name_session(&mut result, handle);
            }
            result
        };
        let with_handle = |mut result: CallToolResult| {
            result.meta = handle_meta(self.handle.as_deref());
            result
        };
        CallEnd {
            result: result.map(with_session).map(with_handle),
            is_cancelled,
            changes_host_tools,
        }
    }

    fn success_result(&self, outcome: ToolOutcome) -> CallToolResult {
        let outputs = outcome
            .report
            .as_ref()
            .map(|report| self.session.record_outputs(report));
        let links = outputs.unwrap_or_default().into_iter().map(|mut output| {
            output.uri = output_uri::with_session(&output.uri, self.link_session.as_deref());
            output
        });
        tools::success_result(outcome, links)
    }
}

/// The `_meta` object that carries the handle of the session.
fn handle_meta(handle: Option<&str>) -> Option<MetaObject> {
    let mut meta = JsonObject::new();
    meta.insert(HANDLE_KEY.to_owned(), json!(handle?));
    Some(MetaObject(meta))
}

fn to_object(value: &impl serde::Serialize) -> JsonObject {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => object,
        _ => JsonObject::new(),
    }
}

fn cancelled_error() -> ErrorData {
    ErrorData::invalid_request("the call was cancelled before it started", None)
}
