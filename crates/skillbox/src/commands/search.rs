//! `skillbox search`: skills by what they are about.

use std::num::NonZeroUsize;

use clap::Args;
use serde::Serialize;
use skillbox_repository::{Catalog, Hit, Rank, search};

use super::{Answer, Context};
use crate::catalogue;
use crate::render::{Page, Progress, Span, Terminal, Tone, display_width};

/// Search names, descriptions, paths and bodies, best first
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox search csv",
    "skillbox search chart of a table --limit 3",
    "skillbox search 数据 --json",
))]
pub struct SearchArgs {
    /// What to look for
    #[arg(required = true, value_name = "QUERY")]
    query: Vec<String>,
    /// Show at most this many
    #[arg(long, value_name = "N", default_value = "10")]
    limit: NonZeroUsize,
}

/// What was found, best first.
#[derive(Serialize)]
pub struct Hits {
    query: String,
    hits: Vec<Found>,
}

#[derive(Serialize)]
struct Found {
    #[serde(flatten)]
    hit: Hit,
    description: String,
    path: String,
    source: String,
}

pub fn run(args: &SearchArgs, context: &Context<'_>, terminal: &Terminal) -> Hits {
    let catalog = catalogue::open(context, terminal).catalog();
    let query = args.query.join(" ");
    Progress::during(terminal.is_watched(), "searching", |_| {
        Hits::of(&catalog, &query, args.limit.get())
    })
}

impl Hits {
    /// Searches a catalogue.
    pub fn of(catalog: &Catalog, query: &str, limit: usize) -> Self {
        let hits = search(catalog, query, limit).into_iter().filter_map(|hit| {
            let entry = catalog.get(hit.name.as_str())?;
            Some(Found {
                hit,
                description: entry.meta.description.to_string(),
                path: entry.path().display().to_string(),
                source: entry.source_label().to_owned(),
            })
        });
        Self {
            query: query.to_owned(),
            hits: hits.collect(),
        }
    }
}

impl Answer for Hits {
    fn render(&self, page: &mut Page) {
        if self.hits.is_empty() {
            page.line(&[Span::plain("nothing found for "), Span::new(Tone::Name, &self.query)]);
            page.paragraph(0, Tone::Dim, "try fewer words; `skillbox list` shows everything");
        }
        let widest = self
            .hits
            .iter()
            .map(|found| display_width(found.hit.name.as_str()))
            .max()
            .unwrap_or(0);
        let column = 2 + widest.min(24) + 2;
        for found in &self.hits {
            page.summary(
                2,
                Span::new(Tone::Name, found.hit.name.as_str()),
                column,
                2,
                &found.description,
            );
            let why = format!("{} · {}", reason(&found.hit), page.short(found.source.as_ref()));
            page.paragraph(column, Tone::Dim, &why);
        }
    }
}

/// Why a skill was found.
fn reason(hit: &Hit) -> String {
    let words = match hit.rank {
        Rank::ExactName => "is the name",
        Rank::NamePrefix => "begins the name",
        Rank::Name => "in the name",
        Rank::DescriptionOrPath => "in description or path",
        Rank::Body => "in the instructions",
        Rank::Listed => "listed",
    };
    match &hit.excerpt {
        Some(excerpt) => format!("{words}: {excerpt}"),
        None => words.to_owned(),
    }
}
