//! Looking at one directory: is it a skill, a group of further directories, or neither.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;

use crate::contained::ContainedDir;
use crate::entry::SkillEntry;
use crate::head::{Opened, SkillFile, open_linked_skill_md, open_skill_md};
use crate::listing::{Name, NameKind, is_skipped, list};
use crate::nested::{SKILL_FILES, note_nested};
use crate::place::{Notes, Place, What};
use crate::scan_note;
use crate::skill_md::parse_lenient;
use crate::source::{ScanOptions, SourceInfo};
use crate::stamp::{Identity, Stamp, identity};

/// A source that is open for looking.
pub(crate) struct Visitor<'a> {
    root: OwnedFd,
    source: &'a Arc<SourceInfo>,
    options: &'a ScanOptions,
}

/// A directory to look at.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) dir: PathBuf,
    pub(crate) depth: u8,
    /// The directories above it, so that a link back to one of them is noticed.
    pub(crate) above: Option<Arc<Lineage>>,
}

/// The identities of a directory and of those above it.
#[derive(Debug)]
pub(crate) struct Lineage {
    identity: Identity,
    above: Option<Arc<Lineage>>,
}

impl Lineage {
    pub(crate) fn of(identity: Identity, above: Option<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self { identity, above })
    }

    fn contains(this: Option<&Arc<Self>>, identity: Identity) -> bool {
        std::iter::successors(this, |lineage| lineage.above.as_ref()).any(|lineage| lineage.identity == identity)
    }
}

/// What a look gave.
pub(crate) enum Visit {
    /// The place, and the directories to look at next, in order.
    Found(Place, Vec<Candidate>),
    /// There is no such directory (any more).
    Gone,
}

