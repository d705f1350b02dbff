//! The result of scanning one directory, stored so that a rescan can detect changes.

use std::path::Path;
use std::sync::Arc;

use skillbox_model::Diagnostic;

use super::pending_dir::PendingDir;
use crate::fs::{FileIdentity, FileStamp};
use crate::skill::SkillEntry;

/// One scanned directory of a source.
#[derive(Debug)]
pub(crate) struct ScannedDir {
    pub(crate) kind: DirKind,
    /// Levels below the source.
    pub(crate) depth: u8,
    /// Whether a directory above it contains a SKILL.md.
    pub(crate) is_in_skill: bool,
    pub(crate) diagnostics: DirDiagnostics,
}

/// What a directory is.
#[derive(Debug)]
pub(crate) enum DirKind {
    /// A directory without a SKILL.md. There may be skills below it.
    Group {
        /// The directory.
        dir: Box<Path>,
        /// The stamp of the directory; `None` if every rescan must read it.
        stamp: Option<FileStamp>,
        /// Whether directories below it exceed the maximum depth.
        exceeds_depth: bool,
    },
    /// A skill. There may be further skills below it.
    Skill {
        /// The skill.
        entry: Arc<SkillEntry>,
        /// The stamp of SKILL.md.
        stamp: FileStamp,
        /// Whether SKILL.md is a link.
        is_link: bool,
        /// The stamp of the directory; `None` if the directories in it are too deep to be scanned.
        dir_stamp: Option<FileStamp>,
    },
    /// A skill that is embedded in the program.
    EmbeddedSkill {
        /// The skill.
        entry: Arc<SkillEntry>,
    },
    /// The directory cannot be read, or its SKILL.md cannot be used. The diagnostics say why.
    Unusable {
        /// The directory.
        dir: Box<Path>,
        /// The stamp of SKILL.md; `None` if every rescan must read it.
        stamp: Option<FileStamp>,
        /// The stamp of the directory; `None` if the directories in it are not scanned.
        dir_stamp: Option<FileStamp>,
        /// What is known about the SKILL.md; `None` if the directory cannot be read.
        unloaded: Option<Box<UnloadedContent>>,
    },
}

/// What is known about a SKILL.md that cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnloadedContent {
    /// The path of SKILL.md.
    pub(crate) skill_md: Box<Path>,
    /// The name in the frontmatter, if there is one.
    pub(crate) declared_name: Option<Box<str>>,
    /// Whether the skill would load if its directory and its body provided the missing metadata.
    pub(crate) loads_with_fallback: bool,
}

impl UnloadedContent {
    pub(crate) fn new(skill_md: &Path) -> Self {
        Self {
            skill_md: skill_md.into(),
            declared_name: None,
            loads_with_fallback: false,
        }
    }
}

/// The diagnostics about one directory.
#[derive(Debug, Default)]
#[expect(
    clippy::box_collection,
    reason = "most directories have no diagnostics, and one pointer is the smallest representation"
)]
pub(crate) struct DirDiagnostics(Option<Box<Vec<Diagnostic>>>);

impl DirDiagnostics {
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        self.0.get_or_insert_default().push(diagnostic);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.0.iter().flat_map(|diagnostics| diagnostics.iter())
    }
}

impl Extend<Diagnostic> for DirDiagnostics {
    fn extend<I: IntoIterator<Item = Diagnostic>>(&mut self, diagnostics: I) {
        let mut diagnostics = diagnostics.into_iter().peekable();
        if diagnostics.peek().is_some() {
            self.0.get_or_insert_default().extend(diagnostics);
        }
    }
}

impl ScannedDir {
    /// A directory that cannot be read, for the reason in `diagnostic`.
    pub(crate) fn unusable(pending: &PendingDir, stamp: Option<FileStamp>, diagnostic: Option<Diagnostic>) -> Self {
        let mut diagnostics = DirDiagnostics::default();
        diagnostics.extend(diagnostic);
        Self {
            kind: DirKind::Unusable {
                dir: pending.dir.as_path().into(),
                stamp,
                dir_stamp: None,
                unloaded: None,
            },
            depth: pending.depth,
            is_in_skill: pending.is_in_skill,
            diagnostics,
        }
    }

    /// The path of the directory.
    pub(crate) fn dir(&self) -> &Path {
        match &self.kind {
            DirKind::Group { dir, .. } | DirKind::Unusable { dir, .. } => dir,
            DirKind::Skill { entry, .. } | DirKind::EmbeddedSkill { entry } => entry.dir(),
        }
    }

    /// The identity of the directory, to detect that another directory now has the same path.
    fn identity(&self) -> Option<FileIdentity> {
        let stamp = match &self.kind {
            DirKind::Group { stamp, .. } => stamp.as_ref(),
            DirKind::Skill { dir_stamp, .. } | DirKind::Unusable { dir_stamp, .. } => dir_stamp.as_ref(),
            DirKind::EmbeddedSkill { .. } => None,
        };
        stamp.map(FileStamp::identity)
    }

    /// Whether what was scanned below this directory is still valid below `later`: it is the same directory, and links
    /// below it are still followed or still not followed.
    pub(crate) fn has_same_subdirectories(&self, later: &Self) -> bool {
        self.identity() == later.identity() && self.is_around_skill_files() == later.is_around_skill_files()
    }

    /// Whether the directories in this one are inside a skill.
    pub(crate) fn is_around_skill_files(&self) -> bool {
        self.is_in_skill || self.skill_md().is_some()
    }

    /// The path of the SKILL.md in this directory, whether or not it can be used.
    pub(crate) fn skill_md(&self) -> Option<&Path> {
        match &self.kind {
            DirKind::Skill { entry, .. } | DirKind::EmbeddedSkill { entry } => Some(entry.skill_md_path()),
            DirKind::Unusable { unloaded, .. } => unloaded.as_ref().map(|unloaded| &*unloaded.skill_md),
            DirKind::Group { .. } => None,
        }
    }

    /// The skill, if the directory is one.
    pub(crate) fn skill(&self) -> Option<&Arc<SkillEntry>> {
        match &self.kind {
            DirKind::Skill { entry, .. } | DirKind::EmbeddedSkill { entry } => Some(entry),
            _ => None,
        }
    }
}
