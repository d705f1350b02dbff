//! Finds skills.

use std::fmt::Write as _;

use skillbox_repository::{Rank, search};

use super::rank::ranked;
use crate::dialect::Dialect;
use crate::engine::{Answer, Engine};
use crate::loader_error::LoaderError;
use crate::one_line::one_line;
use crate::prompt::shown_directory;
use crate::skill_view::SkillView;
use crate::tools::{SearchHit, SearchInput, SearchResult};

/// More hits than this help no one.
const MOST_HITS: usize = 50;

impl Engine<'_> {
    /// Ranks the visible skills; a blank query lists all. Our own dialect looks into the instructions too.
    pub fn search(&self, input: &SearchInput) -> Result<Answer<SearchResult>, LoaderError> {
        let query = input.query.trim();
        let hits = match self.settings.dialect {
            Dialect::Saa => self.by_metadata(query),
            _ if query.is_empty() => self.by_metadata(query),
            _ => self.with_bodies(query),
        };
        let result = SearchResult {
            query: input.query.clone(),
            hits,
        };
        Ok(Answer {
            text: search_text(self.settings.dialect, &result),
            result,
            delta: Default::default(),
        })
    }

    fn by_metadata(&self, query: &str) -> Vec<SearchHit> {
        let hits = ranked(self.state.visible(self.agent), query);
        let most = if query.is_empty() { hits.len() } else { MOST_HITS };
        hits.into_iter()
            .take(most)
            .map(|(rank, skill)| self.hit(skill, rank))
            .collect()
    }

    /// The catalogue may know skills that this agent does not; they must not take the place of others.
    fn with_bodies(&self, query: &str) -> Vec<SearchHit> {
        let visible = self.state.visible(self.agent).count();
        let hidden = self.catalog.len().saturating_sub(visible);
        let found = search(self.catalog, query, MOST_HITS + hidden)
            .into_iter()
            .filter_map(|hit| {
                let skill = self.state.visible_skill(self.agent, hit.name.as_str())?;
                let mut shown = self.hit(skill, rank_number(hit.rank));
                shown.excerpt = hit.excerpt.map(String::from);
                Some(shown)
            });
        found.take(MOST_HITS).collect()
    }

    fn hit(&self, skill: &SkillView, rank: u8) -> SearchHit {
        SearchHit {
            name: skill.name.clone(),
            description: skill.description.to_string(),
            path: shown_directory(self.settings, skill).into_owned(),
            rank,
            excerpt: None,
            loaded: self.state.is_loaded(self.agent, &skill.name),
        }
    }
}

fn rank_number(rank: Rank) -> u8 {
    match rank {
        Rank::ExactName => 0,
        Rank::NamePrefix => 1,
        Rank::Name => 2,
        Rank::DescriptionOrPath | Rank::Listed => 3,
        Rank::Body => 4,
    }
}

fn search_text(dialect: Dialect, result: &SearchResult) -> String {
    if result.hits.is_empty() {
        return match dialect {
            Dialect::Saa => format!("No skills found matching: {}", one_line(&result.query)),
            _ => "no skill matches".to_owned(),
        };
    }
    let mut text = String::new();
    for hit in &result.hits {
        let (name, description) = (one_line(hit.name.as_str()), one_line(&hit.description));
        let _ = write!(text, "- **{name}**: {description} (path: `{}`)", one_line(&hit.path));
        if let Some(excerpt) = &hit.excerpt {
            let _ = write!(text, " (found in: {})", one_line(excerpt));
        }
        text.push('\n');
    }
    text
}
