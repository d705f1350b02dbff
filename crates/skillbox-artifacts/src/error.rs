//! Errors of a store, grouped by what the caller can do about them.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use skillbox_model::ErrorCode;

use crate::{ArtifactName, ArtifactRef, Provider};

/// Why an operation of the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The name or the version does not exist.
    #[error("the artifact {0} does not exist")]
    Missing(ArtifactRef),
    /// A record is invalid.
    #[error("cannot read the record {location}")]
    Record {
        /// The path or URL of the record.
        location: String,
        /// The cause.
        source: serde_json::Error,
    },
    /// A local file operation failed.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// The affected path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The content to store could not be read.
    #[error("cannot read the content to store as {name}")]
    Content {
        /// The name of the artifact.
        name: ArtifactName,
        /// The error of the reader.
        source: io::Error,
    },
    /// The content does not fit into the quota of the store.
    #[error("{name} does not fit into the artifact store, whose content may use {max_bytes} bytes")]
    QuotaExceeded {
        /// The name of the artifact.
        name: ArtifactName,
        /// The quota.
        max_bytes: u64,
    },
    /// The requested range exceeds the content.
    #[error("the range from {from} to {to} exceeds the {size} bytes of the artifact")]
    Range {
        /// The requested start.
        from: u64,
        /// The requested end.
        to: u64,
        /// The size of the artifact.
        size: u64,
    },
    /// The key of the name exceeds the limit of object stores.
    #[error(
        "the artifact name {name} is too long for an object store: its key has {bytes} bytes; at most {max_bytes} are allowed"
    )]
    KeyTooLong {
        /// The name.
        name: ArtifactName,
        /// The length of the key.
        bytes: usize,
        /// The maximum length.
        max_bytes: usize,
    },
    /// The settings of the object store are invalid.
    #[error("cannot use the artifact store {location}: {message}")]
    Setup {
        /// The URL of the store.
        location: String,
        /// The problem.
        message: String,
        /// A hint for the user.
        hint: &'static str,
    },
    /// A request to the object store failed.
    #[error("cannot {action} {location}")]
    Remote {
        /// The attempted operation.
        action: &'static str,
        /// The URL of the object.
        location: String,
        /// The provider of the store.
        provider: Provider,
        /// The kind of failure.
        failure: RemoteFailure,
        /// The cause.
        source: RemoteCause,
    },
    /// The object store did not answer in time.
    #[error("cannot {action} {location}: no answer within {} s", timeout.as_secs())]
    Timeout {
        /// The attempted operation.
        action: &'static str,
        /// The URL of the object.
        location: String,
        /// The timeout.
        timeout: Duration,
    },
    /// An upload failed, and the parts that were already sent could not be removed. They are not visible as an object.
    #[error("{cause}; the parts that were sent to {location} could not be removed")]
    PartsNotRemoved {
        /// Why the upload failed.
        cause: Box<StoreError>,
        /// The URL of the parts.
        location: String,
        /// Why they could not be removed.
        source: Box<StoreError>,
    },
}

/// The kinds of failures of an object store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteFailure {
    /// The store does not answer.
    Unreachable,
    /// The credentials are missing or were rejected.
    Denied,
    /// The bucket or container does not exist.
    BucketMissing,
    /// Anything else.
    Other,
}

impl StoreError {
    /// The stable code of this error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Missing(_) => ErrorCode::ArtifactMissing,
            Self::QuotaExceeded { .. } => ErrorCode::LimitExceeded,
            Self::Range { .. } | Self::KeyTooLong { .. } | Self::Setup { .. } => ErrorCode::InvalidRequest,
            Self::Timeout { .. } => ErrorCode::StoreUnreachable,
            Self::Remote { failure, .. } => match failure {
                RemoteFailure::Unreachable => ErrorCode::StoreUnreachable,
                RemoteFailure::Denied => ErrorCode::StoreDenied,
                RemoteFailure::BucketMissing => ErrorCode::BucketMissing,
                RemoteFailure::Other => ErrorCode::Storage,
            },
            Self::PartsNotRemoved { cause, .. } => cause.code(),
            Self::Record { .. } | Self::Io { .. } | Self::Content { .. } => ErrorCode::Storage,
        }
    }

    /// A hint, if there is a more specific one than the hint of the code.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Setup { hint, .. } => Some(hint),
            Self::QuotaExceeded { .. } => {
                Some("remove artifacts with `skillbox artifacts rm`, or raise `max_artifact_bytes`")
            }
            Self::KeyTooLong { .. } => {
                Some("choose a shorter name; each byte of a non-ASCII character takes three bytes in the key")
            }
            Self::Remote { provider, failure, .. } => match failure {
                RemoteFailure::Denied => Some(provider.credentials_hint()),
                RemoteFailure::BucketMissing => {
                    Some("create the bucket, or correct `artifacts`: skillbox does not create buckets")
                }
                RemoteFailure::Other => Some("the message contains the object store's answer"),
                RemoteFailure::Unreachable => None,
            },
            Self::PartsNotRemoved { cause, .. } => cause.hint(),
            _ => None,
        }
    }
}

