//! `fire_event`: the host reports an event that skillbox does not see.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use skillbox_loader::{AgentName, CallArguments, FiredHooks, HookEvent};

use super::call_steps::concat_deltas;
use super::run_hooks::HookContext;
use super::tool_call::{HostMethod, ToolCall};
use super::tool_outcome::ToolOutcome;
use crate::agent::{AgentSession, CatalogRefresh, ToolError};
use crate::session::Persist;

/// The largest input of an event.
const MAX_INPUT_BYTES: usize = 256 << 10;

/// The event.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FireEventInput {
    /// The name of the event.
    event: HookEvent,
    /// The data of the event, which hooks read on standard input.
    #[serde(default)]
    input: Map<String, Value>,
}

impl AgentSession {
    /// Runs the hooks of the agent's loaded skills for an event. The result says whether a hook blocks what the event
    /// announces, and why.
    ///
    /// ```
    /// # use skillbox_repository::{Repository, ScanOptions, Scope, Source};
    /// # use skillbox_runtime::{AgentName, AgentOptions, AgentSession, Dialect, HistoryCompleteness, Runtime, RuntimeSettings, ToolCall};
    /// # let scratch = tempfile::tempdir()?;
    /// # let path = scratch.path().join("brief");
    /// # std::fs::create_dir(&path)?;
    /// # std::fs::write(path.join("SKILL.md"), "---\nname: brief\ndescription: d\nhooks:\n  PreCompact:\n    - {matcher: auto, type: prompt, prompt: Keep the figures.}\n---\n")?;
    /// # let source = Source::Directory { path, scope: Scope::Project };
    /// # let repository = Repository::open(vec![source], ScanOptions::default());
    /// # let profiles = skillbox_sandbox::Profiles::shipped();
    /// # let runtime = Runtime::new(repository.into(), profiles, Vec::new(), RuntimeSettings::with_state_dir("unused"));
    /// # let session = AgentSession::open(runtime.into(), AgentOptions::new(Dialect::Skillbox))?;
    /// use serde_json::{Map, json};
    /// use skillbox_runtime::HookEvent;
    ///
    /// // A skill with a `PreCompact` hook for the trigger `auto` that says: Keep the figures.
    /// session.call(&ToolCall::new("skill_load", json!({"skill": "brief"})))?;
    /// let agent = AgentName::default();
    /// let input = Map::from_iter([("trigger".to_owned(), json!("auto"))]);
    /// let fired = session.fire_event(&agent, HookEvent::PreCompact, &input)?;
    /// assert_eq!(fired.result["blocked"], false);
    /// let section = session.modify_request(&agent, HistoryCompleteness::Complete)?.unwrap();
    /// assert!(section.text.contains("- brief: Keep the figures."));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fire_event(
        &self,
        agent: &AgentName,
        event: HookEvent,
        input: &Map<String, Value>,
    ) -> Result<ToolOutcome, ToolError> {
        let value = Value::Object(input.clone());
        check_size("input", &value.to_string(), MAX_INPUT_BYTES)?;
        let step = self.run_step(CatalogRefresh::AsConfigured, |loader, _| {
            Ok((loader.fire_event(agent, event, &value), Persist::Changes))
        })?;
        let FiredHooks { hooks, delta } = step.value;
        let context = HookContext {
            event_input: Some(input),
            ..HookContext::of_agent(agent)
        };
        let hooks = self.run_hooks(hooks, context, None);
        let notes = self.add_prompt_notes(&hooks, agent)?;
        let reason = hooks.iter().find_map(|hook| hook.block_reason());
        let name = event.as_str();
        let mut result = json!({"event": name, "blocked": reason.is_some()});
        let text = match reason {
            Some(reason) => {
                let text = format!("a hook blocks {name}: {reason}");
                result["reason"] = json!(reason);
                text
            }
            None => format!("{name} was fired"),
        };
        Ok(ToolOutcome::new(self.settings().dialect, result, text)
            .with_change(concat_deltas([delta, notes]), &step.before, &step.after, agent)
            .with_hooks(hooks))
    }

    /// [`fire_event`](Self::fire_event), called by name.
    pub(super) fn call_fire_event(&self, call: &ToolCall) -> Result<ToolOutcome, ToolError> {
        let arguments = CallArguments {
            tool: HostMethod::FireEvent.as_str(),
            value: &call.arguments,
        };
        let FireEventInput { event, input } = arguments.parse()?;
        self.fire_event(&call.agent, event, &input)
    }
}

/// Refuses an argument that is too large.
pub(super) fn check_size(field: &'static str, text: &str, limit: usize) -> Result<(), ToolError> {
    let size = text.len();
    if size > limit {
        return Err(ToolError::TooLarge { field, size, limit });
    }
    Ok(())
}
