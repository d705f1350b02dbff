//! One tool call, step by step: check → hooks before it → apply or run → hooks after it → outcome.
//!
//! A call is checked and applied to the state under one lock. Runs and commands of hooks happen outside that lock, so that
//! a slow command does not block the session.

use serde_json::{Map, Value, json};
use skillbox_executor::{CancelToken, EventSink};
use skillbox_loader::{
    FiredHooks, ForkRequest, HookEvent, MatchedHook, OperationOutcome, Session, SkillsState, StateDelta,
    StateOperation, ToolCallReply,
};
use skillbox_model::{RunReport, RunRequest};
use skillbox_repository::Catalog;

use super::hook_outcome::HookOutcome;
use super::run_hooks::check_hooks_allow_call;
use super::short_result::{WorkspaceLifetime, shorten_run_result};
use super::skill_run;
use super::tool_call::{HostMethod, ToolCall};
use super::tool_outcome::ToolOutcome;
use crate::agent::{AgentSession, CatalogRefresh, StepResult, ToolError};
use crate::session::Persist;

/// Whether the commands of the hooks before a call have run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HookCommands {
    Pending,
    Done,
}

/// A call that passed its check and was applied to the state.
struct CallAttempt {
    /// The hooks that run before the call.
    hooks_before: FiredHooks,
    applied: AppliedCall,
    /// Whether the changed state was stored.
    is_stored: bool,
}

impl CallAttempt {
    /// Whether the call has to be applied again once the commands of its hooks have run.
    fn must_apply_again(&self) -> bool {
        !self.is_stored && matches!(self.applied, AppliedCall::Answered { .. })
    }
}

/// The result of applying a call to the state.
enum AppliedCall {
    /// The call is answered from the state, without a run.
    Answered {
        outcome: OperationOutcome<Value>,
        /// The hooks that the call itself fired, and those that run after it.
        hooks_after: FiredHooks,
    },
    /// The call is a run, which does not change the state.
    Run(Box<RunRequest>),
    /// The call loads a skill in a session of its own, which does not change the state.
    Fork(Box<ForkRequest>),
}

/// A call that was made, but whose hooks after it have not run yet.
pub(super) struct CompletedCall {
    pub(super) result: Value,
    pub(super) text: String,
    pub(super) delta: StateDelta,
    /// The state before the call.
    pub(super) before: SkillsState,
    /// The state after the call.
    pub(super) after: SkillsState,
    /// The hooks that run after the call.
    pub(super) hooks_after: Vec<MatchedHook>,
    /// The hooks that fired in a fork.
    pub(super) hooks_in_fork: Vec<HookOutcome>,
    /// The report, if the call was a run.
    pub(super) report: Option<Box<RunReport>>,
}

