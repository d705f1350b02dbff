//! Searches skills.

use std::fmt::Write as _;

use skillbox_repository::{SearchRank, search};

use super::rank::rank_skills;
use crate::call_context::{CallContext, OperationOutcome};
use crate::dialect::Dialect;
use crate::loader_error::LoaderError;
use crate::prompt::shown_directory;
use crate::sanitize::sanitize_markdown_line;
use crate::skill_view::SkillView;
use crate::tool_interface::{SearchHit, SearchInput, SearchResult};

/// More hits are of no use to a model.
const MAX_HITS: usize = 50;

impl CallContext<'_> {
    /// Ranks the visible skills; a blank query lists all. Our own dialect also searches the instructions.
    pub fn search(&self, input: &SearchInput) -> Result<OperationOutcome<SearchResult>, LoaderError> {
        let query = input.query.trim();
        let hits = match self.settings.dialect {
            Dialect::Saa => self.search_metadata(query),
            _ if query.is_empty() => self.search_metadata(query),
            _ => self.search_all_text(query),
        };
        let result = SearchResult {
            query: input.query.clone(),
            hits,
        };
        Ok(OperationOutcome {
            text: render_hits(self.settings.dialect, &result),
            result,
            delta: Default::default(),
        })
    }

    fn search_metadata(&self, query: &str) -> Vec<SearchHit> {
        let hits = rank_skills(self.state.visible(self.agent), query);
        let max_hits = if query.is_empty() { hits.len() } else { MAX_HITS };
        hits.into_iter()
            .take(max_hits)
            .map(|(rank, skill)| self.build_hit(skill, rank))
            .collect()
    }

    /// Searches the catalog, and drops the skills that the agent cannot see. The search therefore asks for one more hit
    /// per such skill.
    fn search_all_text(&self, query: &str) -> Vec<SearchHit> {
        let visible = self.state.visible(self.agent).count();
        let hidden = self.catalog.len().saturating_sub(visible);
        let found = search(self.catalog, query, MAX_HITS + hidden)
            .into_iter()
            .filter_map(|hit| {
                let skill = self.state.visible_skill(self.agent, hit.name.as_str())?;
                let mut shown = self.build_hit(skill, rank_number(hit.rank));
                shown.excerpt = hit.excerpt.map(String::from);
                Some(shown)
            });
        found.take(MAX_HITS).collect()
    }

    fn build_hit(&self, skill: &SkillView, rank: u8) -> SearchHit {
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

fn rank_number(rank: SearchRank) -> u8 {
    match rank {
        SearchRank::ExactName => 0,
        SearchRank::NamePrefix => 1,
        SearchRank::Name => 2,
        SearchRank::DescriptionOrPath | SearchRank::Listed => 3,
        SearchRank::Body => 4,
    }
}

fn render_hits(dialect: Dialect, result: &SearchResult) -> String {
    if result.hits.is_empty() {
        return match dialect {
            Dialect::Saa => format!("No skills found matching: {}", sanitize_markdown_line(&result.query)),
            _ => "no skill matches".to_owned(),
        };
    }
    let mut text = String::new();
    for hit in &result.hits {
        let (name, description) = (
            sanitize_markdown_line(hit.name.as_str()),
            sanitize_markdown_line(&hit.description),
        );
        let _ = write!(
            text,
            "- **{name}**: {description} (path: `{}`)",
            sanitize_markdown_line(&hit.path)
        );
        if let Some(excerpt) = &hit.excerpt {
            let _ = write!(text, " (found in: {})", sanitize_markdown_line(excerpt));
        }
        text.push('\n');
    }
    text
}
