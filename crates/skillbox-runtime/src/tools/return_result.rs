//! `return_result`: a fork returns its one result to the session that loaded the skill.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use skillbox_loader::{CallArguments, HookEvent, NoteKind, PromptNote, StateDelta, StateOperation};

use super::fire_event::check_size;
use super::tool_call::{HostMethod, ToolCall};
use super::tool_outcome::ToolOutcome;
use crate::agent::{AgentSession, ToolError};
use crate::session::{ForkOrigin, mark_returned, read_fork_origin, try_change_fork_origin};

/// The largest result. It enters a prompt, so a larger one belongs into a file.
const MAX_RESULT_BYTES: usize = 64 << 10;

/// The result of the fork.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReturnResultInput {
    /// A text, or any other JSON value.
    result: Value,
}

impl AgentSession {
    /// Returns the result of this fork to its parent: the next prompt of the agent that loaded the skill contains it. A
    /// fork returns one result. A `SubagentStop` hook of the parent's skills can refuse it.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use skillbox_repository::{Repository, ScanOptions, Scope, Source};
    /// # use skillbox_runtime::{AgentName, AgentOptions, AgentSession, Dialect, HistoryCompleteness, Runtime, RuntimeSettings, ToolCall};
    /// # let scratch = tempfile::tempdir()?;
    /// # let path = scratch.path().join("survey");
    /// # std::fs::create_dir(&path)?;
    /// # std::fs::write(path.join("SKILL.md"), "---\nname: survey\ndescription: d\ncontext: fork\nagent: Explore\n---\nLook around.\n")?;
    /// # let source = Source::Directory { path, scope: Scope::Project };
    /// # let repository = Repository::open(vec![source], ScanOptions::default());
    /// # let profiles = skillbox_sandbox::Profiles::shipped();
    /// # let runtime = Runtime::new(repository.into(), profiles, Vec::new(), RuntimeSettings::with_state_dir(scratch.path()));
    /// # let runtime = Arc::new(runtime);
    /// use serde_json::json;
    ///
    /// let open = |id: &str| -> Result<_, Box<dyn std::error::Error>> {
    ///     let options = AgentOptions::new(Dialect::Skillbox).stored_as(id.to_owned().try_into()?);
    ///     Ok(AgentSession::open(runtime.clone(), options)?)
    /// };
    /// // A skill with `context: fork`.
    /// let parent = open("s1")?;
    /// let loaded = parent.call(&ToolCall::new("skill_load", json!({"skill": "survey"})))?;
    /// let agent = AgentName::default();
    /// assert_eq!(parent.state()?.loaded(&agent).count(), 0, "the parent's state does not change");
    ///
    /// let fork = open(loaded.result["fork"]["session"].as_str().unwrap())?;
    /// assert_eq!(fork.state()?.loaded(&agent).count(), 1);
    /// fork.return_result("Three files, two tests.")?;
    /// let section = parent.modify_request(&agent, HistoryCompleteness::Complete)?.unwrap();
    /// assert!(section.text.contains("Three files, two tests."));
    /// assert!(fork.return_result("Once more.").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn return_result(&self, result: &str) -> Result<ToolOutcome, ToolError> {
        check_size("result", result, MAX_RESULT_BYTES)?;
        let sessions = self.runtime.sessions();
        let own_id = self.id().ok_or(ToolError::NotAFork)?;
        let own = sessions.open(own_id)?;
        let origin = read_fork_origin(&own)?.ok_or(ToolError::NotAFork)?;
        if origin.fork.returned {
            return Err(ToolError::AlreadyReturned);
        }
        // Opening it would create a session that was removed.
        let parent_files = sessions.open(&origin.parent)?;
        let parent = self.open_other(Some(origin.parent.clone()), self.settings().clone())?;
        let stopped = parent.fire_event(
            &origin.parent_agent,
            HookEvent::SubagentStop,
            &stop_input(&origin, result),
        )?;
        for hook in &stopped.hooks {
            if let Some(reason) = hook.block_reason() {
                return Err(ToolError::BlockedByHook {
                    skill: hook.hook.key.skill.clone(),
                    tool: HostMethod::ReturnResult.as_str().to_owned(),
                    reason,
                });
            }
        }
        try_change_fork_origin(&own, |stored| {
            let mut origin = stored.ok_or(ToolError::NotAFork)?;
            if origin.fork.returned {
                return Err(ToolError::AlreadyReturned);
            }
            parent.apply(&result_note(&origin, result))?;
            origin.fork.returned = true;
            Ok(((), Some(origin)))
        })?;
        mark_returned(&parent_files, own_id)?;
        let value = json!({
            "returned": true,
            "parent": origin.parent,
            "agent": origin.parent_agent,
            "skill": origin.fork.skill,
        });
        let text = format!("the result was returned to the session {}", origin.parent);
        Ok(ToolOutcome::new(self.settings().dialect, value, text).with_hooks(stopped.hooks))
    }

    /// [`return_result`](Self::return_result), called by name.
    pub(super) fn call_return_result(&self, call: &ToolCall) -> Result<ToolOutcome, ToolError> {
        let arguments = CallArguments {
            tool: HostMethod::ReturnResult.as_str(),
            value: &call.arguments,
        };
        let ReturnResultInput { result } = arguments.parse()?;
        match result {
            Value::String(text) => self.return_result(&text),
            other => self.return_result(&other.to_string()),
        }
    }
}

fn stop_input(origin: &ForkOrigin, result: &str) -> Map<String, Value> {
    let fork = &origin.fork;
    Map::from_iter([
        (
            "agent_type".to_owned(),
            json!(fork.agent.as_deref().unwrap_or(fork.skill.as_str())),
        ),
        ("agent_id".to_owned(), json!(fork.session)),
        ("last_assistant_message".to_owned(), json!(result)),
    ])
}

fn result_note(origin: &ForkOrigin, result: &str) -> StateDelta {
    let note = PromptNote {
        skill: origin.fork.skill.clone(),
        text: result.into(),
        kind: NoteKind::ForkResult,
    };
    let agent = origin.parent_agent.clone();
    StateOperation::AddNote { agent, note }.into()
}
