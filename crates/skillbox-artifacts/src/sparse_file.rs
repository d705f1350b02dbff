//! Writes a file without the space for blocks of zeros, and within a limit.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

/// The block size of most file systems: smaller holes save nothing.
const BLOCK_BYTES: usize = 4096;

/// A writer to an empty file.
#[derive(Debug)]
pub(crate) struct SparseWriter<'a> {
    file: &'a mut File,
    position: u64,
    written: u64,
    max_bytes: u64,
    is_over_limit: bool,
}

impl<'a> SparseWriter<'a> {
    /// Writes at most this many bytes that are not in holes.
    pub fn new(file: &'a mut File, max_bytes: u64) -> Self {
        Self {
            file,
            position: 0,
            written: 0,
            max_bytes,
            is_over_limit: false,
        }
    }

    /// Whether a write failed because of the limit.
    pub fn is_over_limit(&self) -> bool {
        self.is_over_limit
    }

    /// Sets the size, which a hole at the end does not. Returns the number of bytes that are not in holes.
    pub fn finish(self) -> io::Result<u64> {
        self.file.set_len(self.position)?;
        Ok(self.written)
    }

    fn write_block(&mut self, block: &[u8]) -> io::Result<()> {
        if block.iter().all(|byte| *byte == 0) {
            self.file
                .seek(SeekFrom::Current(i64::try_from(block.len()).unwrap_or(0)))?;
        } else {
            self.written += block.len() as u64;
            if self.written > self.max_bytes {
                self.is_over_limit = true;
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
            self.file.write_all(block)?;
        }
        self.position += block.len() as u64;
        Ok(())
    }
}

impl Write for SparseWriter<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        // Adjacent blocks with content are written by one call.
        let mut rest = buffer;
        while !rest.is_empty() {
            let is_zero = |block: &[u8]| block.iter().all(|byte| *byte == 0);
            let first_is_zero = is_zero(&rest[..rest.len().min(BLOCK_BYTES)]);
            let same = rest
                .chunks(BLOCK_BYTES)
                .take_while(|block| is_zero(block) == first_is_zero);
            let length = same.map(<[u8]>::len).sum();
            let (block, after) = rest.split_at(length);
            self.write_block(block)?;
            rest = after;
        }
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn zeros_take_no_space_and_are_read_back() {
        let mut content = vec![0; 3 << 20];
        content[1 << 20] = 1;
        content[(2 << 20) + 5] = 2;
        let mut file = tempfile::tempfile().unwrap();
        let mut writer = SparseWriter::new(&mut file, 1 << 20);
        writer.write_all(&content).unwrap();
        assert_eq!(writer.finish().unwrap(), 8192);
        assert!(file.metadata().unwrap().blocks() * 512 < 1 << 20);
        let mut read = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut read).unwrap();
        assert!(read == content);
    }

    #[test]
    fn content_over_the_limit_is_refused() {
        let mut file = tempfile::tempfile().unwrap();
        let mut writer = SparseWriter::new(&mut file, 8192);
        writer.write_all(&[1; 8192]).unwrap();
        writer.write_all(&[0; 8192]).unwrap();
        assert!(writer.write_all(&[1]).is_err() && writer.is_over_limit());
    }
}
