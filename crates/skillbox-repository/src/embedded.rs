//! Skills that are part of the program.

use std::path::PathBuf;

/// One embedded file. The executable bit is kept, so that the digest equals that of the same tree on disk.
#[derive(Debug)]
pub struct EmbeddedFile {
    /// Slash path below the directory of skills, such as `csv-report/SKILL.md`.
    pub path: &'static str,
    /// The content.
    pub bytes: &'static [u8],
    /// Whether its owner may execute it.
    pub executable: bool,
}

/// A directory of skills inside the program.
#[derive(Debug)]
pub struct EmbeddedSkills {
    label: &'static str,
    files: &'static [EmbeddedFile],
}

/// The skills of the repository's `skills/` directory.
pub static BUILT_IN: EmbeddedSkills = EmbeddedSkills::new("built-in", BUILT_IN_FILES);

include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

impl EmbeddedSkills {
    /// Makes a source of files, which must be sorted by path.
    pub const fn new(label: &'static str, files: &'static [EmbeddedFile]) -> Self {
        Self { label, files }
    }

    /// The text that names this source to people.
    pub fn label(&self) -> &'static str {
        self.label
    }

    /// The skills, in the order of their directories.
    pub(crate) fn skills(&'static self) -> impl Iterator<Item = EmbeddedSkill> {
        self.files.iter().filter_map(move |file| {
            let directory = file.path.strip_suffix("/SKILL.md")?;
            (!directory.contains('/')).then_some(EmbeddedSkill {
                source: self,
                directory,
                skill_md: file.bytes,
            })
        })
    }
}

/// One skill inside the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EmbeddedSkill {
    source: &'static EmbeddedSkills,
    directory: &'static str,
    skill_md: &'static [u8],
}

impl EmbeddedSkill {
    /// The name of its directory.
    pub(crate) fn directory(&self) -> &'static str {
        self.directory
    }

    /// Its SKILL.md.
    pub(crate) fn skill_md(&self) -> &'static [u8] {
        self.skill_md
    }

    /// The path that people are shown; no file system has it.
    pub(crate) fn shown_path(&self) -> PathBuf {
        PathBuf::from(format!("{}:{}/SKILL.md", self.source.label, self.directory))
    }

    /// Its files with their paths below the skill, sorted.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&'static str, &'static EmbeddedFile)> {
        let directory = self.directory;
        self.source.files.iter().filter_map(move |file| {
            let below = file.path.strip_prefix(directory)?.strip_prefix('/')?;
            Some((below, file))
        })
    }

    /// One of its files.
    pub(crate) fn file(&self, path: &[u8]) -> Option<&'static EmbeddedFile> {
        self.files()
            .find(|(below, _)| below.as_bytes() == path)
            .map(|(_, file)| file)
    }
}
