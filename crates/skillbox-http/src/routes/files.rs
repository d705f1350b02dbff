//! Downloads of files from a session's workspace.

use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use axum::Extension;
use axum::http::HeaderMap;
use axum::response::Response;
use skillbox_model::{ErrorCode, RelPath};

use super::sessions;
use crate::app::run_blocking;
use crate::content::{FileResponse, send_file};
use crate::error::ApiError;
use crate::extract::PathParams;
use crate::run_start::escape_path;
use crate::tenant::Tenant;

/// The address of a file in the workspace of a session.
pub(super) fn workspace_file_address(session: &str, name: &str) -> String {
    format!("/v1/sessions/{session}/files/{}", escape_path(name))
}

pub(crate) async fn get(
    Extension(tenant): Extension<Arc<Tenant>>,
    path: PathParams,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let file = run_blocking(move || {
        let id = sessions::find_session_id(&tenant, path.first())?;
        let path = RelPath::parse(path.last())
            .map_err(|error| ApiError::new(ErrorCode::PathEscape, error.to_string()).with_field("path"))?;
        let mut file = tenant.runtime.open_workspace_file(&id, &path)?;
        let size = file.metadata().map_err(|error| ApiError::internal(&error))?.len();
        Ok(FileResponse {
            open: Box::new(move |part| {
                let part = part.unwrap_or(0..size);
                file.seek(SeekFrom::Start(part.start))
                    .map_err(|error| ApiError::internal(&error))?;
                // Data that a run appends in the meantime is not part of the response.
                Ok(Box::new(file.take(part.end - part.start)))
            }),
            size,
            mime_type: None,
            etag: None,
        })
    });
    send_file(file.await?, &headers).await
}