impl AgentSession {
    /// Makes one call. A refused or failed call changes nothing.
    ///
    /// ```
    /// # use skillbox_repository::{BUILT_IN_SKILLS, Repository, ScanOptions, Source};
    /// # use skillbox_runtime::{AgentOptions, AgentSession, Dialect, Runtime, RuntimeSettings, ToolCall};
    /// # let repository = Repository::open(vec![Source::Embedded(&BUILT_IN_SKILLS)], ScanOptions::default());
    /// # let profiles = skillbox_sandbox::Profiles::shipped();
    /// # let runtime = Runtime::new(repository.into(), profiles, Vec::new(), RuntimeSettings::with_state_dir("unused"));
    /// # let session = AgentSession::open(runtime.into(), AgentOptions::new(Dialect::Skillbox))?;
    /// use serde_json::json;
    ///
    /// let loaded = session.call(&ToolCall::new("skill_load", json!({"skill": "csv-report"})))?;
    /// assert!(loaded.text.contains("# CSV report"), "the model reads the text");
    /// assert_eq!(loaded.state_delta()[0]["op"], "load", "the host stores the delta");
    ///
    /// let error = session.call(&ToolCall::new("skill_load", json!({"skill": "csv-repot"}))).unwrap_err();
    /// assert_eq!(error.code().as_str(), "unknown_skill");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn call(&self, call: &ToolCall) -> Result<ToolOutcome, ToolError> {
        self.call_with(call, EventSink::silent(), None)
    }

    /// Makes one call, with a listener for the events of a run and a token that cancels it.
    pub fn call_with(
        &self,
        call: &ToolCall,
        events: EventSink<'_>,
        cancel: Option<&CancelToken>,
    ) -> Result<ToolOutcome, ToolError> {
        let outcome = match HostMethod::from_name(&call.tool) {
            Some(HostMethod::BeforeAgent) => self.call_before_agent(call),
            Some(HostMethod::WrapToolCall) => self.call_wrap_tool_call(call),
            Some(HostMethod::AfterToolCall) => self.call_after_tool_call(call),
            Some(HostMethod::RegisterTools) => self.call_register_tools(call),
            Some(HostMethod::FireEvent) => self.call_fire_event(call),
            Some(HostMethod::ReturnResult) => self.call_return_result(call),
            None => self.call_tool(call, events, cancel),
        };
        self.log_response(call, &outcome);
        if outcome.is_ok() {
            self.store.record_use()?;
        }
        outcome
    }

    pub(super) fn call_tool(
        &self,
        call: &ToolCall,
        events: EventSink<'_>,
        cancel: Option<&CancelToken>,
    ) -> Result<ToolOutcome, ToolError> {
        let attempt = self.attempt_call(call, HookCommands::Pending)?;
        let hooks = attempt.value.hooks_before.hooks.clone();
        let hooks_before = self.run_hooks(hooks, call.hook_context(None), cancel);
        check_hooks_allow_call(&hooks_before, &call.tool)?;
        let attempt = if attempt.value.must_apply_again() {
            self.attempt_call(call, HookCommands::Done)?
        } else {
            attempt
        };
        let completed = self.complete_call(call, attempt, events, cancel);
        let completed = completed.inspect_err(|error| self.report_failure(call, error))?;
        self.finish_call(call, completed, hooks_before, cancel)
    }

    /// Checks a call and applies it to the current state.
    ///
    /// The change is not stored if a run or a hook's command has to run first. In that case the attempt only determines
    /// whether the call would be refused, so that no command runs for a call that cannot succeed.
    fn attempt_call(&self, call: &ToolCall, commands: HookCommands) -> Result<StepResult<CallAttempt>, ToolError> {
        self.run_step(CatalogRefresh::AsConfigured, |loader, catalog| {
            let hooks_before = check_call(call, loader, catalog)?;
            let applied = apply_call(call, loader, catalog)?;
            let is_stored = match &applied {
                AppliedCall::Run(_) | AppliedCall::Fork(_) => false,
                AppliedCall::Answered { .. } => {
                    commands == HookCommands::Done || !self.runs_commands(&hooks_before.hooks)
                }
            };
            let attempt = CallAttempt {
                hooks_before,
                applied,
                is_stored,
            };
            Ok((attempt, if is_stored { Persist::Changes } else { Persist::Nothing }))
        })
    }

    /// Runs the hooks for a call that was allowed but failed.
    fn report_failure(&self, call: &ToolCall, error: &ToolError) {
        let message = error.body(self.settings().dialect).message;
        let reported = self.after_failed_tool_call(&call.agent, &call.tool, &call.arguments, &message);
        if let Err(error) = reported {
            tracing::warn!(tool = call.tool, %error, "the hooks for a failed call did not run");
        }
    }

    /// Runs the request of a run, or forks; other calls are complete already.
    fn complete_call(
        &self,
        call: &ToolCall,
        attempt: StepResult<CallAttempt>,
        events: EventSink<'_>,
        cancel: Option<&CancelToken>,
    ) -> Result<CompletedCall, ToolError> {
        let StepResult { value, before, after } = attempt;
        let delta_before = value.hooks_before.delta;
        let (result, text, hooks_in_fork, report) = match value.applied {
            AppliedCall::Run(request) => {
                let report = self.run_in_sandbox(&request, events, cancel)?;
                let (result, text) = skill_run::report_as_tool_result(&report);
                (result, text, Vec::new(), Some(report.into()))
            }
            AppliedCall::Fork(request) => {
                let fork = self.fork_skill(call, &request, cancel)?;
                let started = self.fire_subagent_start(call, &request)?;
                (fork.result, fork.text, [fork.hooks, started].concat(), None)
            }
            AppliedCall::Answered { outcome, hooks_after } => {
                return Ok(CompletedCall {
                    result: without_hooks(outcome.result),
                    text: outcome.text,
                    delta: concat_deltas([delta_before, outcome.delta, hooks_after.delta]),
                    before,
                    after,
                    hooks_after: hooks_after.hooks,
                    hooks_in_fork: Vec::new(),
                    report: None,
                });
            }
        };
        let StepResult {
            value: hooks_after,
            before,
            after,
        } = self.run_step(CatalogRefresh::AsConfigured, |loader, _| {
            loader.apply(&delta_before);
            Ok((fire_post_tool_use(call, loader), Persist::Changes))
        })?;
        Ok(CompletedCall {
            result,
            text,
            delta: concat_deltas([delta_before, hooks_after.delta]),
            before,
            after,
            hooks_after: hooks_after.hooks,
            hooks_in_fork,
            report,
        })
    }

    /// Runs the hooks of this session's skills for the start of a fork.
    fn fire_subagent_start(&self, call: &ToolCall, request: &ForkRequest) -> Result<Vec<HookOutcome>, ToolError> {
        let agent_type = request.agent.as_deref().unwrap_or(request.skill.as_str());
        let input = Map::from_iter([("agent_type".to_owned(), json!(agent_type))]);
        let fired = self.fire_event(&call.agent, HookEvent::SubagentStart, &input)?;
        Ok(fired.hooks)
    }

    /// Runs the hooks after a call, and builds its outcome.
    pub(super) fn finish_call(
        &self,
        call: &ToolCall,
        completed: CompletedCall,
        hooks_before: Vec<HookOutcome>,
        cancel: Option<&CancelToken>,
    ) -> Result<ToolOutcome, ToolError> {
        let context = call.hook_context(Some(&completed.result));
        let hooks_after = self.run_hooks(completed.hooks_after, context, cancel);
        let notes = self.add_prompt_notes(&hooks_after, &call.agent)?;
        let delta = concat_deltas([completed.delta, notes]);
        let loaded = delta.operations.iter().filter_map(|operation| match operation {
            StateOperation::Load { skill, .. } => Some(skill),
            _ => None,
        });
        self.extract_skills(&self.runtime.catalog(), loaded);
        let (mut result, mut text) = (completed.result, completed.text);
        if let Some(report) = &completed.report {
            // The hooks after the call have seen the whole result.
            text = shorten_run_result(&mut result, report, self.inline_for_models, self.workspace_lifetime());
        }
        Ok(ToolOutcome::new(self.settings().dialect, result, text)
            .with_change(delta, &completed.before, &completed.after, &call.agent)
            .with_hooks([hooks_before, completed.hooks_in_fork, hooks_after].concat())
            .with_report(completed.report))
    }

    /// How long the files of a run can be read by their references.
    fn workspace_lifetime(&self) -> WorkspaceLifetime {
        match self.id() {
            Some(_) => WorkspaceLifetime::Session,
            None => WorkspaceLifetime::Run,
        }
    }

    /// Logs the event `tool.response` with the change of the state.
    fn log_response(&self, call: &ToolCall, outcome: &Result<ToolOutcome, ToolError>) {
        if !tracing::enabled!(tracing::Level::INFO) {
            return;
        }
        let (state_delta, error) = match outcome {
            Ok(outcome) => (outcome.state_delta().to_string(), None),
            Err(error) => ("[]".to_owned(), Some(error.code().as_str())),
        };
        let session = self.id().map(|id| id.as_str());
        tracing::info!(
            name: "tool.response",
            tool = call.tool,
            agent = call.agent.as_str(),
            session,
            dialect = self.settings().dialect.as_str(),
            state_delta,
            error,
            "tool.response"
        );
    }
}

