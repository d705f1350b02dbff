//! The hooks that a skill declares in its frontmatter, read into typed events.

mod event;
mod skill_hooks;

pub use event::{BlockingExit, FiredBy, HookEvent};
pub use skill_hooks::{HookHandler, HookKey, MatchedHook, SkillHooks};
