//! The stream of one batch: a work queue with one consumer for each priority.

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::context::{CreateStreamError, CreateStreamErrorKind};
use async_nats::jetstream::kv;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};

use super::batch_name::{BatchName, Priority};
use super::connection::{Queue, repeat};
use super::error::QueueError;
use super::message::MAX_MESSAGE_BYTES;
use super::worker::presence::{PRESENCE_BUCKET, PRESENCE_EXPIRES_AFTER};
use crate::error::MAX_JOBS;

/// The number of jobs that all workers together may hold. More are not delivered.
const MAX_HELD_JOBS: i64 = 4096;
/// The number of pulls of all workers that may wait at one consumer.
const MAX_WAITING_PULLS: i64 = 4096;
/// The copies of each message in a cluster.
const REPLICAS: usize = 3;
/// The codes of servers that cannot keep several copies: not clustered, too few peers, not enough resources.
const TOO_FEW_SERVERS: [u64; 4] = [10074, 10005, 10023, 10047];
const NOT_FOUND: u64 = 10059;

/// Creates the stream of a batch and its consumers, or finds them. Returns the number of copies of each message.
pub(super) async fn create(queue: &Queue, name: &BatchName, ack_wait: Duration) -> Result<usize, QueueError> {
    let replicas = match create_with(queue, name, REPLICAS).await {
        Err(error) if is_short_of_servers(&error) => {
            create_with(queue, name, 1).await.map_err(create_error)?;
            1
        }
        created => {
            created.map_err(create_error)?;
            REPLICAS
        }
    };
    for priority in Priority::ALL {
        let consumer = || pull::Config {
            durable_name: Some(priority.as_str().to_owned()),
            filter_subject: name.jobs_of(priority),
            ack_policy: AckPolicy::Explicit,
            ack_wait,
            max_ack_pending: MAX_HELD_JOBS,
            max_waiting: MAX_WAITING_PULLS,
            ..pull::Config::default()
        };
        repeat(
            "create a consumer",
            |_| false,
            || queue.jetstream.create_consumer_on_stream(consumer(), name.stream()),
        )
        .await?;
    }
    let presence = || kv::Config {
        bucket: PRESENCE_BUCKET.to_owned(),
        description: "workers of skillbox that are alive".to_owned(),
        max_age: PRESENCE_EXPIRES_AFTER,
        num_replicas: replicas,
        ..kv::Config::default()
    };
    // It exists already after the first batch, possibly with another number of copies.
    if queue.jetstream.get_key_value(PRESENCE_BUCKET).await.is_err()
        && let Err(error) = queue.jetstream.create_key_value(presence()).await
    {
        tracing::warn!(%error, "workers cannot report their presence");
    }
    Ok(replicas)
}

async fn create_with(queue: &Queue, name: &BatchName, replicas: usize) -> Result<(), CreateStreamError> {
    let config = Config {
        name: name.stream(),
        subjects: vec![name.all_jobs()],
        description: Some(format!("jobs of the skillbox batch {name}")),
        retention: RetentionPolicy::WorkQueue,
        storage: StorageType::File,
        discard: DiscardPolicy::New,
        // A job that is queued or running is not queued again, however late it is submitted again.
        max_messages_per_subject: 1,
        discard_new_per_subject: true,
        max_messages: i64::try_from(MAX_JOBS).unwrap_or(i64::MAX),
        max_message_size: i32::try_from(MAX_MESSAGE_BYTES + 4096).unwrap_or(i32::MAX),
        num_replicas: replicas,
        ..Config::default()
    };
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    loop {
        match queue.jetstream.get_or_create_stream(config.clone()).await {
            Ok(_) => return Ok(()),
            Err(error) if is_transient(&error) && std::time::Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(250)).await;
            }
            Err(error) => return Err(error),
        }
    }
}

fn is_transient(error: &CreateStreamError) -> bool {
    matches!(
        error.kind(),
        CreateStreamErrorKind::TimedOut | CreateStreamErrorKind::Response
    )
}

fn is_short_of_servers(error: &CreateStreamError) -> bool {
    match error.kind() {
        CreateStreamErrorKind::JetStream(error) => TOO_FEW_SERVERS.contains(&error.error_code().0),
        _ => false,
    }
}

fn create_error(error: CreateStreamError) -> QueueError {
    QueueError::request("create the stream of the batch", &error)
}

/// The number of jobs that are queued or running; none if there is no stream.
pub(super) async fn queued_jobs(queue: &Queue, name: &BatchName) -> Result<Option<u64>, QueueError> {
    use async_nats::jetstream::context::GetStreamErrorKind;
    match queue.jetstream.get_stream(name.stream()).await {
        Ok(stream) => Ok(Some(stream.cached_info().state.messages)),
        Err(error) => match error.kind() {
            GetStreamErrorKind::JetStream(code) if code.error_code().0 == NOT_FOUND => Ok(None),
            _ => Err(QueueError::request("inspect the stream of the batch", &error)),
        },
    }
}

/// Removes the jobs that no worker has.
pub(super) async fn delete(queue: &Queue, name: &BatchName) -> Result<(), QueueError> {
    use async_nats::jetstream::context::DeleteStreamErrorKind;
    match queue.jetstream.delete_stream(name.stream()).await {
        Ok(_) => Ok(()),
        Err(error) => match error.kind() {
            DeleteStreamErrorKind::JetStream(code) if code.error_code().0 == NOT_FOUND => Ok(()),
            _ => Err(QueueError::request("remove the stream of the batch", &error)),
        },
    }
}

/// Tells the workers to kill running jobs of a batch.
pub(super) async fn publish_cancellation(queue: &Queue, name: &BatchName) -> Result<(), QueueError> {
    let sent = queue.client.publish(name.cancellation(), "".into()).await;
    sent.map_err(|error| QueueError::request("publish the cancellation", &error))?;
    queue.flush("publish the cancellation").await
}
