//! The context of one call: settings, catalog, state, agent and caller.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use skillbox_repository::{Catalog, SkillEntry, nearest_names};

use crate::agent::AgentName;
use crate::delta::StateDelta;
use crate::dialect::Dialect;
use crate::loader_error::{LoaderError, NotLoadedReason};
use crate::settings::Settings;
use crate::skill_view::SkillView;
use crate::state::SkillsState;
use crate::turn_text_cache::TurnTextCache;

/// The context of one call. Its methods are the operations behind the tools: an operation reads the state, changes
/// nothing, and returns a delta.
#[derive(Clone, Copy, Debug)]
pub struct CallContext<'c> {
    /// The settings of the session.
    pub settings: &'c Settings,
    /// The catalog, to open skills.
    pub catalog: &'c Catalog,
    /// The state of the session.
    pub state: &'c SkillsState,
    /// The texts that this turn has read.
    pub texts: &'c TurnTextCache,
    /// The agent that makes the call.
    pub agent: &'c AgentName,
    /// Who asked for the call.
    pub caller: Caller,
}

/// Who asked for a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Caller {
    /// The model.
    #[default]
    Model,
    /// The user.
    User,
    /// The host itself, to which no frontmatter denies an invocation.
    Host,
}

/// The result of an operation, and its change of the state.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationOutcome<T> {
    /// The result, for programs.
    pub result: T,
    /// The result as the dialect's text, for the model.
    pub text: String,
    /// The change of the state.
    pub delta: StateDelta,
}

impl<T> OperationOutcome<T> {
    /// Converts the result and keeps the rest.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> OperationOutcome<U> {
        OperationOutcome {
            result: convert(self.result),
            text: self.text,
            delta: self.delta,
        }
    }
}

impl<'c> CallContext<'c> {
    /// Finds a skill by name; it must be visible to the agent and enabled.
    pub(crate) fn find_skill(&self, name: &str) -> Result<&'c Arc<SkillView>, LoaderError> {
        let skill = self
            .state
            .skill_in_filter(self.agent, name)
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

    /// Refuses a skill that the caller may not invoke.
    pub(crate) fn check_caller(&self, skill: &SkillView) -> Result<(), LoaderError> {
        match self.caller {
            Caller::Model if skill.is_manual_only() => Err(LoaderError::ManualOnly(skill.name.to_string())),
            Caller::User if skill.is_model_only() => Err(LoaderError::ModelOnly(skill.name.to_string())),
            Caller::Model | Caller::User | Caller::Host => Ok(()),
        }
    }

    /// The catalog entry of a skill, to open it.
    pub(crate) fn catalog_entry(&self, skill: &SkillView) -> Result<&'c SkillEntry, LoaderError> {
        self.catalog
            .get(skill.name.as_str())
            .ok_or_else(|| LoaderError::SkillMissing {
                name: skill.name.to_string(),
                path: skill.path.as_ref().into(),
            })
    }

    pub(crate) fn unknown_skill(&self, name: &str) -> LoaderError {
        let is_new = || {
            let known = self.state.snapshot().and_then(|snapshot| snapshot.get(name));
            known.is_none() && self.catalog.get(name).is_some()
        };
        // The other dialects have a text of their own for every unknown skill.
        if matches!(self.settings.dialect, Dialect::Skillbox | Dialect::Trpc) && is_new() {
            return LoaderError::AddedDuringTurn(name.to_owned());
        }
        let visible = self.state.visible(self.agent).map(|skill| skill.name.as_str());
        let suggestions = match self.settings.dialect {
            Dialect::Deepagents => visible.collect(),
            _ => nearest_names(name, visible, 3),
        };
        LoaderError::UnknownSkill {
            name: name.to_owned(),
            suggestions: suggestions.into_iter().map(str::to_owned).collect(),
            not_loaded: self.why_not_loaded(name).map(Box::new),
        }
    }

    /// Why a skill did not load that the agent could see otherwise.
    fn why_not_loaded(&self, name: &str) -> Option<NotLoadedReason> {
        let finding = self.catalog.why_not_loaded(name)?;
        self.state.may_see(self.agent, name).then(|| NotLoadedReason {
            reason: finding.summary(),
            hint: finding.hint.clone(),
        })
    }

    /// The names of the skills that the agent has loaded.
    pub(crate) fn loaded_names(&self) -> Vec<String> {
        self.state
            .loaded(self.agent)
            .map(|loaded| loaded.skill.to_string())
            .collect()
    }
}
