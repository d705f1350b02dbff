//! A directory of skills that a test changes while servers use it.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A temporary directory with `skills` and `state`.
pub struct SkillDir(TempDir);

impl SkillDir {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("skills")).unwrap();
        Self(dir)
    }

    /// The directory of the skills.
    pub fn skills(&self) -> PathBuf {
        self.0.path().join("skills")
    }

    /// The directory for the state of servers.
    pub fn state(&self) -> PathBuf {
        self.0.path().join("state")
    }

    /// Writes a skill; `fields` are the lines of its frontmatter after the name.
    pub fn write(&self, name: &str, fields: &str, body: &str) -> &Self {
        self.write_file(
            Path::new(name).join("SKILL.md"),
            &format!("---\nname: {name}\n{fields}\n---\n{body}"),
        )
    }

    /// Writes a file below the directory of the skills.
    pub fn write_file(&self, path: impl AsRef<Path>, text: &str) -> &Self {
        let path = self.skills().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    pub fn remove(&self, name: &str) {
        fs::remove_dir_all(self.skills().join(name)).unwrap();
    }
}
