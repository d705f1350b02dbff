//! Loads a skill with `context: fork` in a session of its own.

use serde_json::{Value, json};
use skillbox_executor::CancelToken;
use skillbox_loader::{ForkRequest, ForkedSession, ForkedSkills, Settings};
use skillbox_model::SessionId;

use super::hook_outcome::HookOutcome;
use super::tool_call::ToolCall;
use crate::agent::{AgentSession, ToolError};
use crate::session::{Fork, ForkOrigin, MAX_OPEN_FORKS, add_fork, remove_fork, write_fork_origin};

/// A skill that was loaded in a session of its own.
pub(super) struct ForkedLoad {
    pub(super) result: Value,
    pub(super) text: String,
    /// The hooks that fired in the fork.
    pub(super) hooks: Vec<HookOutcome>,
}

impl AgentSession {
    /// Creates a fork and loads the skill in it by the same call. If that fails, the fork is removed again.
    ///
    /// The state of this session does not change. A session that is not stored has no id to return a result to, so its
    /// fork is not stored either: the host starts an agent with the text of the result.
    pub(super) fn fork_skill(
        &self,
        call: &ToolCall,
        request: &ForkRequest,
        cancel: Option<&CancelToken>,
    ) -> Result<ForkedLoad, ToolError> {
        let session = self
            .id()
            .filter(|_| self.settings().forked_skills == ForkedSkills::OwnSession)
            .map(|parent| self.create_fork(parent, call, request))
            .transpose()?;
        let loaded = self.load_in_fork(session.clone(), call, cancel);
        if let (Err(_), Some(parent), Some(session)) = (&loaded, self.id(), &session) {
            remove_fork(&self.runtime.sessions().open(parent)?, session)?;
            self.runtime.remove_session(session)?;
        }
        let mut loaded = loaded?;
        let fork = ForkedSession {
            session,
            agent: request.agent.clone(),
            model: request.model.clone(),
        };
        loaded.text = describe_fork(request, &fork, &loaded.text);
        if let Value::Object(result) = &mut loaded.result {
            result.insert("fork".to_owned(), json!(fork));
            if result.contains_key("content") {
                result.insert("content".to_owned(), json!(loaded.text));
            }
        }
        Ok(loaded)
    }

    fn create_fork(&self, parent: &SessionId, call: &ToolCall, request: &ForkRequest) -> Result<SessionId, ToolError> {
        let id = SessionId::parse(format!("fork-{}", uuid::Uuid::now_v7().simple()))
            .unwrap_or_else(|error| unreachable!("a UUID is an identifier: {error}"));
        let fork = Fork {
            session: id.clone(),
            skill: request.skill.clone(),
            agent: request.agent.clone(),
            model: request.model.clone(),
            returned: false,
        };
        // The fork is listed before it exists, so that it is removed with its parent whatever happens in between.
        if !add_fork(&self.runtime.sessions().open(parent)?, fork.clone())? {
            return Err(ToolError::ForkLimit { limit: MAX_OPEN_FORKS });
        }
        let origin = ForkOrigin {
            parent: parent.clone(),
            parent_agent: call.agent.clone(),
            fork,
        };
        write_fork_origin(&self.runtime.sessions().create(&id)?, origin)?;
        Ok(id)
    }

    /// Makes the call in the fork, where it loads the skill like any other.
    fn load_in_fork(
        &self,
        session: Option<SessionId>,
        call: &ToolCall,
        cancel: Option<&CancelToken>,
    ) -> Result<ForkedLoad, ToolError> {
        let settings = Settings {
            forked_skills: ForkedSkills::SameSession,
            ..self.settings().clone()
        };
        let fork = self.open_other(session, settings)?;
        let load = ToolCall {
            caller: call.caller,
            ..ToolCall::new(call.tool.clone(), call.arguments.clone())
        };
        let outcome = fork.call_tool(&load, skillbox_executor::EventSink::silent(), cancel)?;
        Ok(ForkedLoad {
            result: outcome.result,
            text: outcome.text,
            hooks: outcome.hooks,
        })
    }
}

/// The text for the model. It contains the instructions, for hosts that do not start an agent for the fork.
fn describe_fork(request: &ForkRequest, fork: &ForkedSession, instructions: &str) -> String {
    let details = [
        fork.session.as_ref().map(|session| format!("session {session}")),
        fork.agent.as_ref().map(|agent| format!("agent {}", one_line(agent))),
        fork.model.as_ref().map(|model| format!("model {}", one_line(model))),
    ];
    let details: Vec<String> = details.into_iter().flatten().collect();
    let details = if details.is_empty() {
        String::new()
    } else {
        format!(" ({})", details.join(", "))
    };
    format!(
        "The skill {} runs in a context of its own{details}. If no other agent runs it for you, follow its instructions \
         yourself:\n\n{instructions}",
        request.skill
    )
}

/// Frontmatter is untrusted: it must not start a new line in the text.
fn one_line(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().filter(|c| !c.is_control()).take(100).collect()
}
