//! Reading stored content back with proof.

use std::fs::File;
use std::io::{self, Read};

use sha2::{Digest as _, Sha256};
use skillbox_model::Digest;

/// Content that fails at its end when it is not what the digest promised.
#[derive(Debug)]
pub struct CheckedContent {
    file: File,
    hasher: Sha256,
    expected: Digest,
    done: bool,
}

impl CheckedContent {
    pub(crate) fn new(file: File, expected: Digest) -> Self {
        Self {
            file,
            hasher: Sha256::new(),
            expected,
            done: false,
        }
    }
}

impl Read for CheckedContent {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
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