impl<'a> Visitor<'a> {
    /// Opens the directory of a source; links on the way to it are followed.
    pub(crate) fn open(source: &'a Arc<SourceInfo>, options: &'a ScanOptions) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(rustix::fs::CWD, &source.root, flags, Mode::empty())?;
        Ok(Self { root, source, options })
    }

    pub(crate) fn options(&self) -> &ScanOptions {
        self.options
    }

    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// `path` relative to the descriptor of the source.
    pub(crate) fn relative<'p>(&self, path: &'p Path) -> &'p [u8] {
        let bytes = path.as_os_str().as_bytes();
        let rest = &bytes[self.source.root.as_os_str().len().min(bytes.len())..];
        match rest.strip_prefix(b"/").unwrap_or(rest) {
            b"" => b".",
            relative => relative,
        }
    }

    /// Looks at one directory. `buffer` is lent for reading and is not otherwise of interest.
    pub(crate) fn visit(&self, candidate: &Candidate, buffer: &mut Vec<u8>) -> Visit {
        let path = candidate.dir.join(SKILL_FILES[0]);
        match open_skill_md(self.root(), self.relative(&path), &path) {
            Opened::Missing => self.visit_without_skill_md(candidate, buffer),
            Opened::NotADirectory => Visit::Gone,
            // A link may be the file or the directory above it; only the directory itself can tell.
            Opened::Link => match self.open_directory(candidate) {
                Ok(directory) => self.visit_linked(candidate, &directory, &path, buffer),
                Err(gone_or_unreadable) => gone_or_unreadable,
            },
            opened => self.visit_opened(candidate, &path, opened, Linked::No, buffer),
        }
    }

    fn visit_without_skill_md(&self, candidate: &Candidate, buffer: &mut Vec<u8>) -> Visit {
        match self.open_directory(candidate) {
            Ok(directory) => self.visit_directory(candidate, &directory, buffer),
            Err(gone_or_unreadable) => gone_or_unreadable,
        }
    }

    fn visit_directory(&self, candidate: &Candidate, directory: &ContainedDir, buffer: &mut Vec<u8>) -> Visit {
        // The stamp comes before the listing, so that a change during the listing shows next time.
        let stat = match fstat(directory.descriptor()) {
            Ok(stat) => stat,
            Err(error) => return unreadable(candidate, &error.into()),
        };
        let listing = list(directory.descriptor(), |name, kind| match kind {
            NameKind::Directory | NameKind::Link if !is_skill_file(name) => !is_skipped(name),
            _ => is_skill_file(name),
        });
        // `SKILL.md` sorts before `skill.md`; the first can only have come since it was looked for.
        if let Some(name) = listing.names.iter().find(|name| is_skill_file(&name.bytes)) {
            let path = candidate.dir.join(OsStr::from_bytes(&name.bytes));
            return match open_skill_md(self.root(), self.relative(&path), &path) {
                Opened::Link => self.visit_linked(candidate, directory, &path, buffer),
                Opened::Missing => unusable(candidate, None, scan_note::vanished(&path)),
                opened => self.visit_opened(candidate, &path, opened, Linked::No, buffer),
            };
        }
        let mut notes = Notes::default();
        match listing.broke_off {
            // So the kernel tells of a directory that was removed while it is open.
            Some(error) if error.kind() == io::ErrorKind::NotFound => return Visit::Gone,
            Some(error) => notes.push(scan_note::unreadable(&candidate.dir, &error)),
            None => {}
        }
        self.group(candidate, &stat, &listing.names, notes)
    }

    fn group(&self, candidate: &Candidate, stat: &Stat, names: &[Name], mut notes: Notes) -> Visit {
        let identity = identity(stat);
        let mut below = Vec::new();
        let mut cut = false;
        if Lineage::contains(candidate.above.as_ref(), identity) {
            notes.push(scan_note::link_loop(&candidate.dir));
        } else {
            let lineage = Lineage::of(identity, candidate.above.clone());
            below = names
                .iter()
                .map(|name| (name.kind, candidate.dir.join(OsStr::from_bytes(&name.bytes))))
                .filter(|(kind, dir)| *kind == NameKind::Directory || self.is_worth_following(dir))
                .map(|(_, dir)| Candidate {
                    dir,
                    depth: candidate.depth + 1,
                    above: Some(lineage.clone()),
                })
                .collect();
            if candidate.depth >= self.options.max_depth {
                cut = !below.is_empty();
                below.clear();
            }
        }
        let what = What::Group {
            dir: candidate.dir.as_path().into(),
            stamp: Some(Stamp::new(stat)),
            cut,
        };
        Visit::Found(place(candidate, what, notes), below)
    }

    /// Whether a link leads to a directory, or should and does not.
    pub(crate) fn is_worth_following(&self, link: &Path) -> bool {
        match statat(self.root(), self.relative(link), AtFlags::empty()) {
            Ok(stat) => FileType::from_raw_mode(stat.st_mode) == FileType::Directory,
            Err(error) => error != Errno::NOTDIR,
        }
    }

    fn visit_linked(
        &self,
        candidate: &Candidate,
        directory: &ContainedDir,
        path: &Path,
        buffer: &mut Vec<u8>,
    ) -> Visit {
        let name = path.file_name().unwrap_or_default();
        let opened = open_linked_skill_md(directory, name, path);
        self.visit_opened(candidate, path, opened, Linked::Yes, buffer)
    }

    fn visit_opened(
        &self,
        candidate: &Candidate,
        path: &Path,
        opened: Opened,
        linked: Linked,
        buffer: &mut Vec<u8>,
    ) -> Visit {
        match opened {
            Opened::File(file) => self.visit_skill(candidate, path, &file, linked, buffer),
            Opened::Refused(note, stat) => {
                let stamp = stat.filter(|_| linked == Linked::No).map(|stat| Stamp::new(&stat));
                self.with_nested(candidate, unusable_place(candidate, stamp, note))
            }
            Opened::Missing | Opened::NotADirectory | Opened::Link => {
                unusable(candidate, None, scan_note::vanished(path))
            }
            Opened::Failed(error) => {
                // The refusal may be about the file or about the directory that it is in.
                match statat(self.root(), self.relative(path), AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => unusable(candidate, Some(Stamp::new(&stat)), scan_note::unreadable(path, &error)),
                    Err(_) => unreadable(candidate, &error),
                }
            }
        }
    }

    fn visit_skill(
        &self,
        candidate: &Candidate,
        path: &Path,
        file: &SkillFile,
        linked: Linked,
        buffer: &mut Vec<u8>,
    ) -> Visit {
        let stamp = Stamp::new(&file.stat);
        let head = match file.read_head(buffer) {
            Ok(head) => head,
            Err(error) => return unusable(candidate, Some(stamp), scan_note::unreadable(path, &error)),
        };
        let dir_name = candidate.dir.file_name().unwrap_or_default().to_string_lossy();
        let parsed = parse_lenient(path, &dir_name, head);
        let what = match parsed.meta {
            Some(meta) => What::Skill {
                entry: Arc::new(SkillEntry::on_disk(meta, path.into(), self.source.clone())),
                stamp,
                linked: linked == Linked::Yes,
            },
            None => What::Unusable {
                dir: candidate.dir.as_path().into(),
                stamp: Some(stamp).filter(|_| linked == Linked::No),
            },
        };
        let mut place = place(candidate, what, Notes::default());
        place.notes.extend(parsed.diagnostics);
        self.with_nested(candidate, place)
    }

    fn with_nested(&self, candidate: &Candidate, mut place: Place) -> Visit {
        let levels = self.options.max_depth.saturating_sub(candidate.depth);
        let relative = self.relative(&candidate.dir);
        note_nested(self.root(), relative, &candidate.dir, levels, &mut place.notes);
        Visit::Found(place, Vec::new())
    }

    fn open_directory(&self, candidate: &Candidate) -> Result<ContainedDir, Visit> {
        let relative = self.relative(&candidate.dir);
        ContainedDir::open_at(self.root(), relative).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => {
                match statat(self.root(), relative, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => {
                        let note = match error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) {
                            true => scan_note::link_loop(&candidate.dir),
                            false => scan_note::dangling_link(&candidate.dir),
                        };
                        unusable(candidate, None, note)
                    }
                    _ => Visit::Gone,
                }
            }
            _ => unreadable(candidate, &error),
        })
    }
}

