//! Pulls jobs of one batch and priority: one pull request that waits at the servers, replaced when it ends.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::{self, Message};
use async_nats::{Client, StatusCode};
use futures_util::StreamExt;
use serde_json::json;

use super::held_jobs::HeldJobs;
use crate::queue::batch_name::{BatchName, Priority};

/// How long a pull waits at the servers.
const PULL_EXPIRES_AFTER: Duration = Duration::from_secs(30);
/// How often the servers say that a pull still waits. After a change of the consumer's leader nobody says so.
const PULL_HEARTBEAT: Duration = Duration::from_secs(2);
/// A pull without a heartbeat for this long is replaced.
const PULL_LOST_AFTER: Duration = Duration::from_secs(5);
/// How often a full worker looks whether it has a free slot.
const CAPACITY_INTERVAL: Duration = Duration::from_millis(2);
/// The delay after a pull that the servers refused.
const RETRY_INTERVAL: Duration = Duration::from_millis(300);
/// How much later the next lower priority of a new batch is asked for.
const PRIORITY_DELAY: Duration = Duration::from_millis(150);
/// The largest pull.
const MAX_PULL: usize = 64;

/// Pulls from one consumer.
pub(super) struct Puller {
    pub client: Client,
    pub jetstream: jetstream::Context,
    pub batch: BatchName,
    pub priority: Priority,
    pub held: Arc<HeldJobs>,
}

/// How a pull ended.
enum PullEnd {
    /// With all jobs, or after its time.
    Complete,
    /// The servers refused it, or were silent.
    Refused,
}

impl Puller {
    /// Pulls until the task is aborted.
    pub async fn run(self) {
        // Higher priorities are asked first.
        tokio::time::sleep(PRIORITY_DELAY * self.priority.rank()).await;
        loop {
            let wanted = self.held.wanted(self.priority).min(MAX_PULL);
            if wanted == 0 {
                tokio::time::sleep(CAPACITY_INTERVAL).await;
                continue;
            }
            if let PullEnd::Refused = self.pull(wanted).await {
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
        }
    }

    async fn pull(&self, wanted: usize) -> PullEnd {
        let reply_to = self.client.new_inbox();
        let Ok(mut answers) = self.client.subscribe(reply_to.clone()).await else {
            return PullEnd::Refused;
        };
        let request = json!({
            "batch": wanted,
            "expires": PULL_EXPIRES_AFTER.as_nanos() as u64,
            "idle_heartbeat": PULL_HEARTBEAT.as_nanos() as u64,
        });
        let subject = format!(
            "$JS.API.CONSUMER.MSG.NEXT.{}.{}",
            self.batch.stream(),
            self.priority.as_str()
        );
        let sent = self
            .client
            .publish_with_reply(subject, reply_to, request.to_string().into())
            .await;
        if sent.is_err() {
            return PullEnd::Refused;
        }
        let mut received = 0;
        while received < wanted {
            let Ok(Some(answer)) = tokio::time::timeout(PULL_LOST_AFTER, answers.next()).await else {
                return PullEnd::Refused;
            };
            match answer.status {
                None | Some(StatusCode::OK) => {
                    received += 1;
                    let message = Message {
                        message: answer,
                        context: self.jetstream.clone(),
                    };
                    self.held.hold(message, &self.batch, self.priority).await;
                }
                // The servers have nothing to deliver.
                Some(StatusCode::IDLE_HEARTBEAT) => self.held.set_backlog(&self.batch, self.priority, 0),
                Some(StatusCode::TIMEOUT | StatusCode::NOT_FOUND) => {
                    self.held.set_backlog(&self.batch, self.priority, 0);
                    return PullEnd::Complete;
                }
                Some(_) => return PullEnd::Refused,
            }
        }
        PullEnd::Complete
    }
}
