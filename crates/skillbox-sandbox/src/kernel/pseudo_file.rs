//! Files of procfs, sysfs and cgroupfs, which the kernel generates on each read.

use std::io;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::path::Arg;

const CHUNK_BYTES: usize = 8 << 10;

/// Reads a whole pseudo file. The kernel does not report its size, and each read(2) takes about as long as generating
/// the whole file. This function therefore starts with a large buffer; the standard library starts with a small one.
pub(crate) fn read(path: impl Arg) -> io::Result<String> {
    let file = openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = Vec::new();
    loop {
        let mut chunk = [0; CHUNK_BYTES];
        match rustix::io::read(&file, &mut chunk) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_any_length_is_read_whole() {
        let directory = tempfile::tempdir().unwrap();
        for length in [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 100_000] {
            let path = directory.path().join(length.to_string());
            std::fs::write(&path, "x".repeat(length)).unwrap();
            assert_eq!(read(&path).unwrap().len(), length);
        }
        let own = read("/proc/self/limits").unwrap();
        assert_eq!(own, std::fs::read_to_string("/proc/self/limits").unwrap());
        assert!(read("/proc/self/no-such-file").is_err());
    }
}
