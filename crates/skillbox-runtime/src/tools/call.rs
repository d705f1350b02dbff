//! The way of a tool call: known → allowed → hooks before → done or run → kept → hooks after → told.

use serde_json::Value;
use skillbox_executor::{Cancel, EventSink};
use skillbox_loader::{
    AgentName, Answer, Caller, FiredHook, Reply, Session, SkillsState, StateDelta, ToolPass, changed_keys,
};
use skillbox_model::RunReport;
use skillbox_repository::Catalog;

use super::error::ToolError;
use super::hook_outcome::HookOutcome;
use super::hook_run::{Occasion, pass_all};
use super::outcome::ToolOutcome;
use super::run;
use crate::agent::{AgentSession, Entry, Keep, Stepped};

/// One call, as a model or a host makes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The tool's name in the dialect of the session, or the name of a [`HostVerb`].
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// Whose call it is.
    pub agent: AgentName,
    /// On whose behalf.
    pub caller: Caller,
}

impl ToolCall {
    /// A call of the main agent's model.
    pub fn new(tool: impl Into<String>, arguments: Value) -> Self {
        Self {
            tool: tool.into(),
            arguments,
            agent: AgentName::default(),
            caller: Caller::default(),
        }
    }

    fn occasion<'o>(&'o self, response: Option<&'o Value>) -> Occasion<'o> {
        Occasion {
            agent: &self.agent,
            tool: Some((&self.tool, &self.arguments)),
            response,
        }
    }
}

/// What a host, rather than its model, calls by name: the way to the hooks for hosts in any language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostVerb {
    /// A turn starts.
    BeforeAgent,
    /// May this tool, ours or not, be called now?
    WrapToolCall,
    /// It was called.
    AfterToolCall,
}

impl HostVerb {
    /// Every verb.
    pub const ALL: &'static [Self] = &[Self::BeforeAgent, Self::WrapToolCall, Self::AfterToolCall];

    /// The name to call it by.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BeforeAgent => "before_agent",
            Self::WrapToolCall => "wrap_tool_call",
            Self::AfterToolCall => "after_tool_call",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|verb| verb.as_str() == name)
    }
}

/// A call that was looked at, and made as far as the state can make it.
struct Attempt {
    pass: ToolPass,
    reply: Reply,
    /// What follows the call; there only once the call is made and kept.
    after: Option<ToolPass>,
}

impl Attempt {
    /// Whether the state could make the call, but a hook's command has to run first.
    fn is_put_off(&self) -> bool {
        matches!(self.reply, Reply::Done(_)) && self.after.is_none()
    }
}

/// A call that was made.
pub(super) struct Made {
    pub(super) result: Value,
    pub(super) text: String,
    pub(super) delta: StateDelta,
    /// The state around it.
    pub(super) before: SkillsState,
    pub(super) after: SkillsState,
    /// Hooks that came before it.
    pub(super) hooks: Vec<HookOutcome>,
    /// Hooks whose moment came with the call or after it.
    pub(super) next: Vec<FiredHook>,
    /// Where the call was a run.
    pub(super) report: Option<Box<RunReport>>,
}

