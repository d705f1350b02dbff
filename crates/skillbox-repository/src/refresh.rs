//! Bringing a scanned source up to date by touching only what changed.
//!
//! One look per directory that is no skill and one per SKILL.md tell what changed: a name that came or went shows
//! in its directory's stamp, an edit in the file's own. Nothing that is unchanged is opened, listed or parsed.
//! What a rescan does not see is a nested skill that came deep inside a skill whose own SKILL.md stayed: that is
//! advice, and is told when the skill itself changes or the source is scanned anew.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, statat};

use crate::catalog::Replacement;
use crate::discover::{ScannedSource, explore};
use crate::listing::is_skipped;
use crate::nested::SKILL_FILES;
use crate::parallel::map_in_order;
use crate::place::{Place, What, is_below, path_order};
use crate::second_look::has_changed;
use crate::source::{ScanOptions, Source};
use crate::stamp::{Comparison, identity};
use crate::visit::{Candidate, Lineage, Visit, Visitor};

/// What an update did.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// Looked at for the first time, or found to be another directory under the same path.
    pub(crate) came: Vec<PathBuf>,
    /// No longer there.
    pub(crate) went: Vec<PathBuf>,
    /// Skills that were read again, with nothing else different.
    pub(crate) replaced: Vec<Replacement>,
    /// Whether more is different than that.
    pub(crate) remade: bool,
}

impl ScannedSource {
    /// Looks at every place again and re-reads those that changed.
    pub(crate) fn rescan(&mut self, options: &ScanOptions, touched: &mut Touched) {
        self.look_again(options, touched, |source, visitor| {
            let threads = options.threads;
            let changed = map_in_order(&source.places, threads, || (), |(), place| has_changed(visitor, place));
            let dirty = (0..source.places.len()).filter(|index| changed[*index]).collect();
            (dirty, Vec::new())
        });
    }

    /// Looks at the given paths only: directories, their SKILL.md files, or names that came or went.
    pub(crate) fn recheck(&mut self, paths: &[PathBuf], options: &ScanOptions, touched: &mut Touched) {
        let root = self.info.root.clone();
        if !paths.iter().any(|path| *path == root || is_below(path, &root)) {
            return;
        }
        self.look_again(options, touched, |source, visitor| source.resolve(paths, visitor));
    }

