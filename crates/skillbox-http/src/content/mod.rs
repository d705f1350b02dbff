//! Downloads and uploads, streamed in chunks within limits.

mod download;
mod range;
mod upload;

pub(crate) use download::{FileResponse, send_file};
pub(crate) use upload::store_upload;
