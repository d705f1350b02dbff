//! `after_tool_call`: a tool of the host was called.

use serde::Deserialize;
use serde_json::{Value, json};
use skillbox_loader::{AgentName, CallArguments, ToolPass, changed_keys};

use super::call::{HostVerb, ToolCall};
use super::error::ToolError;
use super::hook_run::Occasion;
use super::outcome::ToolOutcome;
use crate::agent::{AgentSession, Entry, Keep};

/// The call that a host has made.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AfterToolCallInput {
    /// The tool.
    tool: String,
    /// Its arguments.
    #[serde(default)]
    arguments: Value,
    /// What it gave.
    #[serde(default)]
    result: Value,
}

impl AgentSession {
    /// Carries out what the hooks of loaded skills want done after a call that the host has made.
    ///
    /// ```
    /// # use skillbox_repository::{Repository, ScanOptions, Scope, Source};
    /// # use skillbox_runtime::{AgentName, AgentOptions, AgentSession, Dialect, History, Runtime, RuntimeSettings, ToolCall};
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
    /// let section = session.modify_request(&agent, History::Whole)?.unwrap();
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
        let stepped = self.step(Entry::AsConfigured, |loader, _| {
            Ok((loader.after_tool_call(agent, tool), Keep::Changes))
        })?;
        let ToolPass { hooks, delta } = stepped.value;
        let occasion = Occasion {
            agent,
            tool: Some((tool, arguments)),
            response: Some(result),
        };
        let hooks = self.carry_out(hooks, occasion, None);
        let notes = self.note_contexts(&hooks, agent)?;
        let dialect = self.settings().dialect;
        Ok(ToolOutcome {
            result: json!({"tool": tool}),
            text: format!("{tool} was called"),
            delta: delta.operations.into_iter().chain(notes.operations).collect(),
            keys: changed_keys(dialect, &stepped.before, &stepped.after, agent),
            hooks,
            dialect,
            report: None,
        })
    }

    /// The same, called by name.
    pub(super) fn call_after_tool_call(&self, call: &ToolCall) -> Result<ToolOutcome, ToolError> {
        let arguments = CallArguments {
            tool: HostVerb::AfterToolCall.as_str(),
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
