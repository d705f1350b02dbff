//! Skills that are embedded in the program.

use std::path::PathBuf;
use std::sync::OnceLock;

/// An embedded file. The executable bit is stored, so that the digest equals that of the same tree on disk.
#[derive(Debug)]
pub struct EmbeddedFile {
    /// The path below the directory of skills, with slashes, such as `csv-report/SKILL.md`.
    pub path: &'static str,
    /// The content.
    pub bytes: &'static [u8],
    /// Whether the owner may execute the file.
    pub is_executable: bool,
}

/// An embedded directory of skills.
#[derive(Debug)]
pub struct EmbeddedSkills {
    label: &'static str,
    pub(super) files: &'static [EmbeddedFile],
    /// The digest, if the build has computed it; else empty.
    pub(super) built_digest: &'static str,
    pub(super) computed_digest: OnceLock<String>,
}

/// The skills in the `skills/` directory of the repository.
pub static BUILT_IN_SKILLS: EmbeddedSkills = EmbeddedSkills {
    label: "built-in",
    files: BUILT_IN_FILES,
    built_digest: BUILT_IN_DIGEST,
    computed_digest: OnceLock::new(),
};

include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

impl EmbeddedSkills {
    /// Creates embedded skills from their files, which must be sorted by path.
    pub const fn new(label: &'static str, files: &'static [EmbeddedFile]) -> Self {
        Self {
            label,
            files,
            built_digest: "",
            computed_digest: OnceLock::new(),
        }
    }

    /// The display name of this source.
    pub fn label(&self) -> &'static str {
        self.label
    }

    /// The skills, ordered by directory.
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

/// An embedded skill.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EmbeddedSkill {
    source: &'static EmbeddedSkills,
    directory: &'static str,
    skill_md: &'static [u8],
}

impl EmbeddedSkill {
    /// The name of the directory.
    pub(crate) fn directory(&self) -> &'static str {
        self.directory
    }

    /// The set that the skill belongs to.
    pub(crate) fn source(&self) -> &'static EmbeddedSkills {
        self.source
    }

    /// The content of SKILL.md.
    pub(crate) fn skill_md(&self) -> &'static [u8] {
        self.skill_md
    }

    /// The path of SKILL.md to display; it does not exist in any file system.
    pub(crate) fn display_path(&self) -> PathBuf {
        PathBuf::from(format!("{}:{}/SKILL.md", self.source.label, self.directory))
    }

    /// The files and their paths below the skill, sorted.
    pub(super) fn files(&self) -> impl Iterator<Item = (&'static str, &'static EmbeddedFile)> {
        let directory = self.directory;
        self.source.files.iter().filter_map(move |file| {
            let below = file.path.strip_prefix(directory)?.strip_prefix('/')?;
            Some((below, file))
        })
    }

    /// Returns the file at a path below the skill.
    pub(super) fn file(&self, path: &[u8]) -> Option<&'static EmbeddedFile> {
        self.files()
            .find(|(below, _)| below.as_bytes() == path)
            .map(|(_, file)| file)
    }
}
