//! Stores a request body as an artifact while it arrives.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::StatusCode;
use bytes::{Buf, Bytes};
use http_body_util::BodyExt;
use skillbox_artifacts::{Artifact, ArtifactMetadata, ArtifactName, Scope, StoreError};
use tokio::sync::mpsc;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::body_too_large;
use crate::limits::Limits;
use crate::tenant::Tenant;

/// Stores a body as the next version of an artifact. An incomplete body is not stored.
pub(crate) async fn store_upload(
    app: &Arc<App>,
    tenant: &Arc<Tenant>,
    scope: Scope,
    name: ArtifactName,
    mime_type: Option<String>,
    body: Body,
) -> Result<Artifact, ApiError> {
    let uploads = app.upload_permits.clone();
    let _permit = uploads.try_acquire_owned().map_err(|_| {
        let message = format!("{} uploads are already in progress", Limits::MAX_UPLOADS);
        ApiError::busy(message)
    })?;
    let _tenant_permit = tenant.upload_permits.try_acquire().map_err(|_| {
        let message = format!(
            "{} uploads of this tenant are already in progress",
            Limits::MAX_TENANT_UPLOADS
        );
        ApiError::busy(message)
    })?;
    let (chunks, incoming) = mpsc::channel(2);
    let storing = {
        let tenant = tenant.clone();
        let metadata = ArtifactMetadata {
            mime_type,
            run_id: None,
        };
        tokio::task::spawn_blocking(move || {
            let mut content = BodyReader {
                chunks: incoming,
                current: Bytes::new(),
                is_complete: false,
            };
            tenant.runtime.artifacts().put(&scope, &name, &mut content, metadata)
        })
    };
    let forwarded = forward_body(body, chunks, app.limits.get().max_upload_bytes).await;
    let stored = storing.await.map_err(|error| ApiError::internal(&error))?;
    // If the body ended early, that error explains more than the resulting error of the store.
    forwarded?;
    stored.map_err(|error: StoreError| error.into())
}

async fn forward_body(mut body: Body, chunks: mpsc::Sender<Option<Bytes>>, limit: u64) -> Result<(), ApiError> {
    let (started, mut received) = (Instant::now(), 0);
    loop {
        let timeout = Limits::BODY_TIMEOUT.min(deadline(started, received).saturating_duration_since(Instant::now()));
        let frame = tokio::time::timeout(timeout, body.frame()).await.map_err(|_| {
            let error = ApiError::invalid("timed out waiting for the rest of the file");
            error.with_status(StatusCode::REQUEST_TIMEOUT)
        })?;
        let Some(frame) = frame else {
            // `None` marks the end. If the store has failed already, its own error is returned.
            let _failed = chunks.send(None).await;
            return Ok(());
        };
        let frame = frame.map_err(|error| ApiError::invalid(format!("the upload was interrupted: {error}")))?;
        let Ok(chunk) = frame.into_data() else { continue };
        received += chunk.len() as u64;
        if received > limit {
            return Err(body_too_large(limit));
        }
        if chunks.send(Some(chunk)).await.is_err() {
            return Ok(());
        }
    }
}

/// When an upload that has received this many bytes is too slow: a client that sends a byte now and then must not keep a
/// permit.
fn deadline(started: Instant, received: u64) -> Instant {
    started + Limits::BODY_TIMEOUT + Duration::from_secs(received / Limits::MIN_UPLOAD_RATE)
}

/// Reads the received chunks. If they end without `None`, the body is incomplete and reading fails.
struct BodyReader {
    chunks: mpsc::Receiver<Option<Bytes>>,
    /// The unread part of the current chunk.
    current: Bytes,
    is_complete: bool,
}

impl Read for BodyReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() && !self.is_complete {
            match self.chunks.blocking_recv() {
                Some(Some(chunk)) => self.current = chunk,
                Some(None) => self.is_complete = true,
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let count = self.current.len().min(buffer.len());
        self.current.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_must_keep_a_minimum_rate() {
        let started = Instant::now();
        assert_eq!(deadline(started, 100), started + Limits::BODY_TIMEOUT);
        let received = 60 * Limits::MIN_UPLOAD_RATE;
        assert_eq!(
            deadline(started, received),
            started + Limits::BODY_TIMEOUT + Duration::from_secs(60)
        );
    }
}
