//! The result of scanning one directory, stored so that a rescan can detect changes.

use std::path::Path;
use std::sync::Arc;

use skillbox_model::Diagnostic;

use crate::fs::{FileIdentity, FileStamp};
use crate::skill::SkillEntry;

/// One scanned directory of a source.
#[derive(Debug)]
pub(crate) struct ScannedDir {
    pub(crate) kind: DirKind,
    /// Levels below the source.
    pub(crate) depth: u8,
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
    /// A skill. The directories below it are not scanned.
    Skill {
        /// The skill.
        entry: Arc<SkillEntry>,
        /// The stamp of SKILL.md.
        stamp: FileStamp,
        /// Whether SKILL.md is a link.
        is_link: bool,
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
    },
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
    /// A directory that cannot be used, for the reason in `diagnostic`.
    pub(crate) fn unusable(dir: &Path, depth: u8, stamp: Option<FileStamp>, diagnostic: Option<Diagnostic>) -> Self {
        let mut diagnostics = DirDiagnostics::default();
        diagnostics.extend(diagnostic);
        Self {
            kind: DirKind::Unusable { dir: dir.into(), stamp },
            depth,
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

    /// The identity of a group, to detect that another directory now has the same path.
    pub(crate) fn group_identity(&self) -> Option<FileIdentity> {
        match &self.kind {
            DirKind::Group { stamp, .. } => stamp.as_ref().map(FileStamp::identity),
            _ => None,
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
