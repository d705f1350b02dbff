//! `wrap_tool_call`: whether a tool, ours or the host's own, may be called now.

use serde::Deserialize;
use serde_json::{Value, json};
use skillbox_loader::{AgentName, CallArguments, changed_keys};

use super::call::{HostVerb, ToolCall};
use super::error::ToolError;
use super::hook_run::{Occasion, pass_all};
use super::outcome::ToolOutcome;
use crate::agent::{AgentSession, Entry, Keep};

/// The call that a host is about to make.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrapToolCallInput {
    /// The tool.
    tool: String,
    /// Its arguments.
    #[serde(default)]
    arguments: Value,
}

impl AgentSession {
    /// Asks the policy and the hooks of loaded skills about a call that the host is about to make. Only what is
    /// returned without an error may be called.
    ///
    /// ```
    /// # use skillbox_repository::{Repository, ScanOptions, Scope, Source};
    /// # use skillbox_runtime::{AgentName, AgentSession, Dialect, Runtime, RuntimeSettings, Settings, ToolCall};
    /// # let scratch = tempfile::tempdir()?;
    /// # let path = scratch.path().join("git-log");
    /// # std::fs::create_dir(&path)?;
    /// # std::fs::write(path.join("SKILL.md"), "---\nname: git-log\ndescription: d\nallowed-tools: Bash(git:*)\n---\n")?;
    /// # let source = Source::Directory { path, scope: Scope::Project };
    /// # let repository = Repository::open(vec![source], ScanOptions::default());
    /// # let profiles = skillbox_sandbox::Profiles::shipped();
    /// # let runtime = Runtime::new(repository.into(), profiles, Vec::new(), RuntimeSettings::at("unused"));
    /// use serde_json::json;
    /// use skillbox_runtime::PolicyKind;
    ///
    /// let settings = Settings { policy: PolicyKind::Restrict, ..Settings::new(Dialect::Skillbox) };
    /// let session = AgentSession::open(runtime.into(), settings.into())?;
    /// // A skill with `allowed-tools: Bash(git:*)`.
    /// session.call(&ToolCall::new("skill_load", json!({"skill": "git-log"})))?;
    ///
    /// let agent = AgentName::default();
    /// let may = |command: &str| session.wrap_tool_call(&agent, "Bash", &json!({"command": command}));
    /// assert!(may("git status && git diff").is_ok());
    /// assert_eq!(may("git status && curl x").unwrap_err().code().as_str(), "tool_not_allowed");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wrap_tool_call(&self, agent: &AgentName, tool: &str, arguments: &Value) -> Result<ToolOutcome, ToolError> {
        let ask = |keep_at_once: bool| {
            self.step(Entry::AsConfigured, |loader, _| {
                let pass = loader.wrap_tool_call(agent, tool, arguments)?;
                let keep = if keep_at_once || !self.runs_any(&pass.hooks) {
                    Keep::Changes
                } else {
                    Keep::Nothing
                };
                Ok(((pass, keep), keep))
            })
        };
        let mut asked = ask(false)?;
        let occasion = Occasion {
            agent,
            tool: Some((tool, arguments)),
            response: None,
        };
        let hooks = self.carry_out(std::mem::take(&mut asked.value.0.hooks), occasion, None);
        pass_all(&hooks, tool)?;
        if asked.value.1 == Keep::Nothing {
            asked = ask(true)?;
        }
        let dialect = self.settings().dialect;
        Ok(ToolOutcome {
            result: json!({"allowed": true, "tool": tool, "policy": self.settings().policy}),
            text: format!("{tool} may be called"),
            delta: asked.value.0.delta,
            keys: changed_keys(dialect, &asked.before, &asked.after, agent),
            hooks,
            dialect,
            report: None,
        })
    }

    /// The same, called by name.
    pub(super) fn call_wrap_tool_call(&self, call: &ToolCall) -> Result<ToolOutcome, ToolError> {
        let arguments = CallArguments {
            tool: HostVerb::WrapToolCall.as_str(),
            value: &call.arguments,
        };
        let WrapToolCallInput { tool, arguments } = arguments.parse()?;
        self.wrap_tool_call(&call.agent, &tool, &arguments)
    }
}
