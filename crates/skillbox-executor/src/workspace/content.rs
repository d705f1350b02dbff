//! Reading one collected file: its digest, its type, and as much of its content as was asked for.

use std::fs::File;
use std::io::{self, Read};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use skillbox_model::{ContentEncoding, Digest};

use super::mime;
use crate::job::Collecting;

/// Enough of a file to see what it is.
const HEAD: usize = 8 << 10;

/// What reading a file gave.
#[derive(Debug)]
pub(super) struct Content {
    pub size: u64,
    pub digest: Digest,
    pub mime_type: String,
    pub inline: Option<String>,
    pub encoding: Option<ContentEncoding>,
    pub truncated: bool,
}

/// Reads a file of `size` bytes once, from its beginning to its end.
pub(super) fn read(file: &mut File, name: &str, size: u64, how: &Collecting) -> io::Result<Content> {
    let wanted = if how.inline || how.inline_binary {
        how.max_file_bytes.min(size)
    } else {
        0
    };
    let keep = usize::try_from(wanted).unwrap_or(usize::MAX).max(HEAD);
    let mut kept = Vec::with_capacity(keep.min(usize::try_from(size).unwrap_or(0)));
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
        let room = keep - kept.len();
        kept.extend_from_slice(&buffer[..count.min(room)]);
        read += count as u64;
    }
    let is_whole = read == kept.len() as u64;
    let is_text = mime::is_text(&kept, is_whole) && !mime::is_in_characters(&kept);
    let mime_type = mime::guess(name, &kept[..kept.len().min(HEAD)], is_text);
    kept.truncate(usize::try_from(wanted).unwrap_or(usize::MAX));
    let (inline, encoding) = match (is_text, how.inline, how.inline_binary) {
        (true, true, _) => (Some(whole_characters(kept)), None),
        (false, _, true) => (Some(STANDARD.encode(&kept)), Some(ContentEncoding::Base64)),
        _ => (None, None),
    };
    Ok(Content {
        size: read,
        digest: Digest::from_sha256(hasher.finalize().into()),
        mime_type,
        truncated: inline.is_some() && read > wanted,
        inline,
        encoding,
    })
}

/// Text without the beginning of a character that the limit cut.
fn whole_characters(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        let end = error.utf8_error().valid_up_to();
        let mut bytes = error.into_bytes();
        bytes.truncate(end);
        String::from_utf8(bytes).unwrap_or_default()
    })
}
