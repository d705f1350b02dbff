//! Reads stored content: all of it with verification, or a range without.

use std::fs::File;
use std::io::{self, Read};

use sha2::{Digest as _, Sha256};
use skillbox_model::Digest;

use crate::bucket::Download;

/// The source of stored content.
#[derive(Debug)]
pub(crate) enum Content {
    File(File),
    Download(Download),
    /// An empty range, which object stores reject.
    Empty,
}

impl Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            Self::Download(download) => download.read(buffer),
            Self::Empty => Ok(0),
        }
    }
}

/// Content that is verified while it is read: if the digest does not match, reading fails at the end.
#[derive(Debug)]
pub struct CheckedContent {
    content: Content,
    hasher: Sha256,
    expected: Digest,
    is_verified: bool,
}

impl CheckedContent {
    pub(crate) fn new(content: Content, expected: Digest) -> Self {
        Self {
            content,
            hasher: Sha256::new(),
            expected,
            is_verified: false,
        }
    }
}

impl Read for CheckedContent {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.content.read(buffer)?;
        if count > 0 {
            self.hasher.update(&buffer[..count]);
        } else if !self.is_verified && !buffer.is_empty() {
            self.is_verified = true;
            let found = Digest::from_sha256(self.hasher.clone().finalize().into());
            if found != self.expected {
                let message = format!(
                    "stored content is damaged: its digest is {found} instead of {}",
                    self.expected
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
        }
        Ok(count)
    }
}

/// A range of stored content: exactly the requested number of bytes, or an error.
///
/// The digest covers the whole content, so a range is *not* verified. Callers that need verification read the whole
/// content.
#[derive(Debug)]
pub struct RangeContent {
    content: Content,
    remaining: u64,
}

impl RangeContent {
    pub(crate) fn new(content: Content, length: u64) -> Self {
        Self {
            content,
            remaining: length,
        }
    }
}

impl Read for RangeContent {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let limit = usize::try_from(self.remaining).map_or(buffer.len(), |remaining| remaining.min(buffer.len()));
        if limit == 0 {
            return Ok(0);
        }
        let count = self.content.read(&mut buffer[..limit])?;
        if count == 0 {
            let message = "stored content is damaged: it is shorter than its record states";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
        }
        self.remaining -= count as u64;
        Ok(count)
    }
}
