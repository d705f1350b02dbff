//! Which workers are alive: each writes to a key-value bucket whose entries expire.

use std::time::Duration;

use futures_util::TryStreamExt;
use serde::{Deserialize, Serialize};

use crate::queue::connection::Queue;

/// The bucket of the workers.
pub(in crate::queue) const PRESENCE_BUCKET: &str = "skillbox-workers";
/// A worker that has not written for this long counts as dead.
pub(in crate::queue) const PRESENCE_EXPIRES_AFTER: Duration = Duration::from_secs(20);
/// How often a worker writes.
pub(super) const PRESENCE_INTERVAL: Duration = Duration::from_secs(5);
/// How long all entries may take to read.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// A worker that is alive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresentWorker {
    /// The worker.
    pub id: String,
    /// The jobs that it runs at the same time at most.
    pub slots: usize,
    /// The jobs that it runs now.
    pub running: usize,
    /// The jobs that it has finished.
    pub finished: usize,
}

/// Writes the presence of a worker. A failure only hides it.
pub(super) async fn write(client: &async_nats::Client, worker: &PresentWorker) {
    let subject = format!("$KV.{PRESENCE_BUCKET}.{}", worker.id);
    let value = serde_json::to_vec(worker).unwrap_or_default();
    if let Err(error) = client.publish(subject, value.into()).await {
        tracing::debug!(%error, "the presence of this worker is not written");
    }
}

/// The workers that are alive, by id; none if there is no bucket yet.
pub(in crate::queue) async fn read_all(queue: &Queue) -> Vec<PresentWorker> {
    let read = async {
        let bucket = queue.jetstream.get_key_value(PRESENCE_BUCKET).await.ok()?;
        let keys: Vec<String> = bucket.keys().await.ok()?.try_collect().await.ok()?;
        let mut workers = Vec::new();
        for key in keys {
            if let Ok(Some(value)) = bucket.get(key).await {
                workers.extend(serde_json::from_slice::<PresentWorker>(&value));
            }
        }
        workers.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        Some(workers)
    };
    tokio::time::timeout(READ_TIMEOUT, read)
        .await
        .ok()
        .flatten()
        .unwrap_or_default()
}
