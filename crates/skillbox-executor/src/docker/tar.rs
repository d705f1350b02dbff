//! Writes the tar archive that an image is built from, in the ustar format of POSIX.1-1988.

const BLOCK_BYTES: usize = 512;

/// A file of the archive.
pub(super) struct TarFile<'a> {
    pub name: &'a str,
    pub mode: u32,
    pub content: &'a [u8],
}

/// Writes an archive. File names must be shorter than 100 bytes.
pub(super) fn write(files: &[TarFile<'_>]) -> Vec<u8> {
    let mut archive = Vec::new();
    for file in files {
        let mut header = [0_u8; BLOCK_BYTES];
        let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
        put(0, file.name);
        put(100, &format!("{:07o}\0", file.mode));
        put(108, "0000000\0");
        put(116, "0000000\0");
        put(124, &format!("{:011o}\0", file.content.len()));
        // A constant time, so that equal content gives an equal layer.
        put(136, "00000000000\0");
        put(148, "        ");
        put(156, "0");
        put(257, "ustar\0");
        put(263, "00");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        archive.extend_from_slice(&header);
        archive.extend_from_slice(file.content);
        archive.resize(archive.len().next_multiple_of(BLOCK_BYTES), 0);
    }
    archive.resize(archive.len() + 2 * BLOCK_BYTES, 0);
    archive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_contain_their_fields_and_checksum() {
        let archive = write(&[TarFile {
            name: "a",
            mode: 0o755,
            content: b"hi",
        }]);
        assert_eq!(archive.len(), 4 * BLOCK_BYTES);
        assert_eq!(&archive[100..107], b"0000755");
        assert_eq!(&archive[124..135], b"00000000002");
        let stored_sum = std::str::from_utf8(&archive[148..154]).unwrap();
        let mut header = archive[..BLOCK_BYTES].to_vec();
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        assert_eq!(u32::from_str_radix(stored_sum, 8).unwrap(), sum);
        assert_eq!(&archive[BLOCK_BYTES..BLOCK_BYTES + 2], b"hi");
    }
}
