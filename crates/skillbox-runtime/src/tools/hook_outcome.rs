//! The outcome of a hook, and its effect on the call.

use serde::Serialize;
use serde_json::Value;
use skillbox_loader::{BlockingExit, HookEvent, MatchedHook};
use skillbox_model::{EndedBy, ErrorBody, RunId, RunReport};

/// A hook that fired.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HookOutcome {
    /// The hook.
    #[serde(flatten)]
    pub hook: MatchedHook,
    /// Whether and how it ran.
    #[serde(flatten)]
    pub status: HookStatus,
}

/// Whether and how a hook ran.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum HookStatus {
    /// The host has to run it.
    ForHost,
    /// Its command ran in the sandbox.
    #[serde(rename = "ran")]
    Completed(HookRun),
    /// Its command could not run.
    Refused {
        /// The reason.
        error: ErrorBody,
    },
}

/// How a hook's command ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HookRun {
    /// The run of the command.
    pub run_id: RunId,
    /// The exit code of the command, if it exited by itself.
    pub exit_code: Option<i32>,
    /// What ended it.
    pub ended_by: EndedBy,
    /// The start of its standard output.
    pub stdout: String,
    /// The start of its standard error.
    pub stderr: String,
    /// Duration of the run.
    pub duration_ms: u64,
}

/// Bytes that are kept of each output stream of a hook.
const MAX_OUTPUT_BYTES: usize = 8 << 10;
/// The exit code with which a hook blocks a call; other failures are only reported.
const BLOCKING_EXIT_CODE: i32 = 2;

impl From<RunReport> for HookRun {
    fn from(report: RunReport) -> Self {
        Self {
            run_id: report.run_id,
            exit_code: report.exit_code,
            ended_by: report.ended_by,
            stdout: truncate(report.stdout),
            stderr: truncate(report.stderr),
            duration_ms: report.duration_ms,
        }
    }
}

fn truncate(mut text: String) -> String {
    if text.len() > MAX_OUTPUT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_OUTPUT_BYTES));
        text.push_str("…[truncated]");
    }
    text
}

impl HookOutcome {
    /// The reason why what the event announces must not happen, if this hook blocks it.
    ///
    /// The author of a skill declares a hook before a tool call as a guard, so such a hook blocks the call too if it could
    /// not run or was killed. Other hooks do not: an agent could never stop.
    pub fn block_reason(&self) -> Option<String> {
        let event = self.hook.key.event;
        if event.blocking_exit() != BlockingExit::Blocks {
            return None;
        }
        let is_guard = matches!(event, HookEvent::PreToolUse | HookEvent::PermissionRequest);
        match &self.status {
            HookStatus::ForHost => None,
            HookStatus::Refused { error } => is_guard.then(|| format!("it could not run: {}", error.message)),
            HookStatus::Completed(run) => match run.exit_code {
                None => is_guard.then(|| format!("it was ended by {}", run.ended_by.as_str())),
                Some(BLOCKING_EXIT_CODE) => {
                    Some(non_empty(&run.stderr).unwrap_or_else(|| format!("exit code {BLOCKING_EXIT_CODE}")))
                }
                Some(_) => denial_reason(&run.stdout),
            },
        }
    }

    /// The text that the hook adds to the next prompt.
    pub fn prompt_context(&self) -> Option<String> {
        let HookStatus::Completed(HookRun {
            exit_code: Some(0),
            stdout,
            ..
        }) = &self.status
        else {
            return None;
        };
        let answer = parse_answer(stdout);
        let context = answer
            .as_ref()
            .and_then(|answer| answer.pointer("/hookSpecificOutput/additionalContext"));
        match (context, self.hook.key.event) {
            (Some(context), _) => context.as_str().and_then(non_empty),
            // For these events, plain text output is context as well.
            (None, HookEvent::SessionStart | HookEvent::UserPromptSubmit | HookEvent::UserPromptExpansion)
                if answer.is_none() =>
            {
                non_empty(stdout)
            }
            _ => None,
        }
    }
}

/// The hook's output as a JSON object, if it is one.
fn parse_answer(stdout: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(stdout.trim()).ok()?;
    value.is_object().then_some(value)
}

