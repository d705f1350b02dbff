//! The protocol's extension for tasks, `io.modelcontextprotocol/tasks`: a call that takes long goes on without its
//! request, and the client asks for the result by the task's name.
//!
//! Each session has tasks of its own, and they end with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rmcp::ErrorData;
use rmcp::model::{DetailedTask, Task, TaskPayload, TaskStatus};
use rmcp::task_manager::current_timestamp;
use skillbox_executor::Cancel;

use crate::host::locked;
use crate::progress::News;

/// How long a task can be asked for. The longest run is shorter.
const TTL: Duration = Duration::from_secs(70 * 60);
/// A result is kept for at least so long, however long it took.
const RESULT_TTL: Duration = Duration::from_secs(5 * 60);
/// How often a client should ask.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// So many tasks of one session are kept, and so many bytes of their results. Further calls are answered as if the
/// client knew no tasks.
const MAX_TASKS: usize = 64;
const MAX_RESULT_BYTES: usize = 64 << 20;
/// Characters of a script's output that stand in the state of its task.
const MAX_MESSAGE: usize = 200;

/// The tasks of one session.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<HashMap<String, Kept>>);

#[derive(Debug)]
struct Kept {
    task: Task,
    created: Instant,
    cancel: Cancel,
    news: Arc<News>,
    ended: Option<Ended>,
}

#[derive(Debug)]
struct Ended {
    at: Instant,
    payload: TaskPayload,
    bytes: usize,
}

impl Tasks {
    /// Makes a task of a call that goes on; none where too many are kept already.
    pub(crate) fn begin(&self, cancel: Cancel, news: Arc<News>) -> Option<Task> {
        let mut tasks = locked(&self.0);
        forget_expired(&mut tasks);
        let bytes: usize = tasks.values().filter_map(|kept| Some(kept.ended.as_ref()?.bytes)).sum();
        if tasks.len() >= MAX_TASKS || bytes >= MAX_RESULT_BYTES {
            return None;
        }
        let now = current_timestamp();
        // A name that cannot be guessed: where the protocol has no sessions, whoever knows it is the task's client.
        let id = uuid::Uuid::new_v4().to_string();
        let task = Task::new(id.clone(), TaskStatus::Working, now.clone(), now)
            .with_ttl_ms(millis(TTL))
            .with_poll_interval_ms(millis(POLL_INTERVAL));
        let kept = Kept {
            task: task.clone(),
            created: Instant::now(),
            cancel,
            news,
            ended: None,
        };
        tasks.insert(id, kept);
        Some(task)
    }

    /// Notes how a task has ended.
    pub(crate) fn settle(&self, id: &str, payload: TaskPayload) {
        let mut tasks = locked(&self.0);
        let Some(kept) = tasks.get_mut(id) else { return };
        let bytes = match &payload {
            TaskPayload::Completed { result } => serde_json::to_vec(result).map_or(0, |text| text.len()),
            _ => 0,
        };
        kept.task.status_message = None;
        kept.task.last_updated_at = current_timestamp();
        kept.task.ttl_ms = Some(millis(TTL.max(kept.created.elapsed() + RESULT_TTL)));
        kept.ended = Some(Ended {
            at: Instant::now(),
            payload,
            bytes,
        });
    }

    /// A task as it is now, with its result once there is one.
    pub(crate) fn get(&self, id: &str) -> Result<DetailedTask, ErrorData> {
        let mut tasks = locked(&self.0);
        forget_expired(&mut tasks);
        let kept = tasks.get_mut(id).ok_or_else(|| unknown(id))?;
        let Some(ended) = &kept.ended else {
            if let Some(message) = kept.news.rest().as_deref().and_then(last_line) {
                kept.task.status_message = Some(message);
                kept.task.last_updated_at = current_timestamp();
            }
            return Ok(DetailedTask::new(kept.task.clone(), TaskPayload::Working));
        };
        Ok(DetailedTask::new(kept.task.clone(), ended.payload.clone()))
    }

    /// Ends the call behind a task. One that has ended stays as it is.
    pub(crate) fn cancel(&self, id: &str) -> Result<(), ErrorData> {
        let tasks = locked(&self.0);
        let kept = tasks.get(id).ok_or_else(|| unknown(id))?;
        kept.cancel.cancel();
        Ok(())
    }

    /// Whether a task is one of these.
    pub(crate) fn has(&self, id: &str) -> bool {
        locked(&self.0).contains_key(id)
    }

    /// Whether a client may still ask for a task.
    pub(crate) fn are_kept(&self) -> bool {
        let mut tasks = locked(&self.0);
        forget_expired(&mut tasks);
        !tasks.is_empty()
    }
}

fn forget_expired(tasks: &mut HashMap<String, Kept>) {
    tasks.retain(|_, kept| match &kept.ended {
        None => true,
        Some(ended) => kept.created.elapsed() < TTL || ended.at.elapsed() < RESULT_TTL,
    });
}

/// The error of every name that is not a task of the client.
pub(crate) fn unknown(id: &str) -> ErrorData {
    ErrorData::invalid_params(format!("no task is named {id:?}, or no longer"), None)
}

/// What a script said last, for people.
fn last_line(text: &str) -> Option<String> {
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(line.trim().chars().take(MAX_MESSAGE).collect())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use rmcp::model::JsonObject;
    use skillbox_model::{OutputBytes, RunEvent, Stream};

    use super::*;

    fn begin(tasks: &Tasks, news: &Arc<News>) -> Option<Task> {
        tasks.begin(Cancel::new().unwrap(), news.clone())
    }

    fn completed(bytes: usize) -> TaskPayload {
        let mut result = JsonObject::new();
        result.insert("text".to_owned(), "x".repeat(bytes).into());
        TaskPayload::Completed { result }
    }

    #[test]
    fn a_task_tells_what_its_script_says_and_then_its_result() {
        let (tasks, news) = (Tasks::default(), Arc::new(News::default()));
        let id = begin(&tasks, &news).unwrap().task_id;
        assert_eq!(tasks.get(&id).unwrap().task.status_message, None);
        news.take(&RunEvent::Output {
            stream: Stream::Stdout,
            text: OutputBytes(b"one\ntwo of three\n\n".to_vec()),
            offset: 0,
        });
        let working = tasks.get(&id).unwrap();
        assert_eq!(working.task.status_message.as_deref(), Some("two of three"));
        assert_eq!(working.status(), TaskStatus::Working);
        tasks.settle(&id, completed(1));
        assert_eq!(tasks.get(&id).unwrap().payload, completed(1));
        assert!(tasks.get("another").is_err() && tasks.cancel("another").is_err());
        assert!(tasks.cancel(&id).is_ok(), "one that has ended may be cancelled");
    }

    #[test]
    fn neither_tasks_nor_their_results_pile_up() {
        let (tasks, news) = (Tasks::default(), Arc::new(News::default()));
        for _ in 0..MAX_TASKS {
            assert!(begin(&tasks, &news).is_some());
        }
        assert!(begin(&tasks, &news).is_none());

        let tasks = Tasks::default();
        let id = begin(&tasks, &news).unwrap().task_id;
        tasks.settle(&id, completed(MAX_RESULT_BYTES));
        assert!(begin(&tasks, &news).is_none());
    }
}
