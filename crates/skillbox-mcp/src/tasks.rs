//! The protocol's extension for tasks, `io.modelcontextprotocol/tasks`: a long call continues after its request, and the
//! client polls for the result by the task's id.
//!
//! Each session has its own tasks, which end with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rmcp::ErrorData;
use rmcp::model::{DetailedTask, Task, TaskPayload, TaskStatus};
use rmcp::task_manager::current_timestamp;
use skillbox_executor::CancelToken;

use crate::lock::lock;
use crate::progress::ProgressBuffer;

/// Lifetime of a task. Longer than the longest run.
const TASK_TTL: Duration = Duration::from_secs(70 * 60);
/// Minimum lifetime of a result, however long the call took.
const RESULT_TTL: Duration = Duration::from_secs(5 * 60);
/// How often a client should poll.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of tasks of one session. Further calls do not become tasks.
const MAX_TASKS: usize = 64;
/// Maximum number of bytes of the stored results of one session. Calls beyond it do not become tasks.
const MAX_RESULT_BYTES: usize = 64 << 20;
/// Maximum number of characters of a script's output in the status message of its task.
const MAX_STATUS_CHARS: usize = 200;

/// The tasks of one session.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<HashMap<String, TaskRecord>>);

#[derive(Debug)]
struct TaskRecord {
    task: Task,
    created: Instant,
    cancel: CancelToken,
    progress: Arc<ProgressBuffer>,
    end: Option<TaskEnd>,
}

#[derive(Debug)]
struct TaskEnd {
    at: Instant,
    payload: TaskPayload,
    bytes: usize,
}

impl Tasks {
    /// Creates the task of a running call; `None` at the limits of the session.
    pub(crate) fn create(&self, cancel: CancelToken, progress: Arc<ProgressBuffer>) -> Option<Task> {
        let mut tasks = lock(&self.0);
        remove_expired(&mut tasks);
        let bytes: usize = tasks
            .values()
            .filter_map(|record| Some(record.end.as_ref()?.bytes))
            .sum();
        if tasks.len() >= MAX_TASKS || bytes >= MAX_RESULT_BYTES {
            return None;
        }
        let now = current_timestamp();
        // Random, because in the stateless revision the id is the only proof that the task belongs to the client.
        let id = uuid::Uuid::new_v4().to_string();
        let task = Task::new(id.clone(), TaskStatus::Working, now.clone(), now)
            .with_ttl_ms(millis(TASK_TTL))
            .with_poll_interval_ms(millis(POLL_INTERVAL));
        let record = TaskRecord {
            task: task.clone(),
            created: Instant::now(),
            cancel,
            progress,
            end: None,
        };
        tasks.insert(id, record);
        Some(task)
    }

    /// Stores the end of a task.
    pub(crate) fn complete(&self, id: &str, payload: TaskPayload) {
        let mut tasks = lock(&self.0);
        let Some(record) = tasks.get_mut(id) else { return };
        let bytes = match &payload {
            TaskPayload::Completed { result } => serde_json::to_vec(result).map_or(0, |text| text.len()),
            _ => 0,
        };
        record.task.status_message = None;
        record.task.last_updated_at = current_timestamp();
        record.task.ttl_ms = Some(millis(TASK_TTL.max(record.created.elapsed() + RESULT_TTL)));
        record.end = Some(TaskEnd {
            at: Instant::now(),
            payload,
            bytes,
        });
    }

    /// The current status of a task, with its result once it has ended.
    pub(crate) fn get(&self, id: &str) -> Result<DetailedTask, ErrorData> {
        let mut tasks = lock(&self.0);
        remove_expired(&mut tasks);
        let record = tasks.get_mut(id).ok_or_else(|| unknown_task(id))?;
        let Some(end) = &record.end else {
            if let Some(message) = record.progress.take_text().as_deref().and_then(last_line) {
                record.task.status_message = Some(message);
                record.task.last_updated_at = current_timestamp();
            }
            return Ok(DetailedTask::new(record.task.clone(), TaskPayload::Working));
        };
        Ok(DetailedTask::new(record.task.clone(), end.payload.clone()))
    }

    /// Cancels the call of a task. A task that has ended does not change.
    pub(crate) fn cancel(&self, id: &str) -> Result<(), ErrorData> {
        let tasks = lock(&self.0);
        let record = tasks.get(id).ok_or_else(|| unknown_task(id))?;
        record.cancel.cancel();
        Ok(())
    }

    /// Whether the session has this task.
    pub(crate) fn contains(&self, id: &str) -> bool {
        lock(&self.0).contains_key(id)
    }

    /// Whether the session has tasks whose results the client may still request.
    pub(crate) fn has_any(&self) -> bool {
        let mut tasks = lock(&self.0);
        remove_expired(&mut tasks);
        !tasks.is_empty()
    }
}

fn remove_expired(tasks: &mut HashMap<String, TaskRecord>) {
    tasks.retain(|_, record| match &record.end {
        None => true,
        Some(end) => record.created.elapsed() < TASK_TTL || end.at.elapsed() < RESULT_TTL,
    });
}

/// The error for an id that is not a task of the client.
pub(crate) fn unknown_task(id: &str) -> ErrorData {
    ErrorData::invalid_params(format!("no task has the id {id:?}, or it has expired"), None)
}

/// The last line that is not blank.
fn last_line(text: &str) -> Option<String> {
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(line.trim().chars().take(MAX_STATUS_CHARS).collect())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use rmcp::model::JsonObject;
    use skillbox_model::{OutputBytes, RunEvent, Stream};

    use super::*;

    fn create(tasks: &Tasks, progress: &Arc<ProgressBuffer>) -> Option<Task> {
        tasks.create(CancelToken::new().unwrap(), progress.clone())
    }

    fn completed(bytes: usize) -> TaskPayload {
        let mut result = JsonObject::new();
        result.insert("text".to_owned(), "x".repeat(bytes).into());
        TaskPayload::Completed { result }
    }

    #[test]
    fn a_task_shows_the_last_line_of_output_and_then_its_result() {
        let (tasks, progress) = (Tasks::default(), Arc::new(ProgressBuffer::default()));
        let id = create(&tasks, &progress).unwrap().task_id;
        assert_eq!(tasks.get(&id).unwrap().task.status_message, None);
        progress.push(&RunEvent::Output {
            stream: Stream::Stdout,
            bytes: OutputBytes(b"one\ntwo of three\n\n".to_vec()),
            offset: 0,
        });
        let working = tasks.get(&id).unwrap();
        assert_eq!(working.task.status_message.as_deref(), Some("two of three"));
        assert_eq!(working.status(), TaskStatus::Working);
        tasks.complete(&id, completed(1));
        assert_eq!(tasks.get(&id).unwrap().payload, completed(1));
        assert!(tasks.get("another").is_err() && tasks.cancel("another").is_err());
        assert!(tasks.cancel(&id).is_ok(), "a task that has ended may be cancelled");
    }

    #[test]
    fn tasks_and_their_results_are_limited() {
        let (tasks, progress) = (Tasks::default(), Arc::new(ProgressBuffer::default()));
        for _ in 0..MAX_TASKS {
            assert!(create(&tasks, &progress).is_some());
        }
        assert!(create(&tasks, &progress).is_none());

        let tasks = Tasks::default();
        let id = create(&tasks, &progress).unwrap().task_id;
        tasks.complete(&id, completed(MAX_RESULT_BYTES));
        assert!(create(&tasks, &progress).is_none());
    }
}
