//! Finding every skill of a source: level by level, both cores at work, the result ordered by path.
//!
//! A level is looked at as a whole before the next one begins, so the bound on directories cuts at the same
//! place whatever the threads do. No descriptor but that of the source stays open, however wide the tree is.

use std::io;
use std::sync::Arc;

use crate::embedded::EmbeddedSkills;
use crate::entry::SkillEntry;
use crate::parallel::map_in_order;
use crate::place::{Notes, Place, What, path_order};
use crate::scan_note;
use crate::skill_md::parse_lenient;
use crate::source::{ScanOptions, Source, SourceInfo};
use crate::visit::{Candidate, Visit, Visitor};

/// A source with all that is known about it.
#[derive(Debug)]
pub(crate) struct ScannedSource {
    pub(crate) source: Source,
    pub(crate) info: Arc<SourceInfo>,
    /// Ordered by path. A source on disk always has a place for its own directory, which comes first.
    pub(crate) places: Vec<Place>,
    /// Whether the bound on directories was hit.
    pub(crate) cut_short: bool,
}

impl ScannedSource {
    /// Scans `source` from nothing.
    pub(crate) fn scan(source: Source, options: &ScanOptions) -> Self {
        let info = source.info();
        let mut scanned = Self {
            source,
            info,
            places: Vec::new(),
            cut_short: false,
        };
        match &scanned.source {
            Source::Embedded(skills) => scanned.places = embedded_places(skills, &scanned.info),
            Source::Directory { .. } | Source::OptionalDirectory { .. } => scanned.scan_directory(options),
        }
        scanned
    }

    pub(crate) fn scan_directory(&mut self, options: &ScanOptions) {
        let info = self.info.clone();
        match Visitor::open(&info, options) {
            Ok(visitor) => {
                let found = explore(&visitor, vec![self.root_candidate()], options.max_directories);
                self.places = found.places;
                self.cut_short = found.cut_short;
            }
            Err(error) => self.become_unusable(&error),
        }
    }

    pub(crate) fn root_candidate(&self) -> Candidate {
        Candidate {
            dir: self.info.root.clone(),
            depth: 0,
            above: None,
        }
    }

    /// Replaces everything by the reason why the source cannot be opened.
    pub(crate) fn become_unusable(&mut self, error: &io::Error) {
        let root = &self.info.root;
        let note = match (error.kind(), &self.source) {
            (io::ErrorKind::NotFound, Source::OptionalDirectory { .. }) => None,
            (io::ErrorKind::NotFound, _) => Some(scan_note::source_missing(root)),
            (io::ErrorKind::NotADirectory, _) => Some(scan_note::source_not_a_directory(root)),
            _ => Some(scan_note::unreadable(root, error)),
        };
        let mut notes = Notes::default();
        notes.extend(note);
        self.cut_short = false;
        self.places = vec![Place {
            what: What::Unusable {
                dir: root.as_path().into(),
                stamp: None,
            },
            depth: 0,
            notes,
        }];
    }
}

/// What an exploration found.
pub(crate) struct Explored {
    /// Ordered by path.
    pub(crate) places: Vec<Place>,
    /// Whether directories were left out because there were too many.
    pub(crate) cut_short: bool,
}

/// Looks at the candidates and at everything below them, at no more than `budget` directories in all.
pub(crate) fn explore(visitor: &Visitor<'_>, candidates: Vec<Candidate>, budget: usize) -> Explored {
    let mut places = Vec::new();
    let mut cut_short = false;
    let mut level = candidates;
    while !level.is_empty() {
        let left = budget.saturating_sub(places.len());
        cut_short |= level.len() > left;
        level.truncate(left);
        let visits = map_in_order(&level, visitor.options().threads, Vec::new, |buffer, candidate| {
            visitor.visit(candidate, buffer)
        });
        let mut next = Vec::new();
        for (visit, candidate) in visits.into_iter().zip(&level) {
            match visit {
                Visit::Found(place, below) => {
                    places.push(place);
                    next.extend(below);
                }
                Visit::Gone => places.push(vanished_place(candidate)),
            }
        }
        level = next;
    }
    // Each level is in order already, so this merges a few sorted runs.
    places.sort_by(|a, b| path_order(a.dir(), b.dir()));
    Explored { places, cut_short }
}

fn vanished_place(candidate: &Candidate) -> Place {
    let mut notes = Notes::default();
    notes.push(scan_note::vanished(&candidate.dir));
    Place {
        what: What::Unusable {
            dir: candidate.dir.as_path().into(),
            stamp: None,
        },
        depth: candidate.depth,
        notes,
    }
}

fn embedded_places(skills: &'static EmbeddedSkills, info: &Arc<SourceInfo>) -> Vec<Place> {
    let mut found: Vec<_> = skills.skills().collect();
    found.sort_by_key(|skill| skill.directory());
    found
        .into_iter()
        .map(|skill| {
            let path = skill.shown_path();
            let parsed = parse_lenient(&path, skill.directory(), skill.skill_md());
            let mut notes = Notes::default();
            notes.extend(parsed.diagnostics);
            let what = match parsed.meta {
                Some(meta) => What::Embedded {
                    entry: Arc::new(SkillEntry::in_program(meta, skill, info.clone())),
                },
                None => What::Unusable {
                    dir: path.into(),
                    stamp: None,
                },
            };
            Place { what, depth: 1, notes }
        })
        .collect()
}
