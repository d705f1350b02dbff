//! The arguments with which commands connect to a queue.

use std::path::PathBuf;

use clap::Args;
use skillbox_artifacts::Store;
use skillbox_batch::{BatchName, Queue, QueueError, QueueOptions};

use crate::context::Context;
use crate::failure::Failure;
use crate::runtime_setup;

/// Where the queue is, and which batch of it is meant.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Queue")]
pub struct QueueArgs {
    /// Servers of NATS JetStream, separated by commas; needs --artifacts
    #[arg(long, value_name = "nats://HOST:PORT")]
    queue: Option<String>,
    /// Name of the batch on the queue
    #[arg(long, value_name = "NAME", requires = "queue")]
    pub name: Option<BatchName>,
    /// Credentials file of the user on the queue
    #[arg(long, value_name = "FILE", requires = "queue")]
    queue_creds: Option<PathBuf>,
    /// Certificate authorities of the servers (PEM)
    #[arg(long, value_name = "FILE", requires = "queue")]
    queue_ca: Option<PathBuf>,
    /// Certificate of this client
    #[arg(long, value_name = "FILE", requires_all = ["queue", "queue_key"])]
    queue_cert: Option<PathBuf>,
    /// Private key of this client
    #[arg(long, value_name = "FILE", requires_all = ["queue", "queue_cert"])]
    queue_key: Option<PathBuf>,
}

impl QueueArgs {
    /// Whether a queue is named.
    pub fn is_given(&self) -> bool {
        self.queue.is_some()
    }

    /// The queue and the store that it needs.
    pub fn connect(&self, context: &Context<'_>) -> Result<(Queue, Store), Failure> {
        let Some(address) = self.queue.clone() else {
            return Err(Failure::usage(
                "--queue is missing",
                "name the servers: --queue nats://HOST:4222",
            ));
        };
        let store = shared_store(context)?;
        let options = QueueOptions {
            address,
            credentials: self.queue_creds.clone(),
            authorities: self.queue_ca.clone(),
            certificate: self.queue_cert.clone().zip(self.queue_key.clone()),
        };
        let queue = Queue::connect(&options).map_err(queue_failure)?;
        Ok((queue, store))
    }
}

/// The artifact store, which must be one that every host names.
pub fn shared_store(context: &Context<'_>) -> Result<Store, Failure> {
    runtime_setup::artifact_store(context).ok_or_else(|| {
        Failure::usage(
            "a batch on a queue needs an artifact store that every host can reach",
            "name it with --artifacts, such as s3://BUCKET/PREFIX, or a directory that the hosts share",
        )
    })
}

/// The failure for an error of a batch on a queue.
pub fn queue_failure(error: QueueError) -> Failure {
    Failure::from_body(error.body())
}
