//! The way of one tool call: seated, in its turn, made on a thread of its own, told meanwhile, and answered, with a
//! task where it takes long and the client knows tasks.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CreateTaskResult, JsonObject, MetaObject,
    ProgressNotificationParam, TaskPayload,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use skillbox_executor::{Cancel, EventSink};
use skillbox_model::{EndedBy, ErrorCode};
use skillbox_runtime::{ToolCall, ToolError, ToolOutcome};
use tokio::sync::{OwnedRwLockReadGuard, OwnedSemaphorePermit};
use tokio::task::{JoinError, JoinHandle};

use crate::host::{Host, failed};
use crate::progress::News;
use crate::seat::{HANDLE, Seated};
use crate::session::ClientSession;
use crate::tools;

/// A client that knows tasks waits so long for the answer itself.
const PATIENCE: Duration = Duration::from_millis(500);

/// What a call came to.
struct Given {
    answer: Result<CallToolResult, ErrorData>,
    /// Whether it ended because it was told to; one that was faster keeps its result.
    is_cancelled: bool,
}

/// Makes one call. A refused call is a result that the model can read; errors of the protocol are for the client.
pub(crate) async fn call(
    host: &Arc<Host>,
    seated: Seated,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let knows_tasks = context
        .client_capabilities()
        .is_some_and(|capabilities| capabilities.supports_tasks());
    let place = Place::take(host, &seated.session, context).await?;
    let mut call = GoingOn::start(host, &seated, request, place, knows_tasks || is_told(context))?;
    let answer = match call.attend(context, knows_tasks.then_some(PATIENCE)).await {
        Some(given) => answer_of(given)?.into(),
        None => match seated.session.tasks.begin(call.cancel.0.clone(), call.news.clone()) {
            Some(task) => {
                let meta = meta(call.handle.as_deref());
                let id = task.task_id.clone();
                tokio::spawn(call.go_on_as(id));
                let mut created = CreateTaskResult::new(task);
                created.meta = meta;
                CallToolResponse::Task(created)
            }
            None => {
                let given = call.attend(context, None).await;
                answer_of(given.ok_or_else(cancelled)?)?.into()
            }
        },
    };
    if !context.ct.is_cancelled() {
        seated.told();
    }
    Ok(answer)
}

/// Whether the client wants to hear what the call tells.
fn is_told(context: &RequestContext<RoleServer>) -> bool {
    context.meta.get_progress_token().is_some()
}

/// A call's part in its session, and among all calls.
struct Place {
    _here: OwnedRwLockReadGuard<()>,
    _turn: OwnedSemaphorePermit,
}

impl Place {
    async fn take(
        host: &Host,
        session: &ClientSession,
        context: &RequestContext<RoleServer>,
    ) -> Result<Self, ErrorData> {
        let here = session.enter()?;
        let turn = tokio::select! {
            turn = host.calls.clone().acquire_owned() => turn.map_err(|error| failed(&error))?,
            () = context.ct.cancelled() => return Err(cancelled()),
            () = session.ended().cancelled() => return Err(cancelled()),
        };
        Ok(Self {
            _here: here,
            _turn: turn,
        })
    }
}

/// Ends a run whose caller has gone, wherever that is noticed.
struct EndsWithCaller(Cancel);

impl Drop for EndsWithCaller {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// A call that goes on. Dropping it ends it.
struct GoingOn {
    session: Arc<ClientSession>,
    work: JoinHandle<Given>,
    cancel: EndsWithCaller,
    news: Arc<News>,
    told: f64,
    handle: Option<String>,
    _place: Place,
}

impl GoingOn {
    fn start(
        host: &Host,
        seated: &Seated,
        request: CallToolRequestParams,
        place: Place,
        is_heard: bool,
    ) -> Result<Self, ErrorData> {
        let arguments = request.arguments.map_or(Value::Null, Value::Object);
        let call = ToolCall::new(request.name, arguments);
        let answer = Answer {
            tool: call.tool.clone(),
            dialect: host.dialect(),
            handle: seated.handle.clone(),
            session: seated.session.clone(),
        };
        let cancel = EndsWithCaller(Cancel::new().map_err(|error| failed(&error))?);
        let news = Arc::new(News::default());
        let work = tokio::task::spawn_blocking({
            let (session, cancel, news) = (seated.session.clone(), cancel.0.clone(), news.clone());
            let span = tracing::Span::current();
            move || {
                let _inside = span.entered();
                let mut listener = |event| news.take(&event);
                let events = if is_heard {
                    EventSink::to(&mut listener)
                } else {
                    EventSink::silent()
                };
                // The answer is put together here as well: a large one takes a while.
                answer.give(session.agent.call_with(&call, events, Some(&cancel)))
            }
        });
        Ok(Self {
            session: seated.session.clone(),
            work,
            cancel,
            news,
            told: 0.0,
            handle: seated.handle.clone(),
            _place: place,
        })
    }

