//! One file of a skill, open for reading.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use rustix::fs::Stat;

use super::embedded::EmbeddedFile;

/// A regular file on disk, or an embedded file. Reading starts at the beginning.
#[derive(Debug)]
pub struct SkillFile {
    content: FileContent,
    size: u64,
    /// The permission bits.
    mode: u32,
    position: u64,
}

#[derive(Debug)]
enum FileContent {
    Disk(File),
    Embedded(&'static [u8]),
}

impl SkillFile {
    pub(super) fn on_disk(file: OwnedFd, stat: &Stat) -> Self {
        Self {
            content: FileContent::Disk(file.into()),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mode: stat.st_mode & 0o777,
            position: 0,
        }
    }

    pub(super) fn embedded(file: &'static EmbeddedFile) -> Self {
        Self {
            content: FileContent::Embedded(file.bytes),
            size: file.bytes.len() as u64,
            mode: if file.is_executable { 0o755 } else { 0o644 },
            position: 0,
        }
    }

    /// The size of the file when it was opened.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether the owner may execute the file.
    pub fn is_executable(&self) -> bool {
        self.mode & 0o100 != 0
    }

    /// The permission bits of the file.
    pub fn mode(&self) -> u32 {
        self.mode
    }

    /// Reads at an offset without changing the position of the reader.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match &self.content {
            FileContent::Disk(file) => file.read_at(buffer, offset),
            FileContent::Embedded(bytes) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                (&bytes[from..]).read(buffer)
            }
        }
    }
}

impl Read for SkillFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.read_at(buffer, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}
