//! One call's view of everything: settings, catalogue, state and agent.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use skillbox_repository::{Catalog, SkillEntry, nearest};

use crate::agent::AgentName;
use crate::delta::StateDelta;
use crate::dialect::Dialect;
use crate::loader_error::LoaderError;
use crate::settings::Settings;
use crate::skill_view::SkillView;
use crate::state::SkillsState;
use crate::turn_texts::TurnTexts;

/// The operations behind the tools. Each looks at the state, changes nothing, and answers with a delta.
#[derive(Clone, Copy, Debug)]
pub struct Engine<'e> {
    /// How the host wants it.
    pub settings: &'e Settings,
    /// Where skills are opened.
    pub catalog: &'e Catalog,
    /// What the session remembers.
    pub state: &'e SkillsState,
    /// What this turn has read.
    pub texts: &'e TurnTexts,
    /// Whose call it is.
    pub agent: &'e AgentName,
    /// On whose behalf.
    pub caller: Caller,
}

/// On whose behalf a call is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Caller {
    /// The model by itself.
    #[default]
    Model,
    /// A person.
    User,
}

/// What an operation gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer<T> {
    /// The result, for programs.
    pub result: T,
    /// The same in the words of the dialect, for the model.
    pub text: String,
    /// What it changes.
    pub delta: StateDelta,
}

impl<T> Answer<T> {
    /// The same with another form of the result.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Answer<U> {
        Answer {
            result: change(self.result),
            text: self.text,
            delta: self.delta,
        }
    }
}

impl<'e> Engine<'e> {
    /// The skill of that name, which the agent must be able to see.
    pub(crate) fn skill(&self, name: &str) -> Result<&'e Arc<SkillView>, LoaderError> {
        let skill = self
            .state
            .known_skill(self.agent, name)
            .ok_or_else(|| self.unknown_skill(name))?;
        if self.state.disabled().contains(&skill.name) {
            // Where there is no way to take it back, a disabled skill is no skill.
            return Err(match self.settings.dialect {
                Dialect::Skillbox => LoaderError::Disabled(name.to_owned()),
                _ => self.unknown_skill(name),
            });
        }
        Ok(skill)
    }

    /// The same as the catalogue has it, to be opened.
    pub(crate) fn entry(&self, skill: &SkillView) -> Result<&'e SkillEntry, LoaderError> {
        self.catalog
            .get(skill.name.as_str())
            .ok_or_else(|| LoaderError::Vanished {
                name: skill.name.to_string(),
                path: skill.path.as_ref().into(),
            })
    }

    pub(crate) fn unknown_skill(&self, name: &str) -> LoaderError {
        let visible = self.state.visible(self.agent).map(|skill| skill.name.as_str());
        let known = match self.settings.dialect {
            Dialect::Deepagents => visible.collect(),
            _ => nearest(name, visible, 3),
        };
        LoaderError::UnknownSkill {
            name: name.to_owned(),
            known: known.into_iter().map(str::to_owned).collect(),
        }
    }

    /// The names of what the agent has loaded.
    pub(crate) fn loaded_names(&self) -> Vec<String> {
        self.state
            .loaded(self.agent)
            .map(|loaded| loaded.skill.to_string())
            .collect()
    }
}
