//! Reads one collected file: its digest, its type, and the requested part of its content.

use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use skillbox_model::{ContentEncoding, Digest};

use super::mime;
use crate::job::CollectionSpec;

/// The number of bytes that determine the type of a file.
const HEAD_BYTES: usize = 8 << 10;

/// The bytes of content that the report of a run may still contain, shared by the threads that read its files.
#[derive(Debug)]
pub(super) struct InlineAllowance(AtomicU64);

impl InlineAllowance {
    pub(super) fn new(bytes: u64) -> Self {
        Self(AtomicU64::new(bytes))
    }

    /// Truncates the content of a file to what is left, and counts the rest.
    fn take(&self, content: &mut Vec<u8>) {
        let wanted = content.len() as u64;
        let before = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            Some(left.saturating_sub(wanted))
        });
        let left = before.unwrap_or_else(|unchanged| unchanged);
        content.truncate(usize::try_from(left).unwrap_or(usize::MAX));
    }
}

/// The result of reading a file.
#[derive(Debug)]
pub(super) struct Content {
    pub size: u64,
    pub digest: Digest,
    pub mime_type: String,
    pub inline: Option<String>,
    pub encoding: Option<ContentEncoding>,
    pub truncated: bool,
}

/// Reads the first `size` bytes of a file once.
pub(super) fn read(
    file: &mut File,
    name: &str,
    size: u64,
    spec: &CollectionSpec,
    allowance: &InlineAllowance,
) -> io::Result<Content> {
    let inline_bytes = if spec.inline || spec.inline_binary {
        spec.max_file_bytes.min(size)
    } else {
        0
    };
    let head_capacity = usize::try_from(inline_bytes).unwrap_or(usize::MAX).max(HEAD_BYTES);
    let mut head = Vec::with_capacity(head_capacity.min(usize::try_from(size).unwrap_or(0)));
    let mut hasher = Sha256::new();
    let mut read = 0;
    let mut buffer = vec![0; usize::try_from(size).unwrap_or(usize::MAX).clamp(1, 256 << 10)];
    let mut reader = file.take(size);
    loop {
        let count = match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(&buffer[..count]);
        let capacity_left = head_capacity - head.len();
        head.extend_from_slice(&buffer[..count.min(capacity_left)]);
        read += count as u64;
    }
    let is_whole = read == head.len() as u64;
    let is_text = mime::is_text(&head, is_whole) && !mime::is_text_encoded_document(&head);
    let mime_type = mime::guess_mime_type(name, &head[..head.len().min(HEAD_BYTES)], is_text);
    head.truncate(usize::try_from(inline_bytes).unwrap_or(usize::MAX));
    let is_inlined = if is_text { spec.inline } else { spec.inline_binary };
    if is_inlined {
        allowance.take(&mut head);
    }
    let is_cut_off = read > head.len() as u64;
    let (inline, encoding) = match (is_text, spec.inline, spec.inline_binary) {
        (true, true, _) => (Some(truncate_to_whole_characters(head)), None),
        (false, _, true) => (Some(STANDARD.encode(&head)), Some(ContentEncoding::Base64)),
        _ => (None, None),
    };
    Ok(Content {
        size: read,
        digest: Digest::from_sha256(hasher.finalize().into()),
        mime_type,
        truncated: inline.is_some() && is_cut_off,
        inline,
        encoding,
    })
}

/// Removes an incomplete character at the end.
fn truncate_to_whole_characters(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        let end = error.utf8_error().valid_up_to();
        let mut bytes = error.into_bytes();
        bytes.truncate(end);
        String::from_utf8(bytes).unwrap_or_default()
    })
}