/// The reason why the JSON answer of a hook denies the call, if it does.
fn denial_reason(stdout: &str) -> Option<String> {
    let answer = parse_answer(stdout)?;
    let text = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str);
    let reason = match (text("/decision"), text("/hookSpecificOutput/permissionDecision")) {
        (Some("block"), _) => text("/reason"),
        // `ask` requires the consent of a person, whom skillbox cannot ask.
        (_, Some("deny" | "ask")) => text("/hookSpecificOutput/permissionDecisionReason"),
        _ => return None,
    };
    Some(
        reason
            .and_then(non_empty)
            .unwrap_or_else(|| "it gives no reason".to_owned()),
    )
}

fn non_empty(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use skillbox_model::ErrorCode;

    use super::*;

    fn fired_hook(event: &str) -> MatchedHook {
        serde_json::from_value(json!({
            "skill": "s", "event": event, "index": 0, "once": false,
            "handler": {"type": "command", "command": "./check.sh"},
        }))
        .unwrap()
    }

    fn completed(event: &str, exit_code: Option<i32>, stdout: &str, stderr: &str) -> HookOutcome {
        HookOutcome {
            hook: fired_hook(event),
            status: HookStatus::Completed(HookRun {
                run_id: RunId::parse("r").unwrap(),
                exit_code,
                ended_by: if exit_code.is_some() {
                    EndedBy::Exit
                } else {
                    EndedBy::Timeout
                },
                stdout: stdout.to_owned(),
                stderr: stderr.to_owned(),
                duration_ms: 1,
            }),
        }
    }

    #[test]
    fn a_hook_blocks_a_call_by_exit_code_or_answer() {
        let check = |outcome: HookOutcome, expected: Option<&str>| {
            assert_eq!(outcome.block_reason().as_deref(), expected, "{outcome:?}");
        };
        let deny = |decision: &str| {
            json!({"hookSpecificOutput": {"permissionDecision": decision, "permissionDecisionReason": "no writes"}})
                .to_string()
        };
        check(completed("PreToolUse", Some(0), "fine", ""), None);
        check(completed("PreToolUse", Some(1), "", "odd"), None);
        check(completed("PreToolUse", Some(2), "", " no writes\n"), Some("no writes"));
        check(completed("PreToolUse", Some(2), "", ""), Some("exit code 2"));
        check(completed("PreToolUse", None, "", ""), Some("it was ended by timeout"));
        check(
            completed("PreToolUse", Some(0), r#"{"decision":"block","reason":"late"}"#, ""),
            Some("late"),
        );
        check(completed("PreToolUse", Some(0), &deny("deny"), ""), Some("no writes"));
        check(completed("PreToolUse", Some(0), &deny("ask"), ""), Some("no writes"));
        check(completed("PreToolUse", Some(0), &deny("allow"), ""), None);
        check(completed("PostToolUse", Some(2), "", "too late"), None);
        check(completed("Stop", Some(2), "", "not done yet"), Some("not done yet"));
        check(completed("Stop", None, "", ""), None);
        check(completed("SessionEnd", Some(2), "", "too late"), None);
        let refused = HookStatus::Refused {
            error: ErrorBody::new(ErrorCode::ExecutorUnavailable, "no executor"),
        };
        check(
            HookOutcome {
                hook: fired_hook("PreToolUse"),
                status: refused.clone(),
            },
            Some("it could not run: no executor"),
        );
        check(
            HookOutcome {
                hook: fired_hook("PostToolUse"),
                status: refused,
            },
            None,
        );
        check(
            HookOutcome {
                hook: fired_hook("PreToolUse"),
                status: HookStatus::ForHost,
            },
            None,
        );
    }

    #[test]
    fn a_hook_adds_context_to_the_next_prompt() {
        let check = |outcome: HookOutcome, expected: Option<&str>| {
            assert_eq!(outcome.prompt_context().as_deref(), expected, "{outcome:?}");
        };
        let context = json!({"hookSpecificOutput": {"additionalContext": "3 files are new"}}).to_string();
        check(
            completed("SessionStart", Some(0), " python 3.11\n", ""),
            Some("python 3.11"),
        );
        check(completed("SessionStart", Some(0), "", ""), None);
        check(completed("SessionStart", Some(1), "half done", ""), None);
        check(
            completed("SessionStart", Some(0), &context, ""),
            Some("3 files are new"),
        );
        check(completed("PostToolUse", Some(0), &context, ""), Some("3 files are new"));
        check(completed("PostToolUse", Some(0), "done", ""), None);
    }

    #[test]
    fn long_output_is_truncated() {
        let text = truncate("é".repeat(MAX_OUTPUT_BYTES));
        assert!(
            text.len() < MAX_OUTPUT_BYTES + 16 && text.ends_with("é…[truncated]"),
            "{}",
            text.len()
        );
    }
}
