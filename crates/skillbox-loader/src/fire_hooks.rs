//! Fires the hooks of loaded skills.

use crate::agent::AgentName;
use crate::delta::{StateDelta, StateOperation};
use crate::hooks::{HookEvent, HookHandler, MatchedHook};
use crate::skill_view::SkillView;
use crate::state::{PromptNote, SkillsState};

/// An event, and the subjects that a hook's matcher is compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HookTrigger<'t> {
    event: HookEvent,
    subjects: &'t [&'t str],
    repeat: Repeat,
}

/// Whether a hook without `once` fires again at the next event of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeat {
    Always,
    Never,
}

impl<'t> HookTrigger<'t> {
    /// The event `SessionStart`, which occurs once per loaded skill: when the skill is loaded.
    pub(crate) fn session_start() -> Self {
        Self {
            event: HookEvent::SessionStart,
            subjects: &["startup"],
            repeat: Repeat::Never,
        }
    }

    /// The event before or after a tool call.
    pub(crate) fn tool_call(event: HookEvent, subjects: &'t [&'t str]) -> Self {
        Self {
            event,
            subjects,
            repeat: Repeat::Always,
        }
    }
}

/// Fires the matching hooks of one loaded skill and returns those that the host must run. A prompt hook becomes a
/// note for the next prompt instead.
pub(crate) fn fire_hooks(
    state: &SkillsState,
    agent: &AgentName,
    skill: &SkillView,
    trigger: HookTrigger<'_>,
    delta: &mut StateDelta,
) -> Vec<MatchedHook> {
    let Some(invocation) = skill.invocation.as_deref() else {
        return Vec::new();
    };
    let already_fired = state.agents.get(agent).map(|agent| &agent.fired_hooks);
    let mut for_host = Vec::new();
    for hook in invocation
        .hooks()
        .matching(&skill.name, trigger.event, trigger.subjects)
    {
        if already_fired.is_some_and(|fired| fired.contains(&hook.key)) {
            continue;
        }
        if hook.once || trigger.repeat == Repeat::Never {
            delta.push(StateOperation::MarkHookFired {
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
