//! A body that becomes an artifact, handed on piece by piece while it comes.

use std::io::{self, Read};
use std::sync::Arc;

use axum::body::Body;
use axum::http::StatusCode;
use bytes::{Buf, Bytes};
use http_body_util::BodyExt;
use skillbox_artifacts::{Artifact, ArtifactName, Origin, Scope, StoreError};
use tokio::sync::mpsc;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::too_large;
use crate::limits::Limits;
use crate::tenant::Tenant;

/// Stores a body as the next version of a name. What breaks off is not stored.
pub(crate) async fn store(
    app: &Arc<App>,
    tenant: &Arc<Tenant>,
    scope: Scope,
    name: ArtifactName,
    mime_type: Option<String>,
    body: Body,
) -> Result<Artifact, ApiError> {
    let uploads = app.uploads.clone();
    let _turn = uploads.try_acquire_owned().map_err(|_| {
        let message = format!("{} files are being uploaded already", Limits::UPLOADS);
        ApiError::busy(message)
    })?;
    let (pieces, incoming) = mpsc::channel(2);
    let storing = {
        let tenant = tenant.clone();
        let origin = Origin {
            mime_type,
            run_id: None,
        };
        tokio::task::spawn_blocking(move || {
            let mut content = Incoming {
                pieces: incoming,
                rest: Bytes::new(),
                is_whole: false,
            };
            tenant.runtime.artifacts().put(&scope, &name, &mut content, origin)
        })
    };
    let passed = pass_on(body, pieces, app.limits.upload).await;
    let stored = storing.await.map_err(|error| ApiError::internal(&error))?;
    // Why the body broke off says more than that it did.
    passed?;
    stored.map_err(|error: StoreError| error.into())
}

async fn pass_on(mut body: Body, pieces: mpsc::Sender<Option<Bytes>>, limit: u64) -> Result<(), ApiError> {
    let mut passed = 0;
    loop {
        let frame = tokio::time::timeout(Limits::BODY_TIME, body.frame())
            .await
            .map_err(|_| {
                let error = ApiError::invalid("the rest of the file did not come in time");
                error.with_status(StatusCode::REQUEST_TIMEOUT)
            })?;
        let Some(frame) = frame else {
            // The word that it was all. Whoever takes it may have failed already, and says so itself.
            let _failed = pieces.send(None).await;
            return Ok(());
        };
        let frame = frame.map_err(|error| ApiError::invalid(format!("the file broke off: {error}")))?;
        let Ok(piece) = frame.into_data() else { continue };
        passed += piece.len() as u64;
        if passed > limit {
            return Err(too_large(limit));
        }
        if pieces.send(Some(piece)).await.is_err() {
            return Ok(());
        }
    }
}

/// The other end of the pieces, as a reader. Without the word that it was all, it is not.
struct Incoming {
    pieces: mpsc::Receiver<Option<Bytes>>,
    rest: Bytes,
    is_whole: bool,
}

impl Read for Incoming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() && !self.is_whole {
            match self.pieces.blocking_recv() {
                Some(Some(piece)) => self.rest = piece,
                Some(None) => self.is_whole = true,
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let count = self.rest.len().min(buffer.len());
        self.rest.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}
