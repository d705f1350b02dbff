//! The events that a skill's hooks can name.

use serde::{Deserialize, Serialize};

macro_rules! hook_events {
    ($($name:ident)*) => {
        /// An event of an agent's session. The loader fires `PreToolUse`, `PostToolUse` and `SessionStart`; a host
        /// fires the others, if it has them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[expect(missing_docs, reason = "the documentation of hooks defines the names")]
        pub enum HookEvent {
            $($name,)*
        }

        impl HookEvent {
            /// Every event.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The name in the frontmatter.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),* }
            }
        }
    };
}

hook_events! {
    SessionStart Setup UserPromptSubmit UserPromptExpansion PreToolUse PermissionRequest PermissionDenied PostToolUse
    PostToolUseFailure PostToolBatch Notification SubagentStart SubagentStop TaskCreated TaskCompleted Stop StopFailure
    TeammateIdle InstructionsLoaded ConfigChange CwdChanged FileChanged WorktreeCreate WorktreeRemove PreCompact
    PostCompact Elicitation ElicitationResult SessionEnd
}

impl HookEvent {
    /// Finds an event by its name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|event| event.as_str() == name)
    }
}
