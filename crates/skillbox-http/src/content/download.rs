//! A file as an answer: whole or in part, read piece by piece as the client takes it.

use std::io::{self, Read};
use std::ops::Range;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use skillbox_model::ErrorCode;

use super::range::{Wanted, wanted};
use crate::app::in_background;
use crate::error::ApiError;

/// Bytes that are read at once.
const PIECE: usize = 128 << 10;

/// A file to send.
pub(crate) struct FileAnswer {
    /// Opens all of it, or the given part.
    pub open: Box<Open>,
    pub size: u64,
    pub mime_type: Option<String>,
    /// What tells this content from any other.
    pub tag: Option<String>,
}

/// How a file is opened, once it is known how much of it is wanted.
pub(crate) type Open = dyn FnOnce(Option<Range<u64>>) -> Result<Content, ApiError> + Send;
pub(crate) type Content = Box<dyn Read + Send>;

/// Sends the part of a file that the request asks for.
pub(crate) async fn answer(file: FileAnswer, request: &HeaderMap) -> Result<Response, ApiError> {
    let asked = request.get(header::RANGE).and_then(|value| value.to_str().ok());
    let part = match wanted(asked, file.size) {
        Wanted::Whole => None,
        Wanted::Part(range) => Some(range),
        Wanted::Nowhere => return Ok(nowhere(file.size)),
    };
    let range = part.clone().unwrap_or(0..file.size);
    let mut head = HeaderMap::new();
    let mut put = |name, text: String| {
        if let Ok(value) = HeaderValue::from_str(&text) {
            head.insert(name, value);
        }
    };
    let kind = file.mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
    put(header::CONTENT_TYPE, kind);
    put(header::CONTENT_LENGTH, (range.end - range.start).to_string());
    put(header::ACCEPT_RANGES, "bytes".to_owned());
    // A browser saves it and shows nothing of it.
    put(header::CONTENT_DISPOSITION, "attachment".to_owned());
    if let Some(tag) = file.tag {
        put(header::ETAG, format!("\"{tag}\""));
    }
    let mut status = StatusCode::OK;
    if part.is_some() {
        status = StatusCode::PARTIAL_CONTENT;
        let told = format!("bytes {}-{}/{}", range.start, range.end - 1, file.size);
        put(header::CONTENT_RANGE, told);
    }
    let left = range.end - range.start;
    let content = in_background(move || (file.open)(part)).await?;
    let pieces = stream::try_unfold(
        Pieces {
            content,
            left,
            held: None,
        },
        next_piece,
    );
    Ok((status, head, Body::from_stream(pieces)).into_response())
}

fn nowhere(size: u64) -> Response {
    let error = ApiError::new(ErrorCode::InvalidRequest, format!("the file has {size} bytes"));
    let error = error.in_field("Range").with_status(StatusCode::RANGE_NOT_SATISFIABLE);
    let mut response = error.into_response();
    if let Ok(value) = HeaderValue::from_str(&format!("bytes */{size}")) {
        response.headers_mut().insert(header::CONTENT_RANGE, value);
    }
    response
}

/// What is left to send. No thread waits for a slow client: each piece is read when the last one is gone.
struct Pieces {
    content: Content,
    left: u64,
    /// Read, and sent once what follows it is known to be good.
    held: Option<Bytes>,
}

/// The last piece goes out only after the content has shown at its end that it is whole.
async fn next_piece(mut pieces: Pieces) -> io::Result<Option<(Bytes, Pieces)>> {
    let read = tokio::task::spawn_blocking(move || {
        loop {
            let (piece, is_end) = read_piece(&mut pieces)?;
            let ready = pieces.held.take();
            if !is_end {
                pieces.held = Some(piece);
            }
            match ready {
                Some(ready) => return Ok(Some((ready, pieces))),
                None if is_end => return Ok(None),
                None => {}
            }
        }
    });
    read.await.map_err(io::Error::other)?
}

/// The next piece, or the end.
fn read_piece(pieces: &mut Pieces) -> io::Result<(Bytes, bool)> {
    let most = usize::try_from(pieces.left).unwrap_or(PIECE).min(PIECE);
    // One byte more than there should be makes the content look at its own end.
    let mut buffer = vec![0; most.max(1)];
    let count = pieces.content.read(&mut buffer)?;
    if pieces.left == 0 || count == 0 {
        let is_short = count == 0 && pieces.left > 0;
        if is_short {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        return Ok((Bytes::new(), true));
    }
    buffer.truncate(count);
    pieces.left -= count as u64;
    Ok((buffer.into(), false))
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    /// Content that is found damaged only after its last byte.
    struct Damaged(io::Cursor<Vec<u8>>);

    impl Read for Damaged {
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
        let file = FileAnswer {
            open: Box::new(move |part| {
                if let Some(part) = part {
                    io::copy(&mut content.by_ref().take(part.start), &mut io::sink()).unwrap();
                }
                Ok(content)
            }),
            size,
            mime_type: None,
            tag: None,
        };
        let response = answer(file, &headers).await.unwrap();
        Ok(response.into_body().collect().await?.to_bytes().to_vec())
    }

    #[tokio::test]
    async fn parts_are_what_they_say_and_damage_is_never_sent_whole() {
        let content: Vec<u8> = (0..300_000_u32).map(|number| number as u8).collect();
        let size = content.len() as u64;
        let good = || Box::new(io::Cursor::new(content.clone()));
        assert_eq!(body(good(), size, None).await.unwrap(), content);
        assert_eq!(
            body(good(), size, Some("bytes=131071-131073")).await.unwrap(),
            content[131_071..=131_073]
        );
        assert!(
            body(Box::new(Damaged(io::Cursor::new(content.clone()))), size, None)
                .await
                .is_err()
        );
        assert!(body(good(), size + 1, None).await.is_err(), "shorter than it says");
    }
}
