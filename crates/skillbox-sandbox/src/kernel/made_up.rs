//! Files that the kernel makes up as they are read.

use std::io;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::path::Arg;

/// Reads one whole. Their size is not told, and each read costs the kernel about as much as the whole: a large buffer
/// at once is right, where the standard library begins with small ones.
pub(crate) fn read(path: impl Arg) -> io::Result<String> {
    let file = openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 8 << 10];
        match rustix::io::read(&file, &mut piece) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
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
        for length in [0, 1, 8 << 10, (8 << 10) + 1, 100_000] {
            let path = directory.path().join(length.to_string());
            std::fs::write(&path, "x".repeat(length)).unwrap();
            assert_eq!(read(&path).unwrap().len(), length);
        }
        let own = read("/proc/self/limits").unwrap();
        assert_eq!(own, std::fs::read_to_string("/proc/self/limits").unwrap());
        assert!(read("/proc/self/no-such-file").is_err());
    }
}
