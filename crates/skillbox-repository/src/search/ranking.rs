//! Searches a catalog and ranks the hits.
//!
//! The ranks are: the exact name, a prefix of the name, a part of the name, the description or path, and last the
//! instructions. Bodies are read at query time, one at a time per thread, and only if the better ranks have fewer hits
//! than the limit. They are not kept in memory.
//!
//! Within a rank, hits are ordered by their BM25F score over name, description and path (BM25 over bodies), then by
//! name. There is no index: a catalog has thousands of short texts that may change at any time, so an index would cost
//! more than a query without one (tens of milliseconds for 20,000 skills). The same catalog and query always return the
//! same hits.
//!
//! Scripts without blanks between words (Chinese, Japanese, Korean, Thai and others) are matched by pairs of
//! characters, so that every part of the query is found at any position.

use std::num::NonZeroUsize;

use serde::Serialize;
use skillbox_model::SkillName;

use super::query::{Query, normalize_text};
use super::score::{Scorer, TermCounts};
use crate::catalog::Catalog;
use crate::parallel::map_in_order;
use crate::skill::SkillEntry;

/// The weights of name, description and path. Names have the highest weight, because authors choose them carefully.
const FIELD_WEIGHTS: [f64; 3] = [8.0, 3.0, 2.0];
/// The maximum length of an excerpt.
const MAX_EXCERPT_CHARS: usize = 160;

/// Where a skill matches a query, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchRank {
    /// The query is the name.
    ExactName,
    /// The name begins with the query.
    NamePrefix,
    /// The name contains the query, or all of its words.
    Name,
    /// The description or the path contains the query or some of its words.
    DescriptionOrPath,
    /// The instructions contain some words of the query.
    Body,
    /// The query is blank, and all skills are listed.
    Listed,
}

/// A skill that matches a query.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchHit {
    /// The name of the skill.
    pub name: SkillName,
    /// Where the skill matches.
    pub rank: SearchRank,
    /// How well the skill matches, compared to others of the same rank.
    pub score: f64,
    /// The matching line of the instructions, if only they match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<Box<str>>,
}

/// Returns the best `limit` hits for a query. A blank query lists the catalog by name.
pub fn search(catalog: &Catalog, query: &str, limit: usize) -> Vec<SearchHit> {
    let query = Query::parse(query);
    let entries: Vec<&SkillEntry> = catalog.skills().collect();
    let mut hits = if query.is_blank() {
        entries
            .iter()
            .map(|entry| new_hit(entry, SearchRank::Listed, 0.0))
            .collect()
    } else {
        search_metadata(&entries, &query)
    };
    hits.sort_by(compare_hits);
    if !query.is_blank() && hits.len() < limit {
        let mut names: Vec<_> = hits.iter().map(|hit| hit.name.as_str()).collect();
        names.sort_unstable();
        let others: Vec<&SkillEntry> = entries
            .into_iter()
            .filter(|entry| names.binary_search(&entry.name().as_str()).is_err())
            .collect();
        let mut bodies = search_bodies(&others, &query);
        bodies.sort_by(compare_hits);
        hits.extend(bodies);
    }
    hits.truncate(limit);
    hits
}

fn compare_hits(a: &SearchHit, b: &SearchHit) -> std::cmp::Ordering {
    let by_score = || b.score.total_cmp(&a.score);
    a.rank
        .cmp(&b.rank)
        .then_with(by_score)
        .then_with(|| a.name.cmp(&b.name))
}

fn new_hit(entry: &SkillEntry, rank: SearchRank, score: f64) -> SearchHit {
    SearchHit {
        name: entry.name().clone(),
        rank,
        score,
        excerpt: None,
    }
}

fn thread_count() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

fn search_metadata(entries: &[&SkillEntry], query: &Query) -> Vec<SearchHit> {
    let counted = map_in_order(
        entries,
        thread_count(),
        || (),
        |(), entry| {
            let path = entry.dir_in_source().to_string_lossy();
            let fields = [entry.name().as_str(), &*entry.meta.description, &*path];
            (
                fields.map(|text| query.count_terms(text)),
                rank_by_text(entry, &path, query),
            )
        },
    );
    let scorer = Scorer::new(
        query.term_count(),
        counted.iter().map(|(fields, _)| &fields[..]),
        &FIELD_WEIGHTS,
    );
    let ranked = counted.iter().zip(entries).filter_map(|((fields, rank), entry)| {
        let rank = (*rank).or_else(|| rank_by_words(fields, query))?;
        Some(new_hit(entry, rank, scorer.score(fields)))
    });
    ranked.collect()
}

/// The rank of a skill that contains the query as typed.
fn rank_by_text(entry: &SkillEntry, path: &str, query: &Query) -> Option<SearchRank> {
    let name = normalize_text(entry.name().as_str());
    for wanted in query.spellings() {
        if name == wanted {
            return Some(SearchRank::ExactName);
        }
    }
    let any = |test: &dyn Fn(&str) -> bool| query.spellings().any(test);
    if any(&|wanted| name.starts_with(wanted)) {
        Some(SearchRank::NamePrefix)
    } else if any(&|wanted| name.contains(wanted)) {
        Some(SearchRank::Name)
    } else if any(&|wanted| {
        normalize_text(&entry.meta.description).contains(wanted) || normalize_text(path).contains(wanted)
    }) {
        Some(SearchRank::DescriptionOrPath)
    } else {
        None
    }
}

/// The rank of a skill that contains words of the query.
fn rank_by_words(fields: &[TermCounts; 3], query: &Query) -> Option<SearchRank> {
    let [name, description, path] = fields;
    if query.term_count() > 0 && (0..query.term_count()).all(|term| name.weight(term) > 0.0) {
        Some(SearchRank::Name)
    } else if [name, description, path].iter().any(|field| field.has_match()) {
        Some(SearchRank::DescriptionOrPath)
    } else {
        None
    }
}

fn search_bodies(entries: &[&SkillEntry], query: &Query) -> Vec<SearchHit> {
    let counted = map_in_order(
        entries,
        thread_count(),
        || (),
        |(), entry| {
            // A skill that cannot be read has no hits; loading it reports the error.
            let text = entry.open().and_then(|skill| skill.read_skill_md()).ok()?;
            let counts = query.count_terms(&text.body);
            let excerpt = counts.first_match().map(|at| excerpt_at(&text.body, at));
            Some(([counts], excerpt))
        },
    );
    let readable = || counted.iter().flatten();
    let scorer = Scorer::new(query.term_count(), readable().map(|(counts, _)| &counts[..]), &[1.0]);
    let hits = counted.iter().zip(entries).filter_map(|(counted, entry)| {
        let (counts, excerpt) = counted.as_ref()?;
        let excerpt = excerpt.clone()?;
        Some(SearchHit {
            excerpt: Some(excerpt),
            ..new_hit(entry, SearchRank::Body, scorer.score(counts))
        })
    });
    hits.collect()
}

fn excerpt_at(text: &str, at: usize) -> Box<str> {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    text[start..end]
        .trim()
        .chars()
        .take(MAX_EXCERPT_CHARS)
        .collect::<String>()
        .into()
}
