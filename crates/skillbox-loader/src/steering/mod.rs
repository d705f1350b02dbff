//! Frontmatter that steers: arguments and hooks.

mod arguments;
mod fire;
mod hook_event;
mod hooks;

pub(crate) use arguments::with_arguments;
pub(crate) use fire::{Moment, fire};
pub use hook_event::HookEvent;
pub use hooks::{FiredHook, HookHandler, HookKey, SkillHooks};
