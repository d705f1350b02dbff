//! Carries out the hooks of skills: commands run in the sandbox, everything else is for the host.

use serde_json::{Value, json};
use skillbox_executor::{Cancel, EventSink};
use skillbox_loader::{AgentName, FiredHook, HookHandler, PromptNote, StateDelta, StateOperation};
use skillbox_model::{ErrorBody, RunRequest, Stdin};

use super::error::ToolError;
use super::hook_outcome::{Carried, HookOutcome};
use crate::agent::{AgentSession, CommandHooks};
use crate::{RunContext, RunError};

/// Seconds for a hook that asks for none.
const DEFAULT_TIMEOUT: f64 = 60.0;
/// A result longer than this is not told to hooks.
const LONGEST_RESPONSE: usize = 256 << 10;

/// What hooks are told about the moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Occasion<'o> {
    pub agent: &'o AgentName,
    /// The tool and its arguments, where it is about one.
    pub tool: Option<(&'o str, &'o Value)>,
    /// What the tool gave.
    pub response: Option<&'o Value>,
}

impl AgentSession {
    /// Whether one of the hooks is a command that we run.
    pub(crate) fn runs_any(&self, hooks: &[FiredHook]) -> bool {
        let is_command = |hook: &FiredHook| matches!(hook.handler, HookHandler::Command { .. });
        self.hooks == CommandHooks::Run && hooks.iter().any(is_command)
    }

    /// Carries out each hook, in order.
    pub(crate) fn carry_out(
        &self,
        hooks: Vec<FiredHook>,
        occasion: Occasion<'_>,
        cancel: Option<&Cancel>,
    ) -> Vec<HookOutcome> {
        let carry = |hook: FiredHook| {
            let carried = match &hook.handler {
                HookHandler::Command { command, timeout } if self.hooks == CommandHooks::Run => {
                    self.run_hook(&hook, command, *timeout, occasion, cancel)
                }
                _ => Carried::ForHost,
            };
            HookOutcome { hook, carried }
        };
        hooks.into_iter().map(carry).collect()
    }

    fn run_hook(
        &self,
        hook: &FiredHook,
        command: &str,
        timeout: Option<f64>,
        occasion: Occasion<'_>,
        cancel: Option<&Cancel>,
    ) -> Carried {
        let request = RunRequest {
            skill: hook.key.skill.to_string(),
            command: Some(command.to_owned()),
            stdin: Some(Stdin(self.told(hook, occasion).to_string().into_bytes())),
            timeout: Some(self.hook_timeout(timeout)),
            ..RunRequest::default()
        };
        let skill = hook.key.skill.as_str();
        match self.run_in_sandbox(&request, EventSink::silent(), cancel) {
            Ok(report) => {
                tracing::info!(
                    skill,
                    event = hook.key.event.as_str(),
                    exit_code = report.exit_code,
                    "hook ran"
                );
                Carried::Ran(report.into())
            }
            Err(error) => {
                let error: ErrorBody = error.body(self.settings().dialect);
                tracing::warn!(
                    skill,
                    event = hook.key.event.as_str(),
                    error = error.message,
                    "hook could not run"
                );
                Carried::Refused { error }
            }
        }
    }

    /// What the hook reads on its standard input.
    fn told(&self, hook: &FiredHook, occasion: Occasion<'_>) -> Value {
        let mut told = json!({
            "hook_event_name": hook.key.event.as_str(),
            "session_id": self.id(),
            "agent": occasion.agent,
            "skill": hook.key.skill,
        });
        if let Some((tool, arguments)) = occasion.tool {
            told["tool_name"] = json!(tool);
            told["tool_input"] = arguments.clone();
        }
        if let Some(response) = occasion.response {
            let fits = response.to_string().len() <= LONGEST_RESPONSE;
            told["tool_response"] = if fits { response.clone() } else { Value::Null };
        }
        told
    }

    /// What the hook asks for, as far as the profile allows.
    fn hook_timeout(&self, asked: Option<f64>) -> f64 {
        let asked = asked
            .filter(|seconds| seconds.is_finite() && *seconds > 0.0)
            .unwrap_or(DEFAULT_TIMEOUT);
        // A profile that is missing is told by the run itself.
        let most = self
            .runtime
            .profile(None)
            .map_or(asked, |profile| profile.limits.wall_max.as_secs_f64());
        asked.min(most)
    }

    /// Notes what hooks have to say in the agent's next prompt.
    pub(crate) fn note_contexts(&self, hooks: &[HookOutcome], agent: &AgentName) -> Result<StateDelta, ToolError> {
        let note = |outcome: &HookOutcome| {
            let note = PromptNote {
                skill: outcome.hook.key.skill.clone(),
                text: outcome.context()?.into(),
            };
            Some(StateOperation::AddNote {
                agent: agent.clone(),
                note,
            })
        };
        let delta: StateDelta = hooks.iter().filter_map(note).collect();
        if !delta.is_empty() {
            self.apply(&delta)?;
        }
        Ok(delta)
    }

    /// One run with this session's workspace.
    pub(crate) fn run_in_sandbox(
        &self,
        request: &RunRequest,
        events: EventSink<'_>,
        cancel: Option<&Cancel>,
    ) -> Result<skillbox_model::RunReport, ToolError> {
        let cancel = match cancel {
            Some(cancel) => cancel.clone(),
            None => Cancel::new().map_err(ToolError::Cancel)?,
        };
        let context = RunContext {
            session: self.id().cloned(),
            events,
            cancel,
            export: None,
        };
        self.runtime
            .run(request, context)
            .map_err(|error: RunError| error.into())
    }
}

/// Refuses a call that one of the hooks before it stops.
pub(crate) fn pass_all(hooks: &[HookOutcome], tool: &str) -> Result<(), ToolError> {
    for outcome in hooks {
        if let Some(reason) = outcome.stops_call() {
            let skill = outcome.hook.key.skill.clone();
            tracing::warn!(tool, skill = %skill, reason, "tool blocked by a hook");
            return Err(ToolError::Stopped {
                skill,
                tool: tool.to_owned(),
                reason,
            });
        }
    }
    Ok(())
}
