//! Finds skills.

use std::fmt::Write as _;

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
    /// Ranks the visible skills by name, description and path; a blank query lists all.
    pub fn search(&self, input: &SearchInput) -> Result<Answer<SearchResult>, LoaderError> {
        let hits = ranked(self.state.visible(self.agent), &input.query);
        let blank = input.query.trim().is_empty();
        let most = if blank { hits.len() } else { MOST_HITS };
        let hits: Vec<SearchHit> = hits
            .into_iter()
            .take(most)
            .map(|(rank, skill)| self.hit(skill, rank))
            .collect();
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

    fn hit(&self, skill: &SkillView, rank: u8) -> SearchHit {
        SearchHit {
            name: skill.name.clone(),
            description: skill.description.to_string(),
            path: shown_directory(self.settings, skill),
            rank,
            loaded: self.state.is_loaded(self.agent, &skill.name),
        }
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
        let _ = writeln!(text, "- **{name}**: {description} (path: `{}`)", one_line(&hit.path));
    }
    text
}
