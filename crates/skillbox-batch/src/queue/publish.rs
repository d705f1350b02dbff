//! Publishes the jobs of a batch.

use std::time::{Duration, Instant};

use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use futures_util::{StreamExt, stream};

use super::connection::Queue;
use super::error::QueueError;

/// Messages that are sent before the first of them is acknowledged.
const MAX_IN_FLIGHT: usize = 256;
/// How long a message is sent again while the servers elect a leader.
const PUBLISH_DEADLINE: Duration = Duration::from_secs(60);
const RETRY_INTERVAL: Duration = Duration::from_millis(250);
/// What servers answer for a subject that has a message already.
const SUBJECT_IS_TAKEN: &str = "maximum messages per subject exceeded";

/// A message and its subject.
pub(super) struct Outgoing {
    pub subject: String,
    pub payload: Vec<u8>,
}

/// Publishes messages until `stop` says so. Each is on the disks of most servers when this returns. A job that is queued
/// already is left as it is. Returns the number of messages that were new.
pub(super) async fn publish_all(
    queue: &Queue,
    messages: impl Iterator<Item = Result<Outgoing, QueueError>>,
    stop: impl Fn() -> bool,
) -> Result<usize, QueueError> {
    let messages = messages.take_while(|_| !stop());
    let mut published = stream::iter(messages)
        .map(|message| async { publish(queue, message?).await })
        .buffer_unordered(MAX_IN_FLIGHT);
    let mut new = 0;
    while let Some(outcome) = published.next().await {
        new += usize::from(outcome?);
    }
    Ok(new)
}

async fn publish(queue: &Queue, message: Outgoing) -> Result<bool, QueueError> {
    let deadline = Instant::now() + PUBLISH_DEADLINE;
    loop {
        let error = match send(queue, &message).await {
            Ok(()) => return Ok(true),
            Err(error) if is_queued_already(&error) => return Ok(false),
            Err(error) => error,
        };
        if Instant::now() > deadline || matches!(error.kind(), PublishErrorKind::MaxPayloadExceeded) {
            return Err(QueueError::request("publish a job", &error));
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

async fn send(queue: &Queue, message: &Outgoing) -> Result<(), PublishError> {
    // A message that is sent again because its acknowledgement was lost is recognised by its subject, or by its result.
    let publish = PublishMessage::build().payload(message.payload.clone().into());
    let sent = queue.jetstream.send_publish(message.subject.clone(), publish).await?;
    sent.await.map(drop)
}

fn is_queued_already(error: &PublishError) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.to_string().contains(SUBJECT_IS_TAKEN))
}
