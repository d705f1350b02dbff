//! Why a store could not do what it was asked, by what a caller can do about it.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use skillbox_model::ErrorCode;

use crate::{ArtifactName, ArtifactRef, Provider};

/// Why the store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No such name, or no such version of it.
    #[error("no artifact {0} is stored")]
    Missing(ArtifactRef),
    /// A record that is not one.
    #[error("the record {place} cannot be read")]
    Record {
        /// The record.
        place: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The disk said no.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The content itself could not be read to its end.
    #[error("cannot read the content to store as {name}")]
    Content {
        /// The name it was to have.
        name: ArtifactName,
        /// What the reader said.
        source: io::Error,
    },
    /// A part of the content that it does not have.
    #[error("the artifact has {size} bytes: there is no range from {from} to {to}")]
    Range {
        /// Where it was to begin.
        from: u64,
        /// Where it was to end.
        to: u64,
        /// How many bytes there are.
        size: u64,
    },
    /// A name that gives a key which no object store takes.
    #[error("the artifact name {name} is too long for an object store: its key would have {bytes} bytes, over {most}")]
    KeyTooLong {
        /// The name.
        name: ArtifactName,
        /// How long its key would be.
        bytes: usize,
        /// How long it may be.
        most: usize,
    },
    /// Settings with which an object store cannot be spoken to.
    #[error("the artifact store {place} cannot be used: {message}")]
    Setup {
        /// The store.
        place: String,
        /// What is wrong.
        message: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// The object store refused or failed.
    #[error("cannot {action} {place}")]
    Remote {
        /// What was tried.
        action: &'static str,
        /// On what.
        place: String,
        /// Whose store it is.
        provider: Provider,
        /// What kind of trouble it is.
        trouble: Trouble,
        /// What was said.
        source: RemoteCause,
    },
    /// The object store did not answer in time.
    #[error("cannot {action} {place}: no answer within {} s", patience.as_secs())]
    TooSlow {
        /// What was tried.
        action: &'static str,
        /// On what.
        place: String,
        /// How long it was waited for.
        patience: Duration,
    },
    /// An upload failed, and what it had sent could not be taken back. Nothing of it is visible.
    #[error("{cause}; and the parts that had been sent to {place} could not be removed")]
    PartsLeft {
        /// Why the upload failed.
        cause: Box<StoreError>,
        /// Where the parts are.
        place: String,
        /// Why they could not be removed.
        source: Box<StoreError>,
    },
}

/// What kind of trouble an object store gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nobody answers there.
    Unreachable,
    /// The credentials are refused, or there are none.
    Denied,
    /// There is no such bucket or container.
    NoBucket,
    /// Anything else.
    Other,
}

impl StoreError {
    /// The stable code of this error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Missing(_) => ErrorCode::ArtifactMissing,
            Self::Range { .. } | Self::KeyTooLong { .. } | Self::Setup { .. } => ErrorCode::InvalidRequest,
            Self::TooSlow { .. } => ErrorCode::StoreUnreachable,
            Self::Remote { trouble, .. } => match trouble {
                Trouble::Unreachable => ErrorCode::StoreUnreachable,
                Trouble::Denied => ErrorCode::StoreDenied,
                Trouble::NoBucket => ErrorCode::BucketMissing,
                Trouble::Other => ErrorCode::Storage,
            },
            Self::PartsLeft { cause, .. } => cause.code(),
            Self::Record { .. } | Self::Io { .. } | Self::Content { .. } => ErrorCode::Storage,
        }
    }

    /// What to do about it, where that is more than the code's own remedy says.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Setup { hint, .. } => Some(hint),
            Self::KeyTooLong { .. } => Some("choose a shorter name; characters beyond ASCII count thrice"),
            Self::Remote { provider, trouble, .. } => match trouble {
                Trouble::Denied => Some(provider.credentials_hint()),
                Trouble::NoBucket => Some("create it, or correct `artifacts`: skillbox makes no bucket"),
                Trouble::Other => Some("the message has what the object store said"),
                Trouble::Unreachable => None,
            },
            Self::PartsLeft { cause, .. } => cause.hint(),
            _ => None,
        }
    }
}

/// What an object store said, in one line: the library's errors repeat each other, and quote whole XML documents.
#[derive(Debug)]
pub struct RemoteCause(Box<object_store::Error>);

impl RemoteCause {
    pub(crate) fn new(error: object_store::Error) -> Self {
        Self(Box::new(error))
    }

    pub(crate) fn into_inner(self) -> object_store::Error {
        *self.0
    }

    pub(crate) fn trouble(&self) -> Trouble {
        let text = self.0.to_string();
        // These answers say what they mean in the body only; the status is that of a missing object.
        let bucket_words = [
            "NoSuchBucket",
            "ContainerNotFound",
            "The specified bucket does not exist",
        ];
        if bucket_words.iter().any(|word| text.contains(word)) {
            return Trouble::NoBucket;
        }
        // Where credentials come from when none are given; nobody else lives there.
        let credential_sources = [
            "169.254.169.254",
            "169.254.170.2",
            "metadata.google.internal",
            "computeMetadata",
        ];
        if credential_sources.iter().any(|host| text.contains(host)) {
            return Trouble::Denied;
        }
        match &*self.0 {
            object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
                Trouble::Denied
            }
            // Some answers come without their status made into a kind.
            object_store::Error::Generic { .. }
                if ["401", "403"]
                    .iter()
                    .any(|status| text.contains(&format!("status code: {status}"))) =>
            {
                Trouble::Denied
            }
            // An answer was given, whatever it says.
            object_store::Error::Generic { .. }
                if text.contains("status code:") || text.contains("error response:") =>
            {
                Trouble::Other
            }
            object_store::Error::Generic { .. } if text.contains("HTTP error:") => Trouble::Unreachable,
            _ => Trouble::Other,
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
    fn trouble_is_told_by_what_was_said() {
        let check = |text: &str, trouble: Trouble| assert_eq!(cause(text).trouble(), trouble, "{text}");
        check(
            "PUT http://169.254.169.254/latest/api/token - HTTP error: error sending request",
            Trouble::Denied,
        );
        check(
            "http://metadata.google.internal/x - HTTP error: no route",
            Trouble::Denied,
        );
        check("Server returned non-2xx status code: 403 Forbidden: ", Trouble::Denied);
        check(
            "Server returned non-2xx status code: 404: <Code>NoSuchBucket</Code>",
            Trouble::NoBucket,
        );
        check(
            "Server returned non-2xx status code: 404: <Code>ContainerNotFound</Code>",
            Trouble::NoBucket,
        );
        check("HTTP error: error sending request", Trouble::Unreachable);
        check(
            "Server returned non-2xx status code: 500: HTTP error: later",
            Trouble::Other,
        );
    }

    #[test]
    fn documents_are_told_in_one_line() {
        let xml =
            "code: 403: <?xml?><Error><Code>AccessDenied</Code><Message>No.\nId: 7</Message><HostId>x</HostId></Error>";
        assert_eq!(cause(xml).to_string(), "AccessDenied: No.");
        assert_eq!(cause("plain").to_string(), "Generic S3 error: plain");
    }
}
