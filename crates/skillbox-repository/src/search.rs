//! Finding skills by words.
//!
//! Hits come in ranks: the exact name, a name that begins so, a name that holds the query, a description or path that
//! does, and last the words of the instructions. Bodies are read at query time, one at a time per core, and only when
//! the ranks before have left room; none is kept.
//!
//! Within a rank, hits are scored by BM25F over name, description and path (BM25 over bodies), then ordered by name. The
//! scoring is our own hundred lines rather than an index library's: a catalogue holds thousands of short texts that
//! change under it, so an index would cost more to keep than a query costs without one (tens of milliseconds for 20,000
//! skills), and the ranks above come first anyway. The same catalogue and query always give the same list.
//!
//! Scripts that put no blanks between words (Chinese, Japanese, Korean, Thai and others) are matched by pairs of
//! characters, so every passage of the query is found wherever it stands.

mod score;
mod words;

use std::num::NonZeroUsize;

use serde::Serialize;
use skillbox_model::SkillName;

use crate::catalog::Catalog;
use crate::entry::SkillEntry;
use crate::parallel::map_in_order;
use score::{Counts, Scorer};
use words::{Query, fold};

/// Words in the name weigh most, as people choose names with care.
const WEIGHTS: [f64; 3] = [8.0, 3.0, 2.0];
/// How much of a line is quoted.
const EXCERPT_CHARS: usize = 160;

/// How a skill answers a query, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rank {
    /// The query is its name.
    ExactName,
    /// Its name begins with the query.
    NamePrefix,
    /// Its name holds the query, or every word of it.
    Name,
    /// Its description or path holds the query or words of it.
    DescriptionOrPath,
    /// Its instructions hold words of the query.
    Body,
    /// The query was blank, and everything is listed.
    Listed,
}

/// A skill that answers a query.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hit {
    /// The skill.
    pub name: SkillName,
    /// How it answers.
    pub rank: Rank,
    /// How well it answers compared with others of the same rank.
    pub score: f64,
    /// The line of the instructions that answers, where only they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<Box<str>>,
}

/// The best `limit` answers of a catalogue to a query. A blank query lists the catalogue by name.
pub fn search(catalog: &Catalog, query: &str, limit: usize) -> Vec<Hit> {
    let query = Query::parse(query);
    let entries: Vec<&SkillEntry> = catalog.skills().collect();
    let mut hits = if query.is_blank() {
        entries.iter().map(|entry| hit(entry, Rank::Listed, 0.0)).collect()
    } else {
        search_metadata(&entries, &query)
    };
    hits.sort_by(order);
    if !query.is_blank() && hits.len() < limit {
        let mut names: Vec<_> = hits.iter().map(|hit| hit.name.as_str()).collect();
        names.sort_unstable();
        let others: Vec<&SkillEntry> = entries
            .into_iter()
            .filter(|entry| names.binary_search(&entry.name().as_str()).is_err())
            .collect();
        let mut bodies = search_bodies(&others, &query);
        bodies.sort_by(order);
        hits.extend(bodies);
    }
    hits.truncate(limit);
    hits
}

fn order(a: &Hit, b: &Hit) -> std::cmp::Ordering {
    let by_score = || b.score.total_cmp(&a.score);
    a.rank
        .cmp(&b.rank)
        .then_with(by_score)
        .then_with(|| a.name.cmp(&b.name))
}

fn hit(entry: &SkillEntry, rank: Rank, score: f64) -> Hit {
    Hit {
        name: entry.name().clone(),
        rank,
        score,
        excerpt: None,
    }
}

fn threads() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

fn search_metadata(entries: &[&SkillEntry], query: &Query) -> Vec<Hit> {
    let counted = map_in_order(
        entries,
        threads(),
        || (),
        |(), entry| {
            let path = entry.dir_in_source().to_string_lossy();
            let fields = [entry.name().as_str(), &*entry.meta.description, &*path];
            (
                fields.map(|text| query.count(text)),
                rank_of_metadata(entry, &path, query),
            )
        },
    );
    let scorer = Scorer::new(query.terms(), counted.iter().map(|(fields, _)| &fields[..]), &WEIGHTS);
    let ranked = counted.iter().zip(entries).filter_map(|((fields, rank), entry)| {
        let rank = (*rank).or_else(|| rank_by_words(fields, query))?;
        Some(hit(entry, rank, scorer.score(fields)))
    });
    ranked.collect()
}

/// The rank of a skill that holds the query as it was typed.
fn rank_of_metadata(entry: &SkillEntry, path: &str, query: &Query) -> Option<Rank> {
    let name = fold(entry.name().as_str());
    for wanted in query.spellings() {
        if name == wanted {
            return Some(Rank::ExactName);
        }
    }
    let any = |test: &dyn Fn(&str) -> bool| query.spellings().any(test);
    if any(&|wanted| name.starts_with(wanted)) {
        Some(Rank::NamePrefix)
    } else if any(&|wanted| name.contains(wanted)) {
        Some(Rank::Name)
    } else if any(&|wanted| fold(&entry.meta.description).contains(wanted) || fold(path).contains(wanted)) {
        Some(Rank::DescriptionOrPath)
    } else {
        None
    }
}

/// The rank of a skill that holds words of the query here and there.
fn rank_by_words(fields: &[Counts; 3], query: &Query) -> Option<Rank> {
    let [name, description, path] = fields;
    if query.terms() > 0 && (0..query.terms()).all(|term| name.weight(term) > 0.0) {
        Some(Rank::Name)
    } else if [name, description, path].iter().any(|field| field.any()) {
        Some(Rank::DescriptionOrPath)
    } else {
        None
    }
}

fn search_bodies(entries: &[&SkillEntry], query: &Query) -> Vec<Hit> {
    let counted = map_in_order(
        entries,
        threads(),
        || (),
        |(), entry| {
            // A skill that cannot be read now says so when it is loaded; it has no words to find.
            let text = entry.open().and_then(|skill| skill.instructions()).ok()?;
            let counts = query.count(&text.body);
            let excerpt = counts.first_match().map(|at| line_around(&text.body, at));
            Some(([counts], excerpt))
        },
    );
    let read = || counted.iter().flatten();
    let scorer = Scorer::new(query.terms(), read().map(|(counts, _)| &counts[..]), &[1.0]);
    let answers = counted.iter().zip(entries).filter_map(|(counted, entry)| {
        let (counts, excerpt) = counted.as_ref()?;
        let excerpt = excerpt.clone()?;
        Some(Hit {
            excerpt: Some(excerpt),
            ..hit(entry, Rank::Body, scorer.score(counts))
        })
    });
    answers.collect()
}

fn line_around(text: &str, at: usize) -> Box<str> {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    text[start..end]
        .trim()
        .chars()
        .take(EXCERPT_CHARS)
        .collect::<String>()
        .into()
}