    fn look_again(
        &mut self,
        options: &ScanOptions,
        touched: &mut Touched,
        choose: impl FnOnce(&Self, &Visitor<'_>) -> (Vec<usize>, Vec<Candidate>),
    ) {
        if matches!(self.source, Source::Embedded(_)) {
            return;
        }
        let info = self.info.clone();
        match Visitor::open(&info, options) {
            Ok(visitor) => {
                let (dirty, new) = choose(self, &visitor);
                if !dirty.is_empty() || !new.is_empty() {
                    self.update(&visitor, dirty, new, touched);
                    self.use_room(options, touched);
                }
            }
            Err(error) => {
                let known_as_unusable = matches!(
                    self.places[..],
                    [Place {
                        what: What::Unusable { .. },
                        ..
                    }]
                );
                let before = std::mem::take(&mut self.places);
                self.become_unusable(&error);
                touched.remade |= !known_as_unusable;
                touched.went.extend(before.iter().map(|place| place.dir().to_owned()));
            }
        }
    }

    /// What was cut off for want of room is not known, so room that came about is filled by a new scan.
    fn use_room(&mut self, options: &ScanOptions, touched: &mut Touched) {
        if self.cut_short && self.places.len() < options.max_directories {
            touched
                .went
                .extend(self.places.iter().map(|place| place.dir().to_owned()));
            self.scan_directory(options);
            touched
                .came
                .extend(self.places.iter().map(|place| place.dir().to_owned()));
            touched.remade = true;
        }
    }

    /// Finds the places and the new directories that paths from outside are about.
    fn resolve(&self, paths: &[PathBuf], visitor: &Visitor<'_>) -> (Vec<usize>, Vec<Candidate>) {
        let mut dirty = Vec::new();
        let mut new: Vec<Candidate> = Vec::new();
        for path in paths {
            if let Some(index) = self.find(path) {
                dirty.push(index);
                continue;
            }
            let Some(parent) = path.parent().and_then(|parent| self.find(parent)) else {
                continue;
            };
            // In a group a new directory is a candidate, and a file matters only if it makes the group a skill.
            match self.places[parent].what {
                What::Group { .. } if !is_skill_file(path) => new.extend(self.candidate(path, parent, visitor)),
                _ => dirty.push(parent),
            }
        }
        dirty.sort_unstable();
        dirty.dedup();
        dirty.retain(|index| has_changed(visitor, &self.places[*index]));
        (dirty, new)
    }

    fn candidate(&self, path: &Path, parent: usize, visitor: &Visitor<'_>) -> Option<Candidate> {
        let depth = self.places[parent].depth + 1;
        let name = path.file_name()?.as_bytes();
        if is_skipped(name) || depth > visitor.options().max_depth {
            return None;
        }
        let stat = statat(visitor.root(), visitor.relative(path), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {}
            FileType::Symlink if visitor.is_worth_following(path) => {}
            _ => return None,
        }
        Some(Candidate {
            dir: path.to_owned(),
            depth,
            above: self.lineage(path.parent()?, visitor),
        })
    }

    /// The identities from `dir` up to the source.
    fn lineage(&self, dir: &Path, visitor: &Visitor<'_>) -> Option<Arc<Lineage>> {
        let mut ways: Vec<&Path> = dir
            .ancestors()
            .take_while(|way| *way == self.info.root || is_below(way, &self.info.root))
            .collect();
        ways.reverse();
        let mut lineage = None;
        for way in ways {
            let stat = statat(visitor.root(), visitor.relative(way), AtFlags::empty()).ok()?;
            lineage = Some(Lineage::of(identity(&stat), lineage));
        }
        lineage
    }

    pub(crate) fn find(&self, dir: &Path) -> Option<usize> {
        self.places.binary_search_by(|place| path_order(place.dir(), dir)).ok()
    }

    /// Looks at the dirty places and at the new directories, and puts what it finds in the place of the old.
    fn update(&mut self, visitor: &Visitor<'_>, dirty: Vec<usize>, mut new: Vec<Candidate>, touched: &mut Touched) {
        let revisits: Vec<Candidate> = dirty.iter().map(|index| self.revisit(*index, visitor)).collect();
        let visits = map_in_order(&revisits, visitor.options().threads, Vec::new, |buffer, candidate| {
            visitor.visit(candidate, buffer)
        });
        let mut dropped = vec![false; self.places.len()];
        // From the top down: what was dropped with a place above is no longer of interest.
        for (index, visit) in dirty.into_iter().zip(visits) {
            match visit {
                _ if dropped[index] => {}
                Visit::Found(place, below) => self.replace(index, place, below, &mut new, &mut dropped, touched),
                Visit::Gone => {
                    dropped[index] = true;
                    self.drop_below(index, |_| true, &mut dropped);
                }
            }
        }
        self.splice(visitor, new, &dropped, touched);
    }

    fn revisit(&self, index: usize, visitor: &Visitor<'_>) -> Candidate {
        let place = &self.places[index];
        Candidate {
            dir: place.dir().to_owned(),
            depth: place.depth,
            above: place.dir().parent().and_then(|parent| self.lineage(parent, visitor)),
        }
    }

    fn replace(
        &mut self,
        index: usize,
        place: Place,
        below: Vec<Candidate>,
        new: &mut Vec<Candidate>,
        dropped: &mut [bool],
        touched: &mut Touched,
    ) {
        let still_there = |dir: &Path| below.binary_search_by(|it| path_order(&it.dir, dir)).is_ok();
        let same_directory = self.places[index].group_identity() == place.group_identity();
        self.drop_below(index, |dir| !same_directory || !still_there(dir), dropped);
        let old = std::mem::replace(&mut self.places[index], place);
        let fresh = &mut self.places[index];
        touched.remade |= !old.notes.iter().eq(fresh.notes.iter());
        match (&old.what, &mut fresh.what) {
            (
                What::Skill { entry: old, stamp, .. },
                What::Skill {
                    entry: new,
                    stamp: later,
                    ..
                },
            ) if old.name() == new.name() && old.path() == new.path() => {
                if stamp.compare(later) != Comparison::Different && old.meta == new.meta {
                    // It was only looked at again because the last look came too soon after a write.
                    *new = old.clone();
                } else {
                    let (old, new) = (old.clone(), new.clone());
                    touched.replaced.push(Replacement { old, new });
                }
            }
            (What::Group { cut: before, .. }, What::Group { cut: now, .. }) if before == now => {}
            _ => touched.remade = true,
        }
        touched.came.push(self.places[index].dir().to_owned());
        let is_unknown = |candidate: &Candidate| self.find(&candidate.dir).is_none_or(|known| dropped[known]);
        new.extend(below.into_iter().filter(is_unknown).collect::<Vec<_>>());
    }

    /// Drops what lies below a place, where its first component below the place is `gone`.
    fn drop_below(&self, index: usize, gone: impl Fn(&Path) -> bool, dropped: &mut [bool]) {
        let dir = self.places[index].dir();
        let depth = self.places[index].depth;
        let mut child_is_gone = false;
        for (place, dropped) in self.places.iter().zip(dropped).skip(index + 1) {
            if !is_below(place.dir(), dir) {
                break;
            }
            if place.depth == depth + 1 {
                child_is_gone = gone(place.dir());
            }
            *dropped |= child_is_gone;
        }
    }

    fn splice(&mut self, visitor: &Visitor<'_>, mut new: Vec<Candidate>, dropped: &[bool], touched: &mut Touched) {
        let mut index = 0;
        self.places.retain(|place| {
            index += 1;
            if dropped[index - 1] {
                touched.went.push(place.dir().to_owned());
            }
            !dropped[index - 1]
        });
        touched.remade |= dropped.contains(&true);
        // Judged only now: what was dropped may come again as another, and what lies above may have become a skill.
        new.retain(|candidate| self.is_wanted(&candidate.dir));
        new.sort_by(|a, b| path_order(&a.dir, &b.dir));
        new.dedup_by(|a, b| a.dir == b.dir);
        if new.is_empty() {
            return;
        }
        touched.remade = true;
        let budget = visitor.options().max_directories.saturating_sub(self.places.len());
        let found = explore(visitor, new, budget);
        self.cut_short |= found.cut_short;
        touched
            .came
            .extend(found.places.iter().map(|place| place.dir().to_owned()));
        self.places.extend(found.places);
        self.places.sort_by(|a, b| path_order(a.dir(), b.dir()));
    }

    /// Whether a directory is not known yet, in a group that is.
    fn is_wanted(&self, dir: &Path) -> bool {
        let parent = dir.parent().and_then(|parent| self.find(parent));
        let in_group = parent.is_some_and(|parent| matches!(self.places[parent].what, What::Group { .. }));
        in_group && self.find(dir).is_none()
    }
}

fn is_skill_file(path: &Path) -> bool {
    SKILL_FILES
        .iter()
        .any(|file| path.file_name() == Some(OsStr::new(file)))
}
