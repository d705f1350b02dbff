//! What a scan remembers of each directory it looked at, so that the next look can be short.

use std::cmp::Ordering;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use skillbox_model::Diagnostic;

use crate::entry::SkillEntry;
use crate::stamp::{Identity, Stamp};

/// One directory of a source, with what was found there.
#[derive(Debug)]
pub(crate) struct Place {
    /// What it is.
    pub(crate) what: What,
    /// Levels below the source.
    pub(crate) depth: u8,
    /// What there is to say about it. Most places have nothing, so the list is one pointer wide.
    pub(crate) notes: Notes,
}

/// What a directory turned out to be.
#[derive(Debug)]
pub(crate) enum What {
    /// No skill itself; skills may lie below.
    Group {
        /// The directory.
        dir: Box<Path>,
        /// Of the directory; none when it must be looked at anew each time.
        stamp: Option<Stamp>,
        /// Whether more directories lie below the depth that is searched.
        cut: bool,
    },
    /// A skill; nothing below it is searched.
    Skill {
        /// The skill.
        entry: Arc<SkillEntry>,
        /// Of its SKILL.md.
        stamp: Stamp,
        /// Whether its SKILL.md is a link.
        linked: bool,
    },
    /// A skill inside the program.
    Embedded {
        /// The skill.
        entry: Arc<SkillEntry>,
    },
    /// It has a SKILL.md that cannot be used, or cannot be looked into; the notes say why.
    Unusable {
        /// The directory.
        dir: Box<Path>,
        /// The file to look at again, with its stamp; none when it must be tried anew each time.
        stamp: Option<Stamp>,
    },
}

/// Findings about one place.
#[derive(Debug, Default)]
#[expect(
    clippy::box_collection,
    reason = "a place without findings, the usual case, pays one pointer"
)]
pub(crate) struct Notes(Option<Box<Vec<Diagnostic>>>);

impl Notes {
    pub(crate) fn push(&mut self, note: Diagnostic) {
        self.0.get_or_insert_default().push(note);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.0.iter().flat_map(|notes| notes.iter())
    }
}

impl Extend<Diagnostic> for Notes {
    fn extend<I: IntoIterator<Item = Diagnostic>>(&mut self, notes: I) {
        let mut notes = notes.into_iter().peekable();
        if notes.peek().is_some() {
            self.0.get_or_insert_default().extend(notes);
        }
    }
}

impl Place {
    /// The directory.
    pub(crate) fn dir(&self) -> &Path {
        match &self.what {
            What::Group { dir, .. } | What::Unusable { dir, .. } => dir,
            What::Skill { entry, .. } | What::Embedded { entry } => entry.dir(),
        }
    }

    /// Which directory it is, where it is a group: another one under the same path has other things in it.
    pub(crate) fn group_identity(&self) -> Option<Identity> {
        match &self.what {
            What::Group { stamp, .. } => stamp.as_ref().map(Stamp::identity),
            _ => None,
        }
    }

    /// The skill, where it is one.
    pub(crate) fn skill(&self) -> Option<&Arc<SkillEntry>> {
        match &self.what {
            What::Skill { entry, .. } | What::Embedded { entry } => Some(entry),
            _ => None,
        }
    }
}

/// The order of the catalogue: by path, component for component, so that a directory is followed by everything
/// below it and by nothing else.
pub(crate) fn path_order(a: &Path, b: &Path) -> Ordering {
    let (a, b) = (a.as_os_str().as_bytes(), b.as_os_str().as_bytes());
    let common = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let next = |path: &[u8]| path.get(common).map(|byte| if *byte == b'/' { 0 } else { *byte });
    next(a).cmp(&next(b))
}

/// Whether `path` lies below `directory`.
pub(crate) fn is_below(path: &Path, directory: &Path) -> bool {
    path.as_os_str()
        .as_bytes()
        .strip_prefix(directory.as_os_str().as_bytes())
        .is_some_and(|rest| rest.first() == Some(&b'/') || directory.as_os_str().as_bytes() == b"/" && !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_below_a_directory_follows_it_at_once() {
        let mut paths = ["/s/a-b", "/s/a/b", "/s/a", "/s", "/s/b", "/s/a/b/c", "/s/a!"].map(Path::new);
        paths.sort_by(|a, b| path_order(a, b));
        assert_eq!(
            paths,
            ["/s", "/s/a", "/s/a/b", "/s/a/b/c", "/s/a!", "/s/a-b", "/s/b"].map(Path::new)
        );
    }

    #[test]
    fn below_means_a_whole_component() {
        for (path, directory, below) in [
            ("/s/a", "/s", true),
            ("/s", "/s", false),
            ("/sa", "/s", false),
            ("/a", "/", true),
            ("/", "/", false),
        ] {
            assert_eq!(
                is_below(Path::new(path), Path::new(directory)),
                below,
                "{path} {directory}"
            );
        }
    }
}
