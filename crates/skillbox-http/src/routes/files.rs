//! Files of a session's workspace.

use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use axum::Extension;
use axum::http::HeaderMap;
use axum::response::Response;
use skillbox_model::{ErrorCode, RelPath};

use super::sessions;
use crate::app::in_background;
use crate::content::{FileAnswer, answer};
use crate::error::ApiError;
use crate::extract::PathText;
use crate::tenant::Tenant;

pub(crate) async fn get(
    Extension(tenant): Extension<Arc<Tenant>>,
    path: PathText,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let file = in_background(move || {
        let id = sessions::known(&tenant, path.first())?;
        let path = RelPath::parse(path.last())
            .map_err(|error| ApiError::new(ErrorCode::PathEscape, error.to_string()).in_field("path"))?;
        let mut file = tenant.runtime.workspace_file(&id, &path)?;
        let size = file.metadata().map_err(|error| ApiError::internal(&error))?.len();
        Ok(FileAnswer {
            open: Box::new(move |part| {
                let part = part.unwrap_or(0..size);
                file.seek(SeekFrom::Start(part.start))
                    .map_err(|error| ApiError::internal(&error))?;
                // What a run writes meanwhile is not part of the answer.
                Ok(Box::new(file.take(part.end - part.start)))
            }),
            size,
            mime_type: None,
            tag: None,
        })
    });
    answer(file.await?, &headers).await
}