/// An error of the object store library, displayed in one line. The library's own text repeats itself and contains
/// whole XML documents.
#[derive(Debug)]
pub struct RemoteCause(Box<object_store::Error>);

impl RemoteCause {
    pub(crate) fn new(error: object_store::Error) -> Self {
        Self(Box::new(error))
    }

    pub(crate) fn into_inner(self) -> object_store::Error {
        *self.0
    }

    pub(crate) fn classify(&self) -> RemoteFailure {
        let text = self.0.to_string();
        // These responses have the same status as for a missing object. Only their body mentions the bucket.
        let missing_bucket_phrases = [
            "NoSuchBucket",
            "ContainerNotFound",
            "The specified bucket does not exist",
        ];
        if missing_bucket_phrases.iter().any(|word| text.contains(word)) {
            return RemoteFailure::BucketMissing;
        }
        // If no credentials are set, the library requests them from these hosts, which serve nothing else.
        let credential_hosts = [
            "169.254.169.254",
            "169.254.170.2",
            "metadata.google.internal",
            "computeMetadata",
        ];
        if credential_hosts.iter().any(|host| text.contains(host)) {
            return RemoteFailure::Denied;
        }
        match &*self.0 {
            object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
                RemoteFailure::Denied
            }
            // The library does not classify the status of every response.
            object_store::Error::Generic { .. }
                if ["401", "403"]
                    .iter()
                    .any(|status| text.contains(&format!("status code: {status}"))) =>
            {
                RemoteFailure::Denied
            }
            // The store responded, so it is reachable.
            object_store::Error::Generic { .. }
                if text.contains("status code:") || text.contains("error response:") =>
            {
                RemoteFailure::Other
            }
            object_store::Error::Generic { .. } if text.contains("HTTP error:") => RemoteFailure::Unreachable,
            _ => RemoteFailure::Other,
        }
    }
}

impl fmt::Display for RemoteCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        let tag = |name: &str| {
            let (_, rest) = text.split_once(&format!("<{name}>"))?;
            rest.split_once(&format!("</{name}>"))?.0.trim().lines().next()
        };
        if let Some(code) = tag("Code") {
            return match tag("Message") {
                Some(message) => write!(f, "{code}: {message}"),
                None => f.write_str(code),
            };
        }
        f.write_str(&text)?;
        let mut deepest: &dyn Error = &*self.0;
        while let Some(source) = deepest.source() {
            deepest = source;
        }
        let root = deepest.to_string();
        if text.contains(&root) {
            Ok(())
        } else {
            write!(f, ": {root}")
        }
    }
}

impl Error for RemoteCause {}

pub(crate) fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { action, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(text: &str) -> RemoteCause {
        RemoteCause::new(object_store::Error::Generic {
            store: "S3",
            source: text.to_owned().into(),
        })
    }

    #[test]
    fn failures_are_classified_by_their_text() {
        let check = |text: &str, failure: RemoteFailure| assert_eq!(cause(text).classify(), failure, "{text}");
        check(
            "PUT http://169.254.169.254/latest/api/token - HTTP error: error sending request",
            RemoteFailure::Denied,
        );
        check(
            "http://metadata.google.internal/x - HTTP error: no route",
            RemoteFailure::Denied,
        );
        check(
            "Server returned non-2xx status code: 403 Forbidden: ",
            RemoteFailure::Denied,
        );
        check(
            "Server returned non-2xx status code: 404: <Code>NoSuchBucket</Code>",
            RemoteFailure::BucketMissing,
        );
        check(
            "Server returned non-2xx status code: 404: <Code>ContainerNotFound</Code>",
            RemoteFailure::BucketMissing,
        );
        check("HTTP error: error sending request", RemoteFailure::Unreachable);
        check(
            "Server returned non-2xx status code: 500: HTTP error: later",
            RemoteFailure::Other,
        );
    }

    #[test]
    fn xml_documents_are_shortened_to_one_line() {
        let xml =
            "code: 403: <?xml?><Error><Code>AccessDenied</Code><Message>No.\nId: 7</Message><HostId>x</HostId></Error>";
        assert_eq!(cause(xml).to_string(), "AccessDenied: No.");
        assert_eq!(cause("plain").to_string(), "Generic S3 error: plain");
    }
}
