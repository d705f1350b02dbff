//! `register_tools`: the host registers tools of its own, which become visible with the skills that need them.

use serde_json::json;
use skillbox_loader::{AgentName, CallArguments, RegisterToolsInput};

use super::tool_call::{HostMethod, ToolCall};
use super::tool_outcome::ToolOutcome;
use crate::agent::{AgentSession, CatalogRefresh, ToolError};
use crate::session::Persist;

impl AgentSession {
    /// Registers tools of the host: tools that belong to a skill, and tools that a skill unlocks by naming them in its
    /// `allowed-tools`. [`tools`](Self::tools) returns a registered tool from the moment at which such a skill is loaded.
    ///
    /// ```
    /// # use skillbox_repository::{Repository, ScanOptions, Scope, Source};
    /// # use skillbox_runtime::{AgentName, AgentOptions, AgentSession, Dialect, Runtime, RuntimeSettings, ToolCall};
    /// # let scratch = tempfile::tempdir()?;
    /// # let path = scratch.path().join("pdf");
    /// # std::fs::create_dir(&path)?;
    /// # std::fs::write(path.join("SKILL.md"), "---\nname: pdf\ndescription: d\nallowed-tools: extract_pdf\n---\n")?;
    /// # let source = Source::Directory { path, scope: Scope::Project };
    /// # let repository = Repository::open(vec![source], ScanOptions::default());
    /// # let profiles = skillbox_sandbox::Profiles::shipped();
    /// # let runtime = Runtime::new(repository.into(), profiles, Vec::new(), RuntimeSettings::with_state_dir("unused"));
    /// # let session = AgentSession::open(runtime.into(), AgentOptions::new(Dialect::Saa))?;
    /// use serde_json::json;
    ///
    /// let agent = AgentName::default();
    /// let tools = serde_json::from_value(json!({
    ///     "grouped_tools": {"pdf": [{"name": "render_page", "description": "Renders a page."}]},
    ///     "tools": ["extract_pdf"],
    /// }))?;
    /// session.register_tools(&agent, &tools)?;
    /// assert_eq!(session.tools(&agent)?.len(), 3, "the tools of the dialect");
    /// // A skill with `allowed-tools: extract_pdf`.
    /// session.call(&ToolCall::new("read_skill", json!({"skill_name": "pdf"})))?;
    /// let names: Vec<String> = session.tools(&agent)?.into_iter().map(|tool| tool.name).collect();
    /// assert_eq!(names[3..], ["render_page", "extract_pdf"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn register_tools(&self, agent: &AgentName, input: &RegisterToolsInput) -> Result<ToolOutcome, ToolError> {
        let step = self.run_step(CatalogRefresh::AsConfigured, |loader, catalog| {
            Ok((loader.register_tools(catalog, agent, input)?, Persist::Changes))
        })?;
        let outcome = step.value;
        Ok(
            ToolOutcome::new(self.settings().dialect, json!(outcome.result), outcome.text).with_change(
                outcome.delta,
                &step.before,
                &step.after,
                agent,
            ),
        )
    }

    /// [`register_tools`](Self::register_tools), called by name.
    pub(super) fn call_register_tools(&self, call: &ToolCall) -> Result<ToolOutcome, ToolError> {
        let arguments = CallArguments {
            tool: HostMethod::RegisterTools.as_str(),
            value: &call.arguments,
        };
        self.register_tools(&call.agent, &arguments.parse()?)
    }
}