    /// Waits for the outcome and passes on what is told; none where patience ends first.
    async fn attend(
        &mut self,
        context: &RequestContext<RoleServer>,
        patience: Option<Duration>,
    ) -> Option<Result<Given, JoinError>> {
        let patience = async {
            match patience {
                Some(patience) => tokio::time::sleep(patience).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(patience);
        let mut is_cancelled = false;
        let given = loop {
            tokio::select! {
                given = &mut self.work => break given,
                () = context.ct.cancelled(), if !is_cancelled => is_cancelled = true,
                () = self.session.ended().cancelled(), if !is_cancelled => is_cancelled = true,
                () = &mut patience, if !is_cancelled => return None,
                text = self.news.next(), if is_told(context) => self.tell(context, text).await,
            }
            if is_cancelled {
                self.cancel.0.cancel();
            }
        };
        if let Some(text) = self.news.rest() {
            self.tell(context, text).await;
        }
        Some(given)
    }

    async fn tell(&mut self, context: &RequestContext<RoleServer>, text: String) {
        let Some(token) = context.meta.get_progress_token() else {
            return;
        };
        self.told += 1.0;
        let progress = ProgressNotificationParam::new(token, self.told).with_message(text);
        tokio::select! {
            // A client that is gone is noticed by the connection.
            _unheard = context.peer.notify_progress(progress) => {}
            // The connection takes no news any more, and the answer must not wait for it.
            () = self.session.silent().cancelled() => {}
        }
    }

    /// Goes on without a request, until the outcome is the task's.
    async fn go_on_as(mut self, task: String) {
        let given = tokio::select! {
            given = &mut self.work => given,
            () = self.session.ended().cancelled() => {
                self.cancel.0.cancel();
                (&mut self.work).await
            }
        };
        let payload = match given {
            Ok(Given { is_cancelled: true, .. }) => TaskPayload::Cancelled,
            given => payload(answer_of(given)),
        };
        self.session.tasks.settle(&task, payload);
    }
}

fn answer_of(given: Result<Given, JoinError>) -> Result<CallToolResult, ErrorData> {
    given.map_err(|error| failed(&error))?.answer
}

fn payload(answer: Result<CallToolResult, ErrorData>) -> TaskPayload {
    match answer {
        Ok(result) => TaskPayload::Completed {
            result: object(&result),
        },
        Err(error) => TaskPayload::Failed { error: object(&error) },
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

/// How the answer to a call is put.
struct Answer {
    tool: String,
    dialect: skillbox_runtime::Dialect,
    handle: Option<String>,
    session: Arc<ClientSession>,
}

impl Answer {
    fn give(&self, outcome: Result<ToolOutcome, ToolError>) -> Given {
        let is_cancelled = was_cancelled(&outcome);
        let answer = match outcome {
            Ok(outcome) => Ok(tools::success(outcome, &self.session)),
            Err(error) if error.code() == ErrorCode::UnknownTool => {
                let message = format!("unknown tool {:?}: {error}", self.tool);
                Err(ErrorData::invalid_params(message, None))
            }
            Err(error) => Ok(tools::refusal(&error.body(self.dialect))),
        };
        let told = |mut result: CallToolResult| {
            result.meta = meta(self.handle.as_deref());
            result
        };
        Given {
            answer: answer.map(told),
            is_cancelled,
        }
    }
}

/// What leads a client without a connection of its own back to its session.
fn meta(handle: Option<&str>) -> Option<MetaObject> {
    let mut meta = JsonObject::new();
    meta.insert(HANDLE.to_owned(), json!(handle?));
    Some(MetaObject(meta))
}

fn object(value: &impl serde::Serialize) -> JsonObject {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => object,
        _ => JsonObject::new(),
    }
}

fn cancelled() -> ErrorData {
    ErrorData::invalid_request("cancelled before it began", None)
}
