//! The events that a skill's hooks can name: when each occurs, who fires it, and what its hooks can do.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who fires an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FiredBy {
    /// skillbox, when the event occurs. A host may fire it too.
    Skillbox,
    /// The host, because skillbox does not see the event.
    Host,
}

/// What exit code 2 of a hook's command means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockingExit {
    /// It blocks what the event announces.
    Blocks,
    /// It is reported, because what the event announces has happened already.
    Reported,
}

macro_rules! hook_events {
    ($($name:ident: $when:literal, $fired_by:ident, matches $field:expr, exit 2 $exit:ident;)*) => {
        /// An event of an agent's session.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum HookEvent {
            $(#[doc = $when] $name,)*
        }

        impl HookEvent {
            /// Every event.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The name in the frontmatter.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),* }
            }

            /// When it occurs.
            pub fn when(self) -> &'static str {
                match self { $(Self::$name => $when),* }
            }

            /// Who fires it.
            pub fn fired_by(self) -> FiredBy {
                match self { $(Self::$name => FiredBy::$fired_by),* }
            }

            /// The field of its input that a hook's matcher is compared with.
            pub fn matcher_field(self) -> Option<&'static str> {
                match self { $(Self::$name => $field),* }
            }

            /// What exit code 2 of a hook's command means.
            pub fn blocking_exit(self) -> BlockingExit {
                match self { $(Self::$name => BlockingExit::$exit),* }
            }
        }
    };
}

hook_events! {
    SessionStart: "a skill was loaded", Skillbox, matches Some("source"), exit 2 Reported;
    Setup: "the host prepares a project", Host, matches Some("trigger"), exit 2 Reported;
    UserPromptSubmit: "the user sends a prompt", Host, matches None, exit 2 Blocks;
    UserPromptExpansion: "a command of the user becomes a prompt", Host, matches Some("command_name"), exit 2 Blocks;
    PreToolUse: "a tool is about to be called", Skillbox, matches Some("tool_name"), exit 2 Blocks;
    PermissionRequest: "the host asks for a permission", Host, matches Some("tool_name"), exit 2 Blocks;
    PermissionDenied: "a permission was denied", Host, matches Some("tool_name"), exit 2 Reported;
    PostToolUse: "a tool call succeeded", Skillbox, matches Some("tool_name"), exit 2 Reported;
    PostToolUseFailure: "a tool call failed", Skillbox, matches Some("tool_name"), exit 2 Reported;
    PostToolBatch: "all parallel tool calls have ended", Host, matches None, exit 2 Blocks;
    Notification: "the host notifies the user", Host, matches Some("notification_type"), exit 2 Reported;
    SubagentStart: "a sub-agent starts, or a skill forks", Skillbox, matches Some("agent_type"), exit 2 Reported;
    SubagentStop: "a forked skill returns its result", Skillbox, matches Some("agent_type"), exit 2 Blocks;
    TaskCreated: "a task is created", Host, matches None, exit 2 Blocks;
    TaskCompleted: "a task is completed", Host, matches None, exit 2 Blocks;
    Stop: "the agent is about to end its turn", Host, matches None, exit 2 Blocks;
    StopFailure: "the turn ended with an error", Host, matches Some("error"), exit 2 Reported;
    TeammateIdle: "another agent of the team is about to be idle", Host, matches None, exit 2 Blocks;
    InstructionsLoaded: "the host loaded a file of instructions", Host, matches Some("load_reason"), exit 2 Reported;
    ConfigChange: "a configuration file changes", Host, matches Some("source"), exit 2 Blocks;
    CwdChanged: "the working directory changed", Host, matches None, exit 2 Reported;
    FileChanged: "a watched file changed", Host, matches Some("file_path"), exit 2 Reported;
    WorktreeCreate: "a worktree is about to be created", Host, matches None, exit 2 Blocks;
    WorktreeRemove: "a worktree is removed", Host, matches None, exit 2 Reported;
    PreCompact: "the conversation is about to be compacted", Host, matches Some("trigger"), exit 2 Blocks;
    PostCompact: "the conversation was compacted", Host, matches Some("trigger"), exit 2 Reported;
    Elicitation: "an MCP server asks the user", Host, matches Some("mcp_server_name"), exit 2 Blocks;
    ElicitationResult: "the user answers an MCP server", Host, matches Some("mcp_server_name"), exit 2 Blocks;
    SessionEnd: "the session ends", Host, matches Some("reason"), exit 2 Reported;
}

impl HookEvent {
    /// Finds an event by its name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|event| event.as_str() == name)
    }

    /// The texts in the event's input that a hook's matcher is compared with. Without them, only a hook without a
    /// matcher fires.
    pub(crate) fn subjects(self, input: &Value) -> Vec<&str> {
        let field = self.matcher_field().and_then(|field| input.get(field)?.as_str());
        let subject = field.unwrap_or_default();
        let second = match (self, subject) {
            // A matcher for Bash also matches our own shell tools.
            (Self::PreToolUse | Self::PostToolUse | Self::PostToolUseFailure, "skill_run" | "skill_exec") => {
                Some("Bash")
            }
            // Matchers name files without their directories.
            (Self::FileChanged, path) => path.rsplit('/').next(),
            _ => None,
        };
        [subject].into_iter().chain(second).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn subjects_come_from_the_input() {
        let check = |event: HookEvent, input: Value, expected: &[&str]| assert_eq!(event.subjects(&input), expected);
        check(
            HookEvent::PreToolUse,
            json!({"tool_name": "skill_run"}),
            &["skill_run", "Bash"],
        );
        check(HookEvent::PreToolUse, json!({"tool_name": "Edit"}), &["Edit"]);
        check(
            HookEvent::FileChanged,
            json!({"file_path": "/a/.env"}),
            &["/a/.env", ".env"],
        );
        check(HookEvent::Stop, json!({"reason": "x"}), &[""]);
        check(HookEvent::PreCompact, json!({"trigger": 7}), &[""]);
    }
}
