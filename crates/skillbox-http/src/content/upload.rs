//! Stores a request body as an artifact while it arrives.

use std::io::{self, Read};
use std::sync::Arc;

use axum::body::Body;
use axum::http::StatusCode;
use bytes::{Buf, Bytes};
use http_body_util::BodyExt;
use skillbox_artifacts::{Artifact, ArtifactName, ArtifactMetadata, Scope, StoreError};
use tokio::sync::mpsc;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::too_large;
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
    let uploads = app.uploads.clone();
    let _permit = uploads.try_acquire_owned().map_err(|_| {
        let message = format!("{} uploads are already in progress", Limits::MAX_UPLOADS);
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
                rest: Bytes::new(),
                is_complete: false,
            };
            tenant.runtime.artifacts().put(&scope, &name, &mut content, metadata)
        })
    };
    let forwarded = forward_body(body, chunks, app.limits.upload).await;
    let stored = storing.await.map_err(|error| ApiError::internal(&error))?;
    // The reason why the body ended early is more useful than the error of the store.
    forwarded?;
    stored.map_err(|error: StoreError| error.into())
}

async fn forward_body(mut body: Body, chunks: mpsc::Sender<Option<Bytes>>, limit: u64) -> Result<(), ApiError> {
    let mut received = 0;
    loop {
        let frame = tokio::time::timeout(Limits::BODY_TIMEOUT, body.frame())
            .await
            .map_err(|_| {
                let error = ApiError::invalid("timed out waiting for the rest of the file");
                error.with_status(StatusCode::REQUEST_TIMEOUT)
            })?;
        let Some(frame) = frame else {
            // Marks the end. If the store has failed already, it reports its own error.
            let _failed = chunks.send(None).await;
            return Ok(());
        };
        let frame = frame.map_err(|error| ApiError::invalid(format!("the upload was interrupted: {error}")))?;
        let Ok(chunk) = frame.into_data() else { continue };
        received += chunk.len() as u64;
        if received > limit {
            return Err(too_large(limit));
        }
        if chunks.send(Some(chunk)).await.is_err() {
            return Ok(());
        }
    }
}

/// Reads the received chunks. Without the end marker, the body is incomplete and reading fails.
struct BodyReader {
    chunks: mpsc::Receiver<Option<Bytes>>,
    rest: Bytes,
    is_complete: bool,
}

impl Read for BodyReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() && !self.is_complete {
            match self.chunks.blocking_recv() {
                Some(Some(chunk)) => self.rest = chunk,
                Some(None) => self.is_complete = true,
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let count = self.rest.len().min(buffer.len());
        self.rest.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}
