//! The context of one call: settings, catalog, state and agent.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use skillbox_repository::{Catalog, SkillEntry, nearest_names};

use crate::agent::AgentName;
use crate::delta::StateDelta;
use crate::dialect::Dialect;
use crate::loader_error::LoaderError;
use crate::settings::Settings;
use crate::skill_view::SkillView;
use crate::state::SkillsState;
use crate::turn_text_cache::TurnTextCache;

/// The operations behind the tools. An operation reads the state, changes nothing, and returns a delta.
#[derive(Clone, Copy, Debug)]
pub struct Engine<'e> {
    /// The settings of the session.
    pub settings: &'e Settings,
    /// The catalog, to open skills.
    pub catalog: &'e Catalog,
    /// The state of the session.
    pub state: &'e SkillsState,
    /// The texts that this turn has read.
    pub texts: &'e TurnTextCache,
    /// The agent that makes the call.
    pub agent: &'e AgentName,
    /// On whose behalf the agent makes the call.
    pub caller: Caller,
}

/// On whose behalf a call is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Caller {
    /// The model's own decision.
    #[default]
    Model,
    /// A request of the user.
    User,
}

/// The outcome of an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer<T> {
    /// The result, for programs.
    pub result: T,
    /// The result as the dialect's text, for the model.
    pub text: String,
    /// The change of the state.
    pub delta: StateDelta,
}

impl<T> Answer<T> {
    /// Converts the result and keeps the rest.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Answer<U> {
        Answer {
            result: convert(self.result),
            text: self.text,
            delta: self.delta,
        }
    }
}

impl<'e> Engine<'e> {
    /// Finds a skill by name; it must be visible to the agent and enabled.
    pub(crate) fn find_skill(&self, name: &str) -> Result<&'e Arc<SkillView>, LoaderError> {
        let skill = self
            .state
            .known_skill(self.agent, name)
            .ok_or_else(|| self.unknown_skill(name))?;
        if self.state.disabled().contains(&skill.name) {
            // A dialect without a tool that enables skills reports a disabled skill as unknown.
            return Err(match self.settings.dialect {
                Dialect::Skillbox => LoaderError::Disabled(name.to_owned()),
                _ => self.unknown_skill(name),
            });
        }
        Ok(skill)
    }

    /// The catalog entry of a skill, to open it.
    pub(crate) fn catalog_entry(&self, skill: &SkillView) -> Result<&'e SkillEntry, LoaderError> {
        self.catalog
            .get(skill.name.as_str())
            .ok_or_else(|| LoaderError::SkillMissing {
                name: skill.name.to_string(),
                path: skill.path.as_ref().into(),
            })
    }

    pub(crate) fn unknown_skill(&self, name: &str) -> LoaderError {
        let visible = self.state.visible(self.agent).map(|skill| skill.name.as_str());
        let suggestions = match self.settings.dialect {
            Dialect::Deepagents => visible.collect(),
            _ => nearest_names(name, visible, 3),
        };
        LoaderError::UnknownSkill {
            name: name.to_owned(),
            suggestions: suggestions.into_iter().map(str::to_owned).collect(),
        }
    }

    /// The names of the skills that the agent has loaded.
    pub(crate) fn loaded_names(&self) -> Vec<String> {
        self.state
            .loaded(self.agent)
            .map(|loaded| loaded.skill.to_string())
            .collect()
    }
}