impl AgentSession {
    /// Makes one call. A refused or failed call changes nothing.
    ///
    /// ```
    /// # use skillbox_repository::{BUILT_IN, Repository, ScanOptions, Source};
    /// # use skillbox_runtime::{AgentOptions, AgentSession, Dialect, Runtime, RuntimeSettings, ToolCall};
    /// # let repository = Repository::open(vec![Source::Embedded(&BUILT_IN)], ScanOptions::default());
    /// # let profiles = skillbox_sandbox::Profiles::shipped();
    /// # let runtime = Runtime::new(repository.into(), profiles, Vec::new(), RuntimeSettings::at("unused"));
    /// # let session = AgentSession::open(runtime.into(), AgentOptions::new(Dialect::Skillbox))?;
    /// use serde_json::json;
    ///
    /// let loaded = session.call(&ToolCall::new("skill_load", json!({"skill": "csv-report"})))?;
    /// assert!(loaded.text.contains("# CSV report"), "what the model reads");
    /// assert_eq!(loaded.state_delta()[0]["op"], "load", "what a store keeps");
    ///
    /// let error = session.call(&ToolCall::new("skill_load", json!({"skill": "csv-repot"}))).unwrap_err();
    /// assert_eq!(error.code().as_str(), "unknown_skill");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn call(&self, call: &ToolCall) -> Result<ToolOutcome, ToolError> {
        self.call_with(call, EventSink::silent(), None)
    }

    /// The same, with somebody who listens to a run and a switch that ends it.
    pub fn call_with(
        &self,
        call: &ToolCall,
        events: EventSink<'_>,
        cancel: Option<&Cancel>,
    ) -> Result<ToolOutcome, ToolError> {
        let outcome = match HostVerb::named(&call.tool) {
            Some(HostVerb::BeforeAgent) => self.call_before_agent(call),
            Some(HostVerb::WrapToolCall) => self.call_wrap_tool_call(call),
            Some(HostVerb::AfterToolCall) => self.call_after_tool_call(call),
            None => self.call_tool(call, events, cancel),
        };
        self.tell_response(call, &outcome);
        if outcome.is_ok() {
            self.keeper.touch()?;
        }
        outcome
    }

    fn call_tool(
        &self,
        call: &ToolCall,
        events: EventSink<'_>,
        cancel: Option<&Cancel>,
    ) -> Result<ToolOutcome, ToolError> {
        let mut attempt = self.step(Entry::AsConfigured, |loader, catalog| {
            self.attempt(call, loader, catalog)
        })?;
        let hooks = self.carry_out(attempt.value.pass.hooks.clone(), call.occasion(None), cancel);
        pass_all(&hooks, &call.tool)?;
        if attempt.value.is_put_off() {
            // Commands came first: the call is made now, on the state as it is by now.
            attempt = self.step(Entry::AsConfigured, |loader, catalog| do_it(call, loader, catalog))?;
        }
        let made = self.make(call, attempt, hooks, events, cancel)?;
        self.finish(call, made, cancel)
    }

    /// Looks at a call, and makes it where nothing has to run before.
    fn attempt(&self, call: &ToolCall, loader: &Session, catalog: &Catalog) -> Result<(Attempt, Keep), ToolError> {
        let looked = do_it(call, loader, catalog)?;
        if let Reply::Run(request) = &looked.0.reply {
            run::check_other_skills(request, &loader.state(), &call.agent)?;
        }
        if matches!(looked.0.reply, Reply::Run(_)) || self.runs_any(&looked.0.pass.hooks) {
            let attempt = Attempt {
                after: None,
                ..looked.0
            };
            return Ok((attempt, Keep::Nothing));
        }
        Ok(looked)
    }

    /// Runs what is to be run; everything else was made with the state.
    fn make(
        &self,
        call: &ToolCall,
        attempt: Stepped<Attempt>,
        hooks: Vec<HookOutcome>,
        events: EventSink<'_>,
        cancel: Option<&Cancel>,
    ) -> Result<Made, ToolError> {
        let Stepped {
            value: Attempt {
                pass,
                reply,
                after: follows,
            },
            before,
            after,
        } = attempt;
        let request = match reply {
            Reply::Run(request) => request,
            Reply::Done(Answer {
                mut result,
                text,
                delta,
            }) => {
                let follows = follows.unwrap_or_default();
                let mut next = hooks_of(&mut result);
                next.extend(follows.hooks);
                let delta = joined([&pass.delta, &delta, &follows.delta]);
                return Ok(Made {
                    result,
                    text,
                    delta,
                    before,
                    after,
                    hooks,
                    next,
                    report: None,
                });
            }
        };
        let report = self.run_in_sandbox(&request, events, cancel)?;
        let (result, text) = run::answer(&report);
        let Stepped {
            value: follows,
            before,
            after,
        } = self.step(Entry::AsConfigured, |loader, _| {
            loader.apply(&pass.delta);
            Ok((loader.after_tool_call(&call.agent, &call.tool), Keep::Changes))
        })?;
        let delta = joined([&pass.delta, &follows.delta]);
        Ok(Made {
            result,
            text,
            delta,
            before,
            after,
            hooks,
            next: follows.hooks,
            report: Some(report.into()),
        })
    }

    /// Carries out what follows a call that was made.
    pub(super) fn finish(
        &self,
        call: &ToolCall,
        made: Made,
        cancel: Option<&Cancel>,
    ) -> Result<ToolOutcome, ToolError> {
        let Made {
            result,
            text,
            delta,
            before,
            after,
            mut hooks,
            next,
            report,
        } = made;
        let followed = self.carry_out(next, call.occasion(Some(&result)), cancel);
        let notes = self.note_contexts(&followed, &call.agent)?;
        hooks.extend(followed);
        let dialect = self.settings().dialect;
        Ok(ToolOutcome {
            result,
            text,
            delta: joined([&delta, &notes]),
            keys: changed_keys(dialect, &before, &after, &call.agent),
            hooks,
            dialect,
            report,
        })
    }

    /// The event of every answer, with what it changed.
    fn tell_response(&self, call: &ToolCall, outcome: &Result<ToolOutcome, ToolError>) {
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

/// Makes a call on the state: known, allowed, what comes before, the answer, what comes after.
fn do_it(call: &ToolCall, loader: &Session, catalog: &Catalog) -> Result<(Attempt, Keep), ToolError> {
    let (agent, tool, arguments) = (&call.agent, call.tool.as_str(), &call.arguments);
    loader.knows_tool(catalog, agent, tool)?;
    let pass = loader.wrap_tool_call(agent, tool, arguments)?;
    let reply = loader.call(catalog, agent, call.caller, tool, arguments)?;
    let after = Some(loader.after_tool_call(agent, tool));
    Ok((Attempt { pass, reply, after }, Keep::Changes))
}

/// The hooks that came with a result. They are told apart from it, with what became of them.
fn hooks_of(result: &mut Value) -> Vec<FiredHook> {
    let hooks = result.as_object_mut().and_then(|result| result.remove("hooks"));
    hooks
        .and_then(|hooks| serde_json::from_value(hooks).ok())
        .unwrap_or_default()
}

fn joined<'d>(deltas: impl IntoIterator<Item = &'d StateDelta>) -> StateDelta {
    deltas
        .into_iter()
        .flat_map(|delta| delta.operations.iter().cloned())
        .collect()
}