/// Whether a SKILL.md was reached through a link.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Linked {
    No,
    Yes,
}

fn is_skill_file(name: &[u8]) -> bool {
    SKILL_FILES.iter().any(|file| file.as_bytes() == name)
}

fn place(candidate: &Candidate, what: What, notes: Notes) -> Place {
    Place {
        what,
        depth: candidate.depth,
        notes,
    }
}

fn unusable_place(candidate: &Candidate, stamp: Option<Stamp>, note: skillbox_model::Diagnostic) -> Place {
    let what = What::Unusable {
        dir: candidate.dir.as_path().into(),
        stamp,
    };
    let mut notes = Notes::default();
    notes.push(note);
    place(candidate, what, notes)
}

fn unusable(candidate: &Candidate, stamp: Option<Stamp>, note: skillbox_model::Diagnostic) -> Visit {
    Visit::Found(unusable_place(candidate, stamp, note), Vec::new())
}

fn unreadable(candidate: &Candidate, error: &io::Error) -> Visit {
    unusable(candidate, None, scan_note::unreadable(&candidate.dir, error))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::source::{Scope, Source};

    #[test]
    fn a_directory_that_goes_while_it_is_listed_is_gone_and_not_unreadable() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("skill");
        fs::create_dir(&dir).unwrap();
        let source = Source::Directory {
            path: place.path().to_owned(),
            scope: Scope::User,
        };
        let source = source.info();
        let options = ScanOptions::default();
        let visitor = Visitor::open(&source, &options).unwrap();
        let candidate = Candidate {
            dir: dir.clone(),
            depth: 1,
            above: None,
        };
        let Ok(open) = visitor.open_directory(&candidate) else {
            panic!("it is there");
        };
        assert!(matches!(
            visitor.visit_directory(&candidate, &open, &mut Vec::new()),
            Visit::Found(..)
        ));
        fs::remove_dir(&dir).unwrap();
        assert!(matches!(
            visitor.visit_directory(&candidate, &open, &mut Vec::new()),
            Visit::Gone
        ));
    }
}
