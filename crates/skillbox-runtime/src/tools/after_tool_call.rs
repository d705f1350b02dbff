//! `after_tool_call`: the host reports that it called one of its tools.

use serde::Deserialize;
use serde_json::{Value, json};
use skillbox_loader::{AgentName, CallArguments, ToolCallHooks};

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
    /// # let runtime = Runtime::new(repository.into(), profiles, Vec::new(), RuntimeSettings::at("unused"));
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
        let step = self.run_step(CatalogRefresh::AsConfigured, |loader, _| {
            Ok((loader.after_tool_call(agent, tool), Persist::Changes))
        })?;
        let ToolCallHooks { hooks, delta } = step.value;
        let context = HookContext {
            agent,
            tool: Some((tool, arguments)),
            response: Some(result),
        };
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
        } = arguments.parse()?;
        self.after_tool_call(&call.agent, &tool, &arguments, &result)
    }
}