/// Refuses a call of a tool that does not exist or that the policy forbids. Returns the hooks that run before the call.
fn check_call(call: &ToolCall, loader: &Session, catalog: &Catalog) -> Result<FiredHooks, ToolError> {
    loader.check_tool_exists(catalog, &call.agent, &call.tool)?;
    Ok(loader.wrap_tool_call(&call.agent, &call.tool, &call.arguments)?)
}

/// Applies a checked call to the state.
fn apply_call(call: &ToolCall, loader: &Session, catalog: &Catalog) -> Result<AppliedCall, ToolError> {
    let ToolCall {
        tool,
        arguments,
        agent,
        caller,
    } = call;
    match loader.call(catalog, agent, *caller, tool, arguments)? {
        ToolCallReply::Run(request) => {
            skill_run::check_other_skills(&request, catalog, &loader.state(), agent)?;
            Ok(AppliedCall::Run(request))
        }
        ToolCallReply::Fork(request) => Ok(AppliedCall::Fork(request)),
        ToolCallReply::Done { outcome, hooks } => {
            let after = fire_post_tool_use(call, loader);
            Ok(AppliedCall::Answered {
                outcome,
                hooks_after: FiredHooks {
                    hooks: [hooks, after.hooks].concat(),
                    delta: after.delta,
                },
            })
        }
    }
}

fn fire_post_tool_use(call: &ToolCall, loader: &Session) -> FiredHooks {
    let input = json!({"tool_name": call.tool});
    loader.fire_event(&call.agent, HookEvent::PostToolUse, &input)
}

/// The result without its fired hooks: the outcome lists them with their status.
fn without_hooks(mut result: Value) -> Value {
    if let Value::Object(fields) = &mut result {
        fields.remove("hooks");
    }
    result
}

/// Joins deltas in order.
pub(super) fn concat_deltas(deltas: impl IntoIterator<Item = StateDelta>) -> StateDelta {
    deltas.into_iter().flat_map(|delta| delta.operations).collect()
}
