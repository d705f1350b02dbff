//! Runs the hooks of skills: commands run in the sandbox, and the host runs all other hooks.

use serde_json::{Map, Value, json};
use skillbox_executor::{CancelToken, EventSink};
use skillbox_loader::{AgentName, HookHandler, MatchedHook, NoteKind, PromptNote, StateDelta, StateOperation};
use skillbox_model::{ErrorBody, RunReport, RunRequest, Stdin};

use super::hook_outcome::{HookOutcome, HookStatus};
use crate::agent::{AgentSession, HookRunner, ToolError};
use crate::{RunContext, RunError};

/// The timeout of a hook that sets none.
const DEFAULT_TIMEOUT_SECONDS: f64 = 60.0;
/// Hooks receive null instead of a longer result.
const MAX_RESPONSE_BYTES: usize = 256 << 10;

/// The data that hooks receive about the event that fired them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HookContext<'c> {
    pub agent: &'c AgentName,
    /// The tool and its arguments, for events of tool calls.
    pub tool: Option<(&'c str, &'c Value)>,
    /// The result of the tool.
    pub response: Option<&'c Value>,
    /// Why the tool failed.
    pub error: Option<&'c str>,
    /// The data of an event that the host fired.
    pub event_input: Option<&'c Map<String, Value>>,
}

impl<'c> HookContext<'c> {
    /// An event of an agent, without further data.
    pub(crate) fn of_agent(agent: &'c AgentName) -> Self {
        Self {
            agent,
            tool: None,
            response: None,
            error: None,
            event_input: None,
        }
    }
}

impl AgentSession {
    /// Whether skillbox runs a command for one of the hooks.
    pub(crate) fn runs_commands(&self, hooks: &[MatchedHook]) -> bool {
        let is_command = |hook: &MatchedHook| matches!(hook.handler, HookHandler::Command { .. });
        self.hook_runner == HookRunner::Skillbox && hooks.iter().any(is_command)
    }

    /// Runs each hook, in order.
    pub(crate) fn run_hooks(
        &self,
        hooks: Vec<MatchedHook>,
        context: HookContext<'_>,
        cancel: Option<&CancelToken>,
    ) -> Vec<HookOutcome> {
        let run = |hook: MatchedHook| {
            let status = match &hook.handler {
                HookHandler::Command { command, timeout } if self.hook_runner == HookRunner::Skillbox => {
                    self.run_command_hook(&hook, command, *timeout, context, cancel)
                }
                _ => HookStatus::ForHost,
            };
            HookOutcome { hook, status }
        };
        hooks.into_iter().map(run).collect()
    }

    fn run_command_hook(
        &self,
        hook: &MatchedHook,
        command: &str,
        timeout: Option<f64>,
        context: HookContext<'_>,
        cancel: Option<&CancelToken>,
    ) -> HookStatus {
        let request = RunRequest {
            skill: hook.key.skill.to_string(),
            command: Some(command.to_owned()),
            stdin: Some(Stdin(self.hook_stdin(hook, context).to_string().into_bytes())),
            timeout: Some(self.hook_timeout(timeout)),
            ..RunRequest::default()
        };
        let skill = hook.key.skill.as_str();
        let checked = self.runtime.check_hook_command(&request, command, cancel);
        match checked
            .map_err(ToolError::from)
            .and_then(|()| self.run_in_sandbox(&request, EventSink::silent(), cancel))
        {
            Ok(report) => {
                tracing::info!(
                    skill,
                    event = hook.key.event.as_str(),
                    exit_code = report.exit_code,
                    "hook ran"
                );
                HookStatus::Completed(report.into())
            }
            Err(error) => {
                let error: ErrorBody = error.body(self.settings().dialect);
                tracing::warn!(
                    skill,
                    event = hook.key.event.as_str(),
                    error = error.message,
                    "hook could not run"
                );
                HookStatus::Refused { error }
            }
        }
    }

    /// The JSON that the hook reads on standard input.
    fn hook_stdin(&self, hook: &MatchedHook, context: HookContext<'_>) -> Value {
        let mut stdin = Value::Object(context.event_input.cloned().unwrap_or_default());
        // The data of the host's event cannot replace these.
        stdin["hook_event_name"] = json!(hook.key.event.as_str());
        stdin["session_id"] = json!(self.id());
        stdin["agent"] = json!(context.agent);
        stdin["skill"] = json!(hook.key.skill);
        if let Some((tool, arguments)) = context.tool {
            stdin["tool_name"] = json!(tool);
            stdin["tool_input"] = arguments.clone();
        }
        if let Some(response) = context.response {
            let fits = response.to_string().len() <= MAX_RESPONSE_BYTES;
            stdin["tool_response"] = if fits { response.clone() } else { Value::Null };
        }
        if let Some(error) = context.error {
            stdin["error"] = json!(error);
        }
        stdin
    }

    /// The timeout that the hook sets, up to the maximum of the profile.
    fn hook_timeout(&self, requested: Option<f64>) -> f64 {
        let timeout = requested
            .filter(|seconds| seconds.is_finite() && *seconds > 0.0)
            .unwrap_or(DEFAULT_TIMEOUT_SECONDS);
        // The run itself reports a missing profile.
        let max = self
            .runtime
            .resolve_profile(None)
            .map_or(timeout, |profile| profile.limits.wall_max.as_secs_f64());
        timeout.min(max)
    }

    /// Adds the context of hooks to the agent's next prompt.
    pub(crate) fn add_prompt_notes(&self, hooks: &[HookOutcome], agent: &AgentName) -> Result<StateDelta, ToolError> {
        let add_note = |outcome: &HookOutcome| {
            let note = PromptNote {
                skill: outcome.hook.key.skill.clone(),
                text: outcome.prompt_context()?.into(),
                kind: NoteKind::Hook,
            };
            Some(StateOperation::AddNote {
                agent: agent.clone(),
                note,
            })
        };
        let delta: StateDelta = hooks.iter().filter_map(add_note).collect();
        if !delta.is_empty() {
            self.apply(&delta)?;
        }
        Ok(delta)
    }

    /// Runs a request in the session's workspace.
    pub(crate) fn run_in_sandbox(
        &self,
        request: &RunRequest,
        events: EventSink<'_>,
        cancel: Option<&CancelToken>,
    ) -> Result<RunReport, ToolError> {
        let cancel = match cancel {
            Some(cancel) => cancel.clone(),
            None => CancelToken::new().map_err(ToolError::CancelToken)?,
        };
        let context = RunContext {
            session: self.id().cloned(),
            events,
            cancel,
            export: None,
            origin: self.origin.clone(),
            keep_files: false,
        };
        self.runtime
            .run(request, context)
            .map_err(|error: RunError| error.into())
    }
}

/// Refuses a call that one of its hooks blocks.
pub(crate) fn check_hooks_allow_call(hooks: &[HookOutcome], tool: &str) -> Result<(), ToolError> {
    for outcome in hooks {
        if let Some(reason) = outcome.block_reason() {
            let skill = outcome.hook.key.skill.clone();
            tracing::warn!(tool, skill = %skill, reason, "tool blocked by a hook");
            return Err(ToolError::BlockedByHook {
                skill,
                tool: tool.to_owned(),
                reason,
            });
        }
    }
    Ok(())
}
