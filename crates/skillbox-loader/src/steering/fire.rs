//! Hooks whose moment has come.

use super::hook_event::HookEvent;
use super::hooks::{FiredHook, HookHandler};
use crate::agent::AgentName;
use crate::delta::{StateDelta, StateOperation};
use crate::skill_view::SkillView;
use crate::state::{PromptNote, SkillsState};

/// A moment, and what a matcher is held against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment<'m> {
    event: HookEvent,
    subjects: &'m [&'m str],
    again: Again,
}

/// Whether a hook that does not say `once` fires at the next such moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    Always,
    Never,
}

impl<'m> Moment<'m> {
    /// A skill's session starts once, when it is loaded.
    pub(crate) fn session_start() -> Self {
        Self {
            event: HookEvent::SessionStart,
            subjects: &["startup"],
            again: Again::Never,
        }
    }

    /// Before or after a tool call.
    pub(crate) fn tool_call(event: HookEvent, subjects: &'m [&'m str]) -> Self {
        Self {
            event,
            subjects,
            again: Again::Always,
        }
    }
}

/// The hooks of one loaded skill whose moment has come, for the host to carry out. Those that only speak are
/// noted for the next prompt instead.
pub(crate) fn fire(
    state: &SkillsState,
    agent: &AgentName,
    skill: &SkillView,
    moment: Moment<'_>,
    delta: &mut StateDelta,
) -> Vec<FiredHook> {
    let Some(steering) = skill.steering.as_deref() else {
        return Vec::new();
    };
    let spent = state.agents.get(agent).map(|agent| &agent.fired);
    let mut for_host = Vec::new();
    for hook in steering.hooks().matching(&skill.name, moment.event, moment.subjects) {
        if spent.is_some_and(|spent| spent.contains(&hook.key)) {
            continue;
        }
        if hook.once || moment.again == Again::Never {
            delta.push(StateOperation::HookFired {
                agent: agent.clone(),
                hook: hook.key.clone(),
            });
        }
        match &hook.handler {
            HookHandler::Prompt { prompt } => delta.push(StateOperation::AddNote {
                agent: agent.clone(),
                note: PromptNote {
                    skill: skill.name.clone(),
                    text: prompt.as_str().into(),
                },
            }),
            _ => for_host.push(hook),
        }
    }
    for_host
}
