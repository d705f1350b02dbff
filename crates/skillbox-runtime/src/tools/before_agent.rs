//! `before_agent`: a turn starts.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::json;
use skillbox_loader::{
    AgentName, AgentStart, CallArguments, Inheritance, SkillFilter, StateDelta, TurnStart, changed_keys,
};
use skillbox_model::SkillName;

use super::call::{HostVerb, ToolCall};
use super::error::ToolError;
use super::hook_outcome::HookOutcome;
use super::hook_run::Occasion;
use super::outcome::ToolOutcome;
use crate::agent::AgentSession;

/// What a host says about the agent whose turn starts.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct BeforeAgentInput {
    /// The agent that starts this one; without it, the user does.
    #[serde(default)]
    parent: Option<AgentName>,
    /// What comes over from the parent.
    #[serde(default)]
    inheritance: Inheritance,
    /// The only skills that it can see; without it, all.
    #[serde(default)]
    skills: Option<BTreeSet<SkillName>>,
}

impl AgentSession {
    /// Starts an agent's turn: what changed on disk comes in, what was loaded for the last turn goes, and hooks of
    /// the start are carried out. A second start with nothing in between changes nothing, and gives none.
    ///
    /// ```
    /// # use skillbox_repository::{BUILT_IN, Repository, ScanOptions, Source};
    /// # use skillbox_runtime::{AgentOptions, AgentSession, AgentStart, Dialect, Runtime, RuntimeSettings};
    /// # let repository = Repository::open(vec![Source::Embedded(&BUILT_IN)], ScanOptions::default());
    /// # let profiles = skillbox_sandbox::Profiles::shipped();
    /// # let runtime = Runtime::new(repository.into(), profiles, Vec::new(), RuntimeSettings::at("unused"));
    /// # let session = AgentSession::open(runtime.into(), AgentOptions::new(Dialect::Deepagents))?;
    /// let start = session.before_agent(&AgentStart::main())?.expect("the first turn brings the skills");
    /// assert_eq!(start.keys["skills_loaded"], serde_json::json!([]));
    /// assert!(session.before_agent(&AgentStart::main())?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn before_agent(&self, start: &AgentStart) -> Result<Option<ToolOutcome>, ToolError> {
        let stepped = self.start_turn(start)?;
        let Some(TurnStart { delta, hooks }) = stepped.value else {
            return Ok(None);
        };
        let occasion = Occasion {
            agent: &start.agent,
            tool: None,
            response: None,
        };
        let hooks = self.carry_out(hooks, occasion, None);
        let notes = self.note_contexts(&hooks, &start.agent)?;
        let delta = delta.operations.into_iter().chain(notes.operations).collect();
        let keys = changed_keys(self.settings().dialect, &stepped.before, &stepped.after, &start.agent);
        Ok(Some(self.started(start, delta, keys, hooks)))
    }

    /// The same, called by name.
    pub(super) fn call_before_agent(&self, call: &ToolCall) -> Result<ToolOutcome, ToolError> {
        let arguments = CallArguments {
            tool: HostVerb::BeforeAgent.as_str(),
            value: &call.arguments,
        };
        let BeforeAgentInput {
            parent,
            inheritance,
            skills,
        } = arguments.parse()?;
        let start = AgentStart {
            agent: call.agent.clone(),
            parent: parent.map(|parent| (parent, inheritance)),
            filter: skills.map_or(SkillFilter::All, SkillFilter::Only),
        };
        let nothing = || self.started(&start, StateDelta::default(), serde_json::Map::new(), Vec::new());
        Ok(self.before_agent(&start)?.unwrap_or_else(nothing))
    }

    fn started(
        &self,
        start: &AgentStart,
        delta: StateDelta,
        keys: serde_json::Map<String, serde_json::Value>,
        hooks: Vec<HookOutcome>,
    ) -> ToolOutcome {
        let changed = !delta.is_empty();
        ToolOutcome {
            result: json!({"agent": start.agent, "changed": changed}),
            text: if changed {
                "the turn starts with changes"
            } else {
                "the turn starts"
            }
            .to_owned(),
            delta,
            keys,
            hooks,
            dialect: self.settings().dialect,
            report: None,
        }
    }
}
