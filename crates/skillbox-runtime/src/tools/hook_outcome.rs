//! What became of a hook, and what that means for the call it belongs to.

use serde::Serialize;
use serde_json::Value;
use skillbox_loader::{FiredHook, HookEvent};
use skillbox_model::{EndedBy, ErrorBody, RunId, RunReport};

/// A hook whose moment came.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HookOutcome {
    /// The hook.
    #[serde(flatten)]
    pub hook: FiredHook,
    /// What became of it.
    #[serde(flatten)]
    pub carried: Carried,
}

/// What became of a hook.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Carried {
    /// It is for the host to carry out.
    ForHost,
    /// Its command ran in the sandbox.
    Ran(HookRun),
    /// Its command could not run.
    Refused {
        /// Why not.
        error: ErrorBody,
    },
}

/// How a hook's command ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HookRun {
    /// The run.
    pub run_id: RunId,
    /// The command's own exit code, where it had one.
    pub exit_code: Option<i32>,
    /// What ended it.
    pub ended_by: EndedBy,
    /// The beginning of what it wrote.
    pub stdout: String,
    /// The beginning of what it complained about.
    pub stderr: String,
    /// How long it took.
    pub duration_ms: u64,
}

/// A hook says what it has to say in few words.
const MOST_BYTES: usize = 8 << 10;
/// The exit code by which a hook stops a call; any other failure is only told.
const STOPS: i32 = 2;

impl From<RunReport> for HookRun {
    fn from(report: RunReport) -> Self {
        Self {
            run_id: report.run_id,
            exit_code: report.exit_code,
            ended_by: report.ended_by,
            stdout: beginning(report.stdout),
            stderr: beginning(report.stderr),
            duration_ms: report.duration_ms,
        }
    }
}

fn beginning(mut text: String) -> String {
    if text.len() > MOST_BYTES {
        text.truncate(text.floor_char_boundary(MOST_BYTES));
        text.push_str("…[cut]");
    }
    text
}

impl HookOutcome {
    /// Why the call must not be made, where this hook came before it and says so.
    ///
    /// The skill's author put the hook there as a guard: one that could not run, or came to no end of its own,
    /// has not let the call pass.
    pub fn stops_call(&self) -> Option<String> {
        if self.hook.key.event != HookEvent::PreToolUse {
            return None;
        }
        match &self.carried {
            Carried::ForHost => None,
            Carried::Refused { error } => Some(format!("it could not run: {}", error.message)),
            Carried::Ran(run) => match run.exit_code {
                None => Some(format!("it was ended by {}", ended_by(run.ended_by))),
                Some(STOPS) => Some(said(&run.stderr).unwrap_or_else(|| format!("exit code {STOPS}"))),
                Some(_) => denial(&run.stdout),
            },
        }
    }

    /// What the hook has to say in the next prompt.
    pub fn context(&self) -> Option<String> {
        let Carried::Ran(HookRun {
            exit_code: Some(0),
            stdout,
            ..
        }) = &self.carried
        else {
            return None;
        };
        let answer = answer(stdout);
        let context = answer
            .as_ref()
            .and_then(|answer| answer.pointer("/hookSpecificOutput/additionalContext"));
        match (context, self.hook.key.event) {
            (Some(context), _) => context.as_str().and_then(said),
            // At the start, plain words are context as well.
            (None, HookEvent::SessionStart) if answer.is_none() => said(stdout),
            _ => None,
        }
    }
}

