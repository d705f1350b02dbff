//! Appends results so that they survive a crash, several at a time: one flush of the disk for all that are waiting.

use std::fs::File;
use std::io::{self, Write};

/// The file of the results, and how much of it is durable.
#[derive(Debug)]
pub(crate) struct ResultWriter {
    file: File,
    root: File,
    durable_bytes: u64,
}

impl ResultWriter {
    /// Continues a file that ends with a complete line.
    pub fn new(file: File, root: File) -> io::Result<Self> {
        file.sync_all()?;
        let durable_bytes = file.metadata()?.len();
        Ok(Self {
            file,
            root,
            durable_bytes,
        })
    }

    /// Appends complete lines and returns when they are durable. If that fails, the file is as before.
    ///
    /// If jobs of these lines have files, everything written to the file system is flushed first, so that no durable line
    /// names a file that is not.
    pub fn append(&mut self, lines: &[u8], have_files: bool) -> io::Result<()> {
        let written = self.try_append(lines, have_files);
        match &written {
            Ok(()) => self.durable_bytes += lines.len() as u64,
            // If this fails too, the next start drops the incomplete line.
            Err(_) => drop(self.file.set_len(self.durable_bytes)),
        }
        written
    }

    fn try_append(&mut self, lines: &[u8], have_files: bool) -> io::Result<()> {
        if have_files {
            rustix::fs::syncfs(&self.root)?;
        }
        self.file.write_all(lines)?;
        self.file.sync_data()
    }
}
