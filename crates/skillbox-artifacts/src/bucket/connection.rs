//! The connection to one object store, for synchronous callers.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use object_store::{Error, ObjectStore, Result};

use super::client::build_client;
use super::event_loop::{EventLoopThread, PendingRequest};
use super::options::BucketOptions;
use crate::error::{RemoteCause, io_error};
use crate::{Bucket, StoreError};

/// Requests about many objects have a timeout that is longer by this factor.
const MANY_OBJECTS_TIMEOUT_FACTOR: u32 = 8;

/// The number of objects that a request concerns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestSize {
    OneObject,
    ManyObjects,
}

/// A client and the thread of its event loop.
#[derive(Debug)]
pub(crate) struct Connection {
    event_loop: EventLoopThread,
    client: Arc<dyn ObjectStore>,
    bucket: Bucket,
    request_timeout: Duration,
}

impl Connection {
    pub(crate) fn open(bucket: &Bucket, options: &BucketOptions) -> std::result::Result<Self, StoreError> {
        let client = build_client(bucket, options)?;
        let event_loop = EventLoopThread::start().map_err(io_error("start a thread for", &options.scratch))?;
        Ok(Self {
            event_loop,
            client,
            bucket: bucket.clone(),
            request_timeout: options.request_timeout,
        })
    }

    /// Sends a request and waits for the response.
    pub(crate) fn send_request<T, F>(
        &self,
        action: &'static str,
        key: impl ToString,
        request_size: RequestSize,
        request: impl FnOnce(Arc<dyn ObjectStore>) -> F,
    ) -> std::result::Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let pending = self.start_request(request_size, request(self.client.clone()));
        self.finish_request(action, key, request_size, pending)
    }

    /// Starts a request. [`Self::finish_request`] waits for it.
    pub(super) fn start_request<T: Send + 'static>(
        &self,
        request_size: RequestSize,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> PendingRequest<Result<T>> {
        self.event_loop
            .spawn_with_timeout(self.request_timeout(request_size), work)
    }

    /// Waits for a started request, and adds the context to an error.
    pub(super) fn finish_request<T>(
        &self,
        action: &'static str,
        key: impl ToString,
        request_size: RequestSize,
        pending: PendingRequest<Result<T>>,
    ) -> std::result::Result<T, StoreError> {
        match pending.wait() {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error)) => Err(self.remote_error(action, key, error)),
            None => Err(StoreError::Timeout {
                action,
                location: self.object_url(key),
                timeout: self.request_timeout(request_size),
            }),
        }
    }

    /// The timeout of a request.
    pub(crate) fn request_timeout(&self, request_size: RequestSize) -> Duration {
        match request_size {
            RequestSize::OneObject => self.request_timeout,
            RequestSize::ManyObjects => self.request_timeout * MANY_OBJECTS_TIMEOUT_FACTOR,
        }
    }

    pub(crate) fn remote_error(&self, action: &'static str, key: impl ToString, error: Error) -> StoreError {
        let source = RemoteCause::new(error);
        StoreError::Remote {
            action,
            location: self.object_url(key),
            provider: self.bucket.provider,
            failure: source.classify(),
            source,
        }
    }

    /// The URL of an object.
    pub(crate) fn object_url(&self, key: impl ToString) -> String {
        format!("{}/{}", self.bucket.root_url(), key.to_string())
    }
}

/// Turns a missing object into none. A missing bucket stays an error.
pub(crate) fn none_if_not_found<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error @ Error::NotFound { .. }) => {
            let cause = RemoteCause::new(error);
            match cause.classify() {
                crate::RemoteFailure::BucketMissing => Err(cause.into_inner()),
                _ => Ok(None),
            }
        }
        Err(error) => Err(error),
    }
}
