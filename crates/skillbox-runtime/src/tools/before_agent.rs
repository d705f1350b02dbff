//! `before_agent`: the host reports the start of a turn.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::json;
use skillbox_loader::{AgentName, AgentSpec, CallArguments, Inheritance, SkillFilter, TurnStartEffects};
use skillbox_model::SkillName;

use super::call_steps::concat_deltas;
use super::run_hooks::HookContext;
use super::tool_call::{HostMethod, ToolCall};
use super::tool_outcome::ToolOutcome;
use crate::agent::{AgentSession, ToolError};

/// The agent whose turn starts.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct BeforeAgentInput {
    /// The agent that starts this one; without it, the user does.
    #[serde(default)]
    parent: Option<AgentName>,
    /// What the agent inherits from its parent; by default, what the settings say.
    #[serde(default, alias = "subagent_inherit")]
    inheritance: Option<Inheritance>,
    /// The only skills that the agent can see; without it, all.
    #[serde(default)]
    skills: Option<BTreeSet<SkillName>>,
}

impl AgentSession {
    /// Starts an agent's turn: picks up changed skills, unloads skills that were loaded only for the last turn, and
    /// runs the hooks for the start. Returns `None` if nothing changes, for example at a second start in a row.
    ///
    /// ```
    /// # use skillbox_repository::{BUILT_IN_SKILLS, Repository, ScanOptions, Source};
    /// # use skillbox_runtime::{AgentOptions, AgentSession, AgentSpec, Dialect, Runtime, RuntimeSettings};
    /// # let repository = Repository::open(vec![Source::Embedded(&BUILT_IN_SKILLS)], ScanOptions::default());
    /// # let profiles = skillbox_sandbox::Profiles::shipped();
    /// # let runtime = Runtime::new(repository.into(), profiles, Vec::new(), RuntimeSettings::with_state_dir("unused"));
    /// # let session = AgentSession::open(runtime.into(), AgentOptions::new(Dialect::Deepagents))?;
    /// let start = session.before_agent(&AgentSpec::main())?.expect("the first turn adds the skills");
    /// assert_eq!(start.changed_keys["skills_loaded"], serde_json::json!([]));
    /// assert!(session.before_agent(&AgentSpec::main())?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn before_agent(&self, spec: &AgentSpec) -> Result<Option<ToolOutcome>, ToolError> {
        let step = self.start_turn(spec)?;
        let Some(TurnStartEffects { delta, hooks }) = step.value else {
            return Ok(None);
        };
        let hooks = self.run_hooks(hooks, HookContext::of_agent(&spec.agent), None);
        let notes = self.add_prompt_notes(&hooks, &spec.agent)?;
        let delta = concat_deltas([delta, notes]);
        let outcome = self
            .start_outcome(spec, !delta.is_empty())
            .with_change(delta, &step.before, &step.after, &spec.agent)
            .with_hooks(hooks);
        Ok(Some(outcome))
    }

    /// [`before_agent`](Self::before_agent), called by name.
    pub(super) fn call_before_agent(&self, call: &ToolCall) -> Result<ToolOutcome, ToolError> {
        let arguments = CallArguments {
            tool: HostMethod::BeforeAgent.as_str(),
            value: &call.arguments,
        };
        let BeforeAgentInput {
            parent,
            inheritance,
            skills,
        } = arguments.parse()?;
        let spec = AgentSpec {
            agent: call.agent.clone(),
            parent: parent.map(|parent| (parent, inheritance.unwrap_or(self.settings().subagent_inherit))),
            filter: skills.map_or(SkillFilter::All, SkillFilter::Only),
        };
        let outcome = self.before_agent(&spec)?;
        Ok(outcome.unwrap_or_else(|| self.start_outcome(&spec, false)))
    }

    fn start_outcome(&self, spec: &AgentSpec, has_changes: bool) -> ToolOutcome {
        let text = if has_changes {
            "the turn starts with changes"
        } else {
            "the turn starts"
        };
        let result = json!({"agent": spec.agent, "changed": has_changes});
        ToolOutcome::new(self.settings().dialect, result, text)
    }
}
