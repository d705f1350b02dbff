//! The collected files of a run, kept for some minutes so that a client can fetch them when it has read the result.
//!
//! They are in one file without a name below the state directory: it takes one descriptor, and nothing of it is left when
//! the server ends.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use skillbox_model::Digest;
use skillbox_runtime::KeptOutput;

/// The files of one run.
#[derive(Debug)]
pub(crate) struct KeptFiles {
    content: Arc<File>,
    files: BTreeMap<String, KeptFile>,
    /// The bytes of all files.
    pub bytes: u64,
}

/// Where one file is.
#[derive(Clone, Debug)]
pub(crate) struct KeptFile {
    start: u64,
    pub size: u64,
    pub mime_type: String,
    pub digest: Digest,
}

impl KeptFiles {
    /// Copies the files.
    pub(crate) fn store(directory: &Path, outputs: Vec<KeptOutput>) -> io::Result<Self> {
        std::fs::create_dir_all(directory)?;
        let mut content = tempfile::tempfile_in(directory)?;
        let (mut files, mut start) = (BTreeMap::new(), 0);
        for mut output in outputs {
            output.file.rewind()?;
            let copied = io::copy(&mut output.file.take(output.size_bytes), &mut content)?;
            if copied != output.size_bytes {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let file = KeptFile {
                start,
                size: copied,
                mime_type: output.mime_type,
                digest: output.digest,
            };
            files.insert(output.name, file);
            start += copied;
        }
        Ok(Self {
            content: content.into(),
            files,
            bytes: start,
        })
    }

    /// Finds a file by its name in the report.
    pub(crate) fn get(&self, name: &str) -> Option<&KeptFile> {
        self.files.get(name)
    }

    /// Reads a part of a file.
    pub(crate) fn read(&self, file: &KeptFile, part: Range<u64>) -> impl Read + Send + 'static {
        FilePart {
            content: self.content.clone(),
            position: file.start + part.start.min(file.size),
            end: file.start + part.end.min(file.size),
        }
    }
}

struct FilePart {
    content: Arc<File>,
    position: u64,
    end: u64,
}

impl Read for FilePart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.position)).unwrap_or(usize::MAX);
        let length = buffer.len().min(left);
        let count = self.content.read_at(&mut buffer[..length], self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_has_its_own_content() {
        let directory = tempfile::tempdir().unwrap();
        let output = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            KeptOutput {
                name: name.to_owned(),
                size_bytes: text.len() as u64,
                mime_type: "text/plain".to_owned(),
                digest: Digest::from_sha256([0; 32]),
                file: File::open(path).unwrap(),
            }
        };
        let outputs = vec![output("a", "first"), output("b", ""), output("c", "third")];
        let kept = KeptFiles::store(&directory.path().join("kept"), outputs).unwrap();
        let read = |name: &str, part: Range<u64>| {
            let mut text = String::new();
            kept.read(kept.get(name).unwrap(), part)
                .read_to_string(&mut text)
                .unwrap();
            text
        };
        assert_eq!(
            (read("a", 0..5), read("b", 0..9), read("c", 1..3)),
            ("first".into(), String::new(), "hi".into())
        );
        assert_eq!((kept.bytes, kept.get("d").is_some()), (10, false));
        assert_eq!(std::fs::read_dir(directory.path().join("kept")).unwrap().count(), 0);
    }
}
