//! One object store, asked by threads that wait.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use object_store::{Error, ObjectStore, Result};

use super::bridge::{Bridge, Pending};
use super::client::client;
use super::options::BucketOptions;
use crate::error::{RemoteCause, io_error};
use crate::{Bucket, StoreError};

/// How much longer a question about many objects may take.
const MANY: u32 = 8;

/// How much is asked about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    One,
    Many,
}

/// A client and the thread that it works on.
#[derive(Debug)]
pub(super) struct Connection {
    bridge: Bridge,
    client: Arc<dyn ObjectStore>,
    bucket: Bucket,
    patience: Duration,
}

impl Connection {
    pub(super) fn open(bucket: &Bucket, options: &BucketOptions) -> std::result::Result<Self, StoreError> {
        let client = client(bucket, options)?;
        let bridge = Bridge::start().map_err(io_error("start a thread for", &options.scratch))?;
        Ok(Self {
            bridge,
            client,
            bucket: bucket.clone(),
            patience: options.patience,
        })
    }

    /// Asks and waits.
    pub(super) fn ask<T, F>(
        &self,
        action: &'static str,
        key: impl ToString,
        about: About,
        question: impl FnOnce(Arc<dyn ObjectStore>) -> F,
    ) -> std::result::Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let pending = self.begin(about, question(self.client.clone()));
        self.end(action, key, about, pending)
    }

    /// Starts something; [`Self::end`] waits for it.
    pub(super) fn begin<T: Send + 'static>(
        &self,
        about: About,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Pending<Result<T>> {
        self.bridge.begin(self.patience(about), work)
    }

    /// Waits for something that was started, and says of a failure what it was about.
    pub(super) fn end<T>(
        &self,
        action: &'static str,
        key: impl ToString,
        about: About,
        pending: Pending<Result<T>>,
    ) -> std::result::Result<T, StoreError> {
        match pending.wait() {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error)) => Err(self.failed(action, key, error)),
            None => Err(StoreError::TooSlow {
                action,
                place: self.place(key),
                patience: self.patience(about),
            }),
        }
    }

    /// How long to wait.
    pub(super) fn patience(&self, about: About) -> Duration {
        match about {
            About::One => self.patience,
            About::Many => self.patience * MANY,
        }
    }

    pub(super) fn failed(&self, action: &'static str, key: impl ToString, error: Error) -> StoreError {
        let source = RemoteCause::new(error);
        StoreError::Remote {
            action,
            place: self.place(key),
            provider: self.bucket.provider,
            trouble: source.trouble(),
            source,
        }
    }

    /// An object as people know it.
    pub(super) fn place(&self, key: impl ToString) -> String {
        format!("{}/{}", self.bucket.root_url(), key.to_string())
    }
}

/// An answer, or none where there is no such object. A bucket that is missing is another matter.
pub(super) fn or_none<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error @ Error::NotFound { .. }) => {
            let cause = RemoteCause::new(error);
            match cause.trouble() {
                crate::Trouble::NoBucket => Err(cause.into_inner()),
                _ => Ok(None),
            }
        }
        Err(error) => Err(error),
    }
}
