//! Sends a file, whole or in part, in chunks as the client reads them.

use std::io::{self, Read};
use std::ops::Range;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use skillbox_model::ErrorCode;

use super::range::{RequestedRange, parse_range};
use crate::app::run_blocking;
use crate::error::ApiError;

/// The size of a chunk.
const CHUNK_BYTES: usize = 128 << 10;

/// A file to send.
pub(crate) struct FileResponse {
    pub open: Box<OpenContent>,
    pub size: u64,
    pub mime_type: Option<String>,
    /// The entity tag of the content.
    pub etag: Option<String>,
}

/// Opens the whole content, or the given range.
pub(crate) type OpenContent = dyn FnOnce(Option<Range<u64>>) -> Result<Content, ApiError> + Send;
pub(crate) type Content = Box<dyn Read + Send>;

/// Sends the requested range of a file.
pub(crate) async fn send_file(file: FileResponse, request: &HeaderMap) -> Result<Response, ApiError> {
    let range_header = request.get(header::RANGE).and_then(|value| value.to_str().ok());
    let part = match parse_range(range_header, file.size) {
        RequestedRange::Whole => None,
        RequestedRange::Part(range) => Some(range),
        RequestedRange::Unsatisfiable => return Ok(range_not_satisfiable(file.size)),
    };
    let range = part.clone().unwrap_or(0..file.size);
    let mut headers = HeaderMap::new();
    let mut insert = |name, text: String| {
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.insert(name, value);
        }
    };
    let content_type = file.mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
    insert(header::CONTENT_TYPE, content_type);
    insert(header::CONTENT_LENGTH, (range.end - range.start).to_string());
    insert(header::ACCEPT_RANGES, "bytes".to_owned());
    // A browser saves the file instead of rendering it.
    insert(header::CONTENT_DISPOSITION, "attachment".to_owned());
    if let Some(etag) = file.etag {
        insert(header::ETAG, format!("\"{etag}\""));
    }
    let mut status = StatusCode::OK;
    if part.is_some() {
        status = StatusCode::PARTIAL_CONTENT;
        let content_range = format!("bytes {}-{}/{}", range.start, range.end - 1, file.size);
        insert(header::CONTENT_RANGE, content_range);
    }
    let remaining = range.end - range.start;
    let content = run_blocking(move || (file.open)(part)).await?;
    let chunks = stream::try_unfold(
        ChunkReader {
            content,
            remaining,
            held_chunk: None,
        },
        next_chunk,
    );
    Ok((status, headers, Body::from_stream(chunks)).into_response())
}

fn range_not_satisfiable(size: u64) -> Response {
    let error = ApiError::new(
        ErrorCode::InvalidRequest,
        format!("the range is outside of the file, which has {size} bytes"),
    );
    let error = error.with_field("Range").with_status(StatusCode::RANGE_NOT_SATISFIABLE);
    let mut response = error.into_response();
    if let Ok(value) = HeaderValue::from_str(&format!("bytes */{size}")) {
        response.headers_mut().insert(header::CONTENT_RANGE, value);
    }
    response
}

/// The remaining content. No thread waits for a slow client: each chunk is read when the previous one is sent.
struct ChunkReader {
    content: Content,
    remaining: u64,
    /// A chunk that is sent only after the next read succeeds.
    held_chunk: Option<Bytes>,
}

/// Returns the next chunk. A chunk is held back until the next read succeeds: a reader verifies the content at its end,
/// so damaged content is never sent completely.
async fn next_chunk(mut reader: ChunkReader) -> io::Result<Option<(Bytes, ChunkReader)>> {
    let read = tokio::task::spawn_blocking(move || {
        loop {
            let (chunk, is_end) = read_chunk(&mut reader)?;
            let ready = reader.held_chunk.take();
            if !is_end {
                reader.held_chunk = Some(chunk);
            }
            match ready {
                Some(ready) => return Ok(Some((ready, reader))),
                None if is_end => return Ok(None),
                None => {}
            }
        }
    });
    read.await.map_err(io::Error::other)?
}

/// Reads the next chunk, and returns whether the end was reached instead.
fn read_chunk(reader: &mut ChunkReader) -> io::Result<(Bytes, bool)> {
    let max_bytes = usize::try_from(reader.remaining)
        .unwrap_or(CHUNK_BYTES)
        .min(CHUNK_BYTES);
    // At the end, reading one more byte makes the content reader verify the content.
    let mut buffer = vec![0; max_bytes.max(1)];
    let count = reader.content.read(&mut buffer)?;
    if reader.remaining == 0 || count == 0 {
        let is_short = count == 0 && reader.remaining > 0;
        if is_short {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        return Ok((Bytes::new(), true));
    }
    buffer.truncate(count);
    reader.remaining -= count as u64;
    Ok((buffer.into(), false))
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    /// Content that reports damage only after its last byte.
    struct DamagedContent(io::Cursor<Vec<u8>>);

    impl Read for DamagedContent {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.read(buffer)? {
                0 => Err(io::ErrorKind::InvalidData.into()),
                count => Ok(count),
            }
        }
    }

    async fn body(mut content: Content, size: u64, range: Option<&str>) -> Result<Vec<u8>, axum::Error> {
        let mut headers = HeaderMap::new();
        if let Some(range) = range {
            headers.insert(header::RANGE, range.parse().unwrap());
        }
        let file = FileResponse {
            open: Box::new(move |part| {
                if let Some(part) = part {
                    io::copy(&mut content.by_ref().take(part.start), &mut io::sink()).unwrap();
                }
                Ok(content)
            }),
            size,
            mime_type: None,
            etag: None,
        };
        let response = send_file(file, &headers).await.unwrap();
        Ok(response.into_body().collect().await?.to_bytes().to_vec())
    }

    #[tokio::test]
    async fn ranges_are_exact_and_damaged_content_is_never_sent_completely() {
        let content: Vec<u8> = (0..300_000_u32).map(|number| number as u8).collect();
        let size = content.len() as u64;
        let good = || Box::new(io::Cursor::new(content.clone()));
        assert_eq!(body(good(), size, None).await.unwrap(), content);
        assert_eq!(
            body(good(), size, Some("bytes=131071-131073")).await.unwrap(),
            content[131_071..=131_073]
        );
        assert!(
            body(Box::new(DamagedContent(io::Cursor::new(content.clone()))), size, None)
                .await
                .is_err()
        );
        assert!(
            body(good(), size + 1, None).await.is_err(),
            "content shorter than its size"
        );
    }
}
