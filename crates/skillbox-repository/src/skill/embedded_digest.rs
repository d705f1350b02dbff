//! The digest of a set of embedded skills.

use skillbox_model::RelPath;

use super::digest::{TreeDigest, content_digest};
use super::embedded::{EmbeddedFile, EmbeddedSkills};

impl EmbeddedSkills {
    /// The digest of all files as hexadecimal digits. It identifies this set of skills on disk.
    pub fn digest(&self) -> &str {
        if self.built_digest.is_empty() {
            self.computed_digest.get_or_init(|| digest_files(self.files))
        } else {
            self.built_digest
        }
    }
}

fn digest_files(files: &[EmbeddedFile]) -> String {
    let mut digest = TreeDigest::new();
    for file in files {
        // The path is valid and the bytes are in memory, so neither step can fail.
        if let (Ok(path), Ok(content)) = (RelPath::parse(file.path), content_digest(file.bytes)) {
            digest.add_file(&path, file.is_executable, &content);
        }
    }
    digest.finish().hex()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::BUILT_IN_SKILLS;

    #[test]
    fn the_build_computes_the_same_digest() {
        assert_eq!(BUILT_IN_SKILLS.digest(), digest_files(BUILT_IN_SKILLS.files));
        assert_eq!(BUILT_IN_SKILLS.digest().len(), 64);
    }
}