fn ended_by(end: EndedBy) -> String {
    serde_json::to_value(end)
        .ok()
        .and_then(|word| word.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// An answer as an object, where the hook gives one.
fn answer(stdout: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(stdout.trim()).ok()?;
    value.is_object().then_some(value)
}

/// A hook may also end well and say no.
fn denial(stdout: &str) -> Option<String> {
    let answer = answer(stdout)?;
    let text = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str);
    let reason = match (text("/decision"), text("/hookSpecificOutput/permissionDecision")) {
        (Some("block"), _) => text("/reason"),
        // Nobody can be asked from here, so asking is not yet a yes.
        (_, Some("deny" | "ask")) => text("/hookSpecificOutput/permissionDecisionReason"),
        _ => return None,
    };
    Some(reason.and_then(said).unwrap_or_else(|| "it gives no reason".to_owned()))
}

fn said(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use skillbox_model::ErrorCode;

    use super::*;

    fn hook(event: &str) -> FiredHook {
        serde_json::from_value(json!({
            "skill": "s", "event": event, "index": 0, "once": false,
            "handler": {"type": "command", "command": "./check.sh"},
        }))
        .unwrap()
    }

    fn ran(event: &str, exit_code: Option<i32>, stdout: &str, stderr: &str) -> HookOutcome {
        HookOutcome {
            hook: hook(event),
            carried: Carried::Ran(HookRun {
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
    fn a_hook_stops_a_call_by_exit_code_or_by_answer() {
        let check = |outcome: HookOutcome, expected: Option<&str>| {
            assert_eq!(outcome.stops_call().as_deref(), expected, "{outcome:?}");
        };
        let deny = |decision: &str| {
            json!({"hookSpecificOutput": {"permissionDecision": decision, "permissionDecisionReason": "no writes"}})
                .to_string()
        };
        check(ran("PreToolUse", Some(0), "fine", ""), None);
        check(ran("PreToolUse", Some(1), "", "odd"), None);
        check(ran("PreToolUse", Some(2), "", " no writes\n"), Some("no writes"));
        check(ran("PreToolUse", Some(2), "", ""), Some("exit code 2"));
        check(ran("PreToolUse", None, "", ""), Some("it was ended by timeout"));
        check(
            ran("PreToolUse", Some(0), r#"{"decision":"block","reason":"late"}"#, ""),
            Some("late"),
        );
        check(ran("PreToolUse", Some(0), &deny("deny"), ""), Some("no writes"));
        check(ran("PreToolUse", Some(0), &deny("ask"), ""), Some("no writes"));
        check(ran("PreToolUse", Some(0), &deny("allow"), ""), None);
        check(ran("PostToolUse", Some(2), "", "too late"), None);
        let refused = Carried::Refused {
            error: ErrorBody::new(ErrorCode::ExecutorUnavailable, "no executor"),
        };
        check(
            HookOutcome {
                hook: hook("PreToolUse"),
                carried: refused.clone(),
            },
            Some("it could not run: no executor"),
        );
        check(
            HookOutcome {
                hook: hook("PostToolUse"),
                carried: refused,
            },
            None,
        );
        check(
            HookOutcome {
                hook: hook("PreToolUse"),
                carried: Carried::ForHost,
            },
            None,
        );
    }

    #[test]
    fn a_hook_speaks_into_the_next_prompt() {
        let check = |outcome: HookOutcome, expected: Option<&str>| {
            assert_eq!(outcome.context().as_deref(), expected, "{outcome:?}");
        };
        let context = json!({"hookSpecificOutput": {"additionalContext": "3 files are new"}}).to_string();
        check(ran("SessionStart", Some(0), " python 3.11\n", ""), Some("python 3.11"));
        check(ran("SessionStart", Some(0), "", ""), None);
        check(ran("SessionStart", Some(1), "half done", ""), None);
        check(ran("SessionStart", Some(0), &context, ""), Some("3 files are new"));
        check(ran("PostToolUse", Some(0), &context, ""), Some("3 files are new"));
        check(ran("PostToolUse", Some(0), "done", ""), None);
    }

    #[test]
    fn long_words_are_cut() {
        let text = beginning("é".repeat(MOST_BYTES));
        assert!(
            text.len() < MOST_BYTES + 16 && text.ends_with("é…[cut]"),
            "{}",
            text.len()
        );
    }
}
