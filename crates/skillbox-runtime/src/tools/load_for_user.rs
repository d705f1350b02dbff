//! Loads a skill that the user selected, even in dialects without a tool for that.

use serde_json::json;
use skillbox_loader::{AgentName, CallContext, Caller, LoadInput, OperationOutcome, TurnTextCache};

use super::call_steps::CompletedCall;
use super::tool_call::ToolCall;
use super::tool_outcome::ToolOutcome;
use crate::agent::{AgentSession, CatalogRefresh, StepResult, ToolError};
use crate::session::Persist;

impl AgentSession {
    /// Loads a skill for an agent on behalf of the user. A skill with `context: fork` is loaded in this session too.
    ///
    /// ```
    /// # use skillbox_repository::{BUILT_IN_SKILLS, Repository, ScanOptions, Source};
    /// # use skillbox_runtime::{AgentName, AgentOptions, AgentSession, Dialect, HistoryCompleteness, Runtime, RuntimeSettings};
    /// # let repository = Repository::open(vec![Source::Embedded(&BUILT_IN_SKILLS)], ScanOptions::default());
    /// # let profiles = skillbox_sandbox::Profiles::shipped();
    /// # let runtime = Runtime::new(repository.into(), profiles, Vec::new(), RuntimeSettings::with_state_dir("unused"));
    /// # let session = AgentSession::open(runtime.into(), AgentOptions::new(Dialect::Skillbox))?;
    /// use skillbox_runtime::LoadInput;
    ///
    /// let agent = AgentName::default();
    /// let typed = LoadInput { skill: "csv-report".to_owned(), ..LoadInput::default() };
    /// session.load_for_user(&agent, &typed)?;
    /// let section = session.modify_request(&agent, HistoryCompleteness::Complete)?.unwrap();
    /// assert!(section.text.contains("- csv-report [Loaded]: "));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn load_for_user(&self, agent: &AgentName, input: &LoadInput) -> Result<ToolOutcome, ToolError> {
        self.load_as(Caller::User, agent, input)
    }

    /// Loads a skill for an agent on behalf of the host, for example to show it. The frontmatter cannot forbid that.
    pub fn load_for_host(&self, agent: &AgentName, input: &LoadInput) -> Result<ToolOutcome, ToolError> {
        self.load_as(Caller::Host, agent, input)
    }

    fn load_as(&self, caller: Caller, agent: &AgentName, input: &LoadInput) -> Result<ToolOutcome, ToolError> {
        let StepResult {
            value: OperationOutcome { result, text, delta },
            before,
            after,
        } = self.run_step(CatalogRefresh::AsConfigured, |loader, catalog| {
            let context = CallContext {
                settings: loader.settings(),
                catalog,
                state: &loader.state(),
                texts: &TurnTextCache::default(),
                agent,
                caller,
            };
            let outcome = context.load(input)?;
            loader.apply(&outcome.delta);
            Ok((outcome, Persist::Changes))
        })?;
        let call = ToolCall {
            agent: agent.clone(),
            caller,
            ..ToolCall::new("load", json!(input))
        };
        let completed = CompletedCall {
            hooks_after: result.hooks.clone(),
            result: json!(result),
            text,
            delta,
            before,
            after,
            hooks_in_fork: Vec::new(),
            report: None,
        };
        self.finish_call(&call, completed, Vec::new(), None)
    }
}
