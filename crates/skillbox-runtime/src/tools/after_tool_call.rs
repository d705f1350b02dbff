//! `after_tool_call`: the host reports that it called one of its tools.

use serde::Deserialize;
use serde_json::{Value, json};
use skillbox_loader::{AgentName, CallArguments, FiredHooks, HookEvent};

use super::call_steps::concat_deltas;
use super::run_hooks::HookContext;
use super::tool_call::{HostMethod, ToolCall};
use super::tool_outcome::ToolOutcome;
use crate::agent::{AgentSession, CatalogRefresh, ToolError};
use crate::session::Persist;

/// The call that the host made.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AfterToolCallInput {
    /// The tool.
    tool: String,
    /// Its arguments.
    #[serde(default)]
    arguments: Value,
    /// Its result.
    #[serde(default)]
    result: Value,
    /// Why it failed, if it did.
    #[serde(default)]
    error: Option<String>,
}

impl AgentSession {
    /// Runs the hooks of loaded skills after a call that the host made.
    ///
    /// ```
    /// # use skillbox_repository::{Repository, ScanOptions, Scope, Source};
    /// # use skillbox_runtime::{AgentName, AgentOptions, AgentSession, Dialect, HistoryCompleteness, Runtime, RuntimeSettings, ToolCall};
    /// # let scratch = tempfile::tempdir()?;
    /// # let path = scratch.path().join("tidy");
    /// # std::fs::create_dir(&path)?;
    /// # std::fs::write(path.join("SKILL.md"), "---\nname: tidy\ndescription: d\nhooks:\n  PostToolUse:\n    - {matcher: Write, type: prompt, prompt: Run the formatter.}\n---\n")?;
    /// # let source = Source::Directory { path, scope: Scope::Project };
    /// # let repository = Repository::open(vec![source], ScanOptions::default());
    /// # let profiles = skillbox_sandbox::Profiles::shipped();
    /// # let runtime = Runtime::new(repository.into(), profiles, Vec::new(), RuntimeSettings::with_state_dir("unused"));
    /// # let session = AgentSession::open(runtime.into(), AgentOptions::new(Dialect::Skillbox))?;
    /// use serde_json::json;
    ///
    /// // A skill with a `PostToolUse` hook for `Write` that says: Run the formatter.
    /// session.call(&ToolCall::new("skill_load", json!({"skill": "tidy"})))?;
    /// let agent = AgentName::default();
    /// session.after_tool_call(&agent, "Write", &json!({"file_path": "a.rs"}), &json!("written"))?;
    /// let section = session.modify_request(&agent, HistoryCompleteness::Complete)?.unwrap();
    /// assert!(section.text.contains("- tidy: Run the formatter."));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn after_tool_call(
        &self,
        agent: &AgentName,
        tool: &str,
        arguments: &Value,
        result: &Value,
    ) -> Result<ToolOutcome, ToolError> {
        let context = HookContext {
            tool: Some((tool, arguments)),
            response: Some(result),
            ..HookContext::of_agent(agent)
        };
        self.run_hooks_after(HookEvent::PostToolUse, context, tool)
    }

    /// Runs the hooks of loaded skills after a call of the host that failed.
    pub fn after_failed_tool_call(
        &self,
        agent: &AgentName,
        tool: &str,
        arguments: &Value,
        error: &str,
    ) -> Result<ToolOutcome, ToolError> {
        let context = HookContext {
            tool: Some((tool, arguments)),
            error: Some(error),
            ..HookContext::of_agent(agent)
        };
        self.run_hooks_after(HookEvent::PostToolUseFailure, context, tool)
    }

    fn run_hooks_after(
        &self,
        event: HookEvent,
        context: HookContext<'_>,
        tool: &str,
    ) -> Result<ToolOutcome, ToolError> {
        let agent = context.agent;
        let step = self.run_step(CatalogRefresh::AsConfigured, |loader, _| {
            let input = json!({"tool_name": tool});
            Ok((loader.fire_event(agent, event, &input), Persist::Changes))
        })?;
        let FiredHooks { hooks, delta } = step.value;
        let hooks = self.run_hooks(hooks, context, None);
        let notes = self.add_prompt_notes(&hooks, agent)?;
        let (result, text) = (json!({"tool": tool}), format!("{tool} was called"));
        Ok(ToolOutcome::new(self.settings().dialect, result, text)
            .with_change(concat_deltas([delta, notes]), &step.before, &step.after, agent)
            .with_hooks(hooks))
    }

    /// [`after_tool_call`](Self::after_tool_call), called by name.
    pub(super) fn call_after_tool_call(&self, call: &ToolCall) -> Result<ToolOutcome, ToolError> {
        let arguments = CallArguments {
            tool: HostMethod::AfterToolCall.as_str(),
            value: &call.arguments,
        };
        let AfterToolCallInput {
            tool,
            arguments,
            result,
            error,
        } = arguments.parse()?;
        match error {
            None => self.after_tool_call(&call.agent, &tool, &arguments, &result),
            Some(error) => self.after_failed_tool_call(&call.agent, &tool, &arguments, &error),
        }
    }
}
