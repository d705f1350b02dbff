//! `wrap_tool_call`: checks whether a tool of skillbox or of the host may be called now.

use serde::Deserialize;
use serde_json::{Value, json};
use skillbox_loader::{AgentName, CallArguments};

use super::run_hooks::{HookContext, check_hooks_allow_call};
use super::tool_call::{HostMethod, ToolCall};
use super::tool_outcome::ToolOutcome;
use crate::agent::{AgentSession, CatalogRefresh, ToolError};
use crate::session::Persist;

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
    /// Asks the policy and the hooks of loaded skills about a call that the host is about to make. An error means that the
    /// call must not be made.
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
    /// # let runtime = Runtime::new(repository.into(), profiles, Vec::new(), RuntimeSettings::with_state_dir("unused"));
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
        // The hooks' changes of the state are stored at once if no command has to run, otherwise after the commands allow the call.
        let check = |have_commands_run: bool| {
            self.run_step(CatalogRefresh::AsConfigured, |loader, _| {
                let fired = loader.wrap_tool_call(agent, tool, arguments)?;
                let persist = if have_commands_run || !self.runs_commands(&fired.hooks) {
                    Persist::Changes
                } else {
                    Persist::Nothing
                };
                Ok(((fired, persist), persist))
            })
        };
        let step = check(false)?;
        let context = HookContext {
            tool: Some((tool, arguments)),
            ..HookContext::of_agent(agent)
        };
        let (fired, persist) = &step.value;
        let hooks = self.run_hooks(fired.hooks.clone(), context, None);
        check_hooks_allow_call(&hooks, tool)?;
        let step = match persist {
            Persist::Changes => step,
            Persist::Nothing => check(true)?,
        };
        let result = json!({"allowed": true, "tool": tool, "policy": self.settings().policy});
        let (fired, _) = step.value;
        Ok(
            ToolOutcome::new(self.settings().dialect, result, format!("{tool} may be called"))
                .with_change(fired.delta, &step.before, &step.after, agent)
                .with_hooks(hooks),
        )
    }

    /// [`wrap_tool_call`](Self::wrap_tool_call), called by name.
    pub(super) fn call_wrap_tool_call(&self, call: &ToolCall) -> Result<ToolOutcome, ToolError> {
        let arguments = CallArguments {
            tool: HostMethod::WrapToolCall.as_str(),
            value: &call.arguments,
        };
        let WrapToolCallInput { tool, arguments } = arguments.parse()?;
        self.wrap_tool_call(&call.agent, &tool, &arguments)
    }
}
