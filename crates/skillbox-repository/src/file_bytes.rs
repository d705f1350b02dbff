//! One file of a skill, open for reading.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use rustix::fs::Stat;

use crate::embedded::EmbeddedFile;

/// A regular file on disk, or a file inside the program. Reading starts at its beginning.
#[derive(Debug)]
pub struct FileBytes {
    backing: Backing,
    size: u64,
    executable: bool,
    position: u64,
}

#[derive(Debug)]
enum Backing {
    Disk(File),
    Embedded(&'static [u8]),
}

impl FileBytes {
    pub(crate) fn disk(file: OwnedFd, stat: &Stat) -> Self {
        Self {
            backing: Backing::Disk(file.into()),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            executable: stat.st_mode & 0o100 != 0,
            position: 0,
        }
    }

    pub(crate) fn embedded(file: &'static EmbeddedFile) -> Self {
        Self {
            backing: Backing::Embedded(file.bytes),
            size: file.bytes.len() as u64,
            executable: file.executable,
            position: 0,
        }
    }

    /// Its size when it was opened.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether its owner may execute it.
    pub fn executable(&self) -> bool {
        self.executable
    }

    /// Reads at a place of its own, without moving the reader.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match &self.backing {
            Backing::Disk(file) => file.read_at(buffer, offset),
            Backing::Embedded(bytes) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                (&bytes[from..]).read(buffer)
            }
        }
    }
}

impl Read for FileBytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.read_at(buffer, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}
