//! Fires the hooks of loaded skills.

use std::sync::Arc;

use serde_json::Value;

use crate::agent::AgentName;
use crate::delta::{StateDelta, StateOperation};
use crate::hooks::{HookEvent, HookHandler, MatchedHook};
use crate::skill_view::SkillView;
use crate::state::{NoteKind, PromptNote, SkillsState};

/// The hooks that an event fires.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FiredHooks {
    /// The hooks, for the host to run.
    pub hooks: Vec<MatchedHook>,
    /// The change of the state.
    pub delta: StateDelta,
}

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

    /// An event that can occur any number of times.
    pub(crate) fn repeated(event: HookEvent, subjects: &'t [&'t str]) -> Self {
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
        let fires_once = hook.once || trigger.repeat == Repeat::Never;
        if fires_once && already_fired.is_some_and(|fired| fired.contains(&hook.key)) {
            continue;
        }
        if fires_once {
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
                    kind: NoteKind::Hook,
                },
            }),
            _ => for_host.push(hook),
        }
    }
    for_host
}

/// Fires the hooks of some loaded skills for an event with this input.
pub(crate) fn fire_event(
    state: &SkillsState,
    agent: &AgentName,
    skills: &[&Arc<SkillView>],
    event: HookEvent,
    input: &Value,
) -> FiredHooks {
    let subjects = event.subjects(input);
    let mut fired = FiredHooks::default();
    for skill in skills {
        let trigger = HookTrigger::repeated(event, &subjects);
        let hooks = fire_hooks(state, agent, skill, trigger, &mut fired.delta);
        fired.hooks.extend(hooks);
    }
    fired
}
