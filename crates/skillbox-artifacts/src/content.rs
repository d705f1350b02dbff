//! Reading stored content back: whole with proof, or a part of it.

use std::fs::File;
use std::io::{self, Read};

use sha2::{Digest as _, Sha256};
use skillbox_model::Digest;

use crate::object::Download;

/// Bytes on their way out of a store.
#[derive(Debug)]
pub(crate) enum Content {
    File(File),
    Download(Download),
    /// A range without bytes; stores refuse to be asked for one.
    Nothing,
}

impl Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            Self::Download(download) => download.read(buffer),
            Self::Nothing => Ok(0),
        }
    }
}

/// Content that fails at its end when it is not what the digest promised.
#[derive(Debug)]
pub struct CheckedContent {
    content: Content,
    hasher: Sha256,
    expected: Digest,
    done: bool,
}

impl CheckedContent {
    pub(crate) fn new(content: Content, expected: Digest) -> Self {
        Self {
            content,
            hasher: Sha256::new(),
            expected,
            done: false,
        }
    }
}

impl Read for CheckedContent {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.content.read(buffer)?;
        if count > 0 {
            self.hasher.update(&buffer[..count]);
        } else if !self.done && !buffer.is_empty() {
            self.done = true;
            let found = Digest::from_sha256(self.hasher.clone().finalize().into());
            if found != self.expected {
                let message = format!("stored content is damaged: {found} instead of {}", self.expected);
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
        }
        Ok(count)
    }
}

/// A part of stored content: exactly as many bytes as were asked for, or an error.
///
/// A digest is a promise about the whole, so a part is *not* checked against it. Who needs the proof reads the whole.
#[derive(Debug)]
pub struct RangeContent {
    content: Content,
    left: u64,
}

impl RangeContent {
    pub(crate) fn new(content: Content, length: u64) -> Self {
        Self { content, left: length }
    }
}

impl Read for RangeContent {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).map_or(buffer.len(), |left| left.min(buffer.len()));
        if most == 0 {
            return Ok(0);
        }
        let count = self.content.read(&mut buffer[..most])?;
        if count == 0 {
            let message = "stored content is damaged: it is shorter than its record says";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
        }
        self.left -= count as u64;
        Ok(count)
    }
}
