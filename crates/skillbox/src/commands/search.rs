//! `skillbox search`: ranked search over all skills.

use std::num::NonZeroUsize;

use clap::Args;
use serde::Serialize;
use skillbox_repository::{Catalog, SearchHit, SearchRank, search};

use super::output::CommandOutput;
use crate::catalog;
use crate::context::Context;
use crate::render::{Page, Progress, Span, Terminal, Tone, display_width};

/// Search names, descriptions, paths and instructions
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox search csv",
    "skillbox search chart of a table --limit 3",
    "skillbox search 数据 --json",
))]
pub struct SearchArgs {
    /// Words to search for
    #[arg(required = true, value_name = "QUERY")]
    query: Vec<String>,
    /// Maximum number of results
    #[arg(long, value_name = "N", default_value = "10")]
    limit: NonZeroUsize,
}

/// The matches, best first.
#[derive(Serialize)]
pub struct SearchResult {
    query: String,
    hits: Vec<Match>,
}

#[derive(Serialize)]
struct Match {
    #[serde(flatten)]
    hit: SearchHit,
    description: String,
    path: String,
    source: String,
}

pub fn run(args: &SearchArgs, context: &Context<'_>, terminal: &Terminal) -> SearchResult {
    let catalog = catalog::open_repository(context, terminal).catalog();
    let query = args.query.join(" ");
    Progress::show_during(terminal.is_stderr_terminal(), "searching", |_| {
        SearchResult::of(&catalog, &query, args.limit.get())
    })
}

impl SearchResult {
    /// Searches a catalog.
    pub fn of(catalog: &Catalog, query: &str, limit: usize) -> Self {
        let hits = search(catalog, query, limit).into_iter().filter_map(|hit| {
            let entry = catalog.get(hit.name.as_str())?;
            Some(Match {
                hit,
                description: entry.meta.description.to_string(),
                path: entry.skill_md_path().display().to_string(),
                source: entry.source_label().to_owned(),
            })
        });
        Self {
            query: query.to_owned(),
            hits: hits.collect(),
        }
    }
}

impl CommandOutput for SearchResult {
    fn render(&self, page: &mut Page) {
        if self.hits.is_empty() {
            page.line(&[Span::plain("no skill matches "), Span::new(Tone::Name, &self.query)]);
            page.paragraph(0, Tone::Dim, "try fewer words, or run `skillbox list` for all skills");
        }
        let widest = self
            .hits
            .iter()
            .map(|found| display_width(found.hit.name.as_str()))
            .max()
            .unwrap_or(0);
        let column = 2 + widest.min(24) + 2;
        for found in &self.hits {
            page.labelled_summary(
                2,
                Span::new(Tone::Name, found.hit.name.as_str()),
                column,
                2,
                &found.description,
            );
            let why = format!(
                "{} · {}",
                match_reason(&found.hit),
                page.short_path(found.source.as_ref())
            );
            page.paragraph(column, Tone::Dim, &why);
        }
    }
}

/// Why the skill matches.
fn match_reason(hit: &SearchHit) -> String {
    let words = match hit.rank {
        SearchRank::ExactName => "exact name",
        SearchRank::NamePrefix => "start of the name",
        SearchRank::Name => "name",
        SearchRank::DescriptionOrPath => "description or path",
        SearchRank::Body => "instructions",
        SearchRank::Listed => "listed",
    };
    match &hit.excerpt {
        Some(excerpt) => format!("{words}: {excerpt}"),
        None => words.to_owned(),
    }
}
