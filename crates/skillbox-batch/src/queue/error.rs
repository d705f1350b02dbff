//! Errors of a batch on a queue.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use skillbox_artifacts::StoreError;
use skillbox_model::{Digest, ErrorBody, ErrorCode, JobId, SkillName, with_causes};
use skillbox_runtime::RunError;

use super::batch_name::BatchName;
use crate::error::BatchError;

/// Why a batch on a queue cannot be submitted, worked on or read.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// The address or a file for the connection is unusable.
    #[error("{field}: {message}")]
    Setup {
        /// The option.
        field: &'static str,
        /// What is wrong.
        message: String,
    },
    /// No server could be reached, or none accepted this client.
    #[error("cannot connect to the queue {address} within {} s: {message}", timeout.as_secs())]
    Unreachable {
        /// The address, without credentials.
        address: String,
        /// How long it was tried.
        timeout: Duration,
        /// The last error.
        message: String,
    },
    /// The queue refused a request or did not answer it.
    #[error("cannot {action} on the queue: {message}")]
    Request {
        /// What was tried.
        action: &'static str,
        /// The answer.
        message: String,
    },
    /// The name belongs to another batch, or to an earlier run of this one.
    #[error("{message}")]
    NameTaken {
        /// What is wrong.
        message: String,
        /// The remedy.
        hint: &'static str,
    },
    /// The store has no batch of this name.
    #[error("the store {store} has no batch {name}")]
    UnknownBatch {
        /// The name.
        name: BatchName,
        /// The store.
        store: String,
    },
    /// The message of a job would be too large.
    #[error("the request of the job {id} has {bytes} bytes; at most {max_bytes} can be queued")]
    LargeRequest {
        /// The job.
        id: JobId,
        /// The size of its message.
        bytes: usize,
        /// The limit.
        max_bytes: usize,
    },
    /// A file changed while it was uploaded.
    #[error("an input of the job {0} changed while it was uploaded")]
    InputChanged(JobId),
    /// A skill that another host sent is not what its digest says, or is unusable.
    #[error("the skill {skill} {digest} from the store is unusable: {message}")]
    SkillContent {
        /// The skill.
        skill: SkillName,
        /// Its digest.
        digest: Digest,
        /// What is wrong.
        message: String,
    },
    /// No executor of this host can run jobs any more.
    #[error("the process that creates sandboxes ended")]
    ExecutorLost,
    /// A signal arrived before the batch was submitted.
    #[error("the batch was not submitted, because a signal arrived")]
    Interrupted,
    /// A record in the store is invalid.
    #[error("{0}")]
    Record(String),
    /// The object store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A job cannot run at all.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The results cannot be written.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// A file of this host cannot be read or written.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl QueueError {
    pub(super) fn request(action: &'static str, error: &(dyn std::error::Error + 'static)) -> Self {
        Self::Request {
            action,
            message: with_causes(error),
        }
    }

    /// The error object.
    pub fn body(&self) -> ErrorBody {
        let (code, field, hint) = match self {
            Self::Setup { field, .. } => (ErrorCode::InvalidRequest, Some(*field), None),
            Self::Unreachable { .. } => (
                ErrorCode::QueueUnreachable,
                Some("queue"),
                Some("check the address, the credentials and the certificates, and that a server runs there"),
            ),
            Self::Request { .. } => (
                ErrorCode::QueueUnreachable,
                Some("queue"),
                Some("check that the servers run JetStream, that most of them are up, and what this user may do"),
            ),
            Self::NameTaken { hint, .. } => (ErrorCode::AlreadyExists, Some("name"), Some(*hint)),
            Self::UnknownBatch { .. } => (
                ErrorCode::InvalidRequest,
                Some("name"),
                Some("check the name, and that `artifacts` names the same store on every host"),
            ),
            Self::LargeRequest { .. } => (
                ErrorCode::LimitExceeded,
                Some("request"),
                Some("move its content to an input file, which travels through the object store"),
            ),
            Self::InputChanged(_) => (ErrorCode::Busy, Some("inputs"), Some("run the command again")),
            Self::SkillContent { .. } => (
                ErrorCode::SkillUnreadable,
                Some("skill"),
                Some("submit the batch again; if that does not help, the store was modified"),
            ),
            Self::ExecutorLost => (ErrorCode::ExecutorLost, None, Some("start the worker again")),
            Self::Interrupted => (ErrorCode::Cancelled, None, None),
            Self::Record(_) => (
                ErrorCode::Storage,
                None,
                Some("the store was modified; use another --name"),
            ),
            Self::Store(error) => {
                let mut body = ErrorBody::new(error.code(), with_causes(self));
                body.hint = error.hint().map(str::to_owned);
                return body.with_field("artifacts");
            }
            Self::Run(error) => return error.body(),
            Self::Batch(error) => return error.body(),
            Self::Io { .. } => (ErrorCode::Storage, None, Some("check free space and permissions")),
        };
        let mut body = ErrorBody::new(code, with_causes(self));
        body.hint = hint.map(str::to_owned);
        match field {
            Some(field) => body.with_field(field),
            None => body,
        }
    }
}
