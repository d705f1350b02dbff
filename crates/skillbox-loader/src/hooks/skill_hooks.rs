//! Parses the hooks of a skill.

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use skillbox_model::SkillName;

use super::event::HookEvent;

/// Limit for the compiled size of a matcher, because skills are untrusted.
const MAX_MATCHER_BYTES: usize = 1 << 20;

/// The hooks that a skill declares.
#[derive(Debug, Default)]
pub struct SkillHooks {
    hooks: Vec<Hook>,
    /// Descriptions of hooks that do not parse. They never fire.
    pub problems: Vec<String>,
}

#[derive(Debug)]
struct Hook {
    event: HookEvent,
    matcher: Matcher,
    once: bool,
    handler: HookHandler,
}

/// The action of a hook.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum HookHandler {
    /// A shell command, run in the sandbox with the skill's files, never on the host.
    Command {
        /// The command line.
        command: String,
        /// Seconds after which it is stopped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout: Option<f64>,
    },
    /// A text for the next prompt.
    Prompt {
        /// The text.
        prompt: String,
    },
    /// A task for another agent, which the host starts.
    Agent {
        /// The task.
        prompt: String,
        /// All other fields of the declaration.
        #[serde(default, flatten)]
        details: Map<String, Value>,
    },
}

/// Identifies a hook of a skill.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HookKey {
    /// The skill.
    pub skill: SkillName,
    /// The event.
    pub event: HookEvent,
    /// Its index among the skill's hooks.
    pub index: u32,
}

/// A hook that matches an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatchedHook {
    /// Its identity.
    #[serde(flatten)]
    pub key: HookKey,
    /// Whether it fires only once.
    pub once: bool,
    /// Its action.
    pub handler: HookHandler,
}

#[derive(Clone, Debug)]
enum Matcher {
    Everything,
    /// One or more exact names.
    Names(Vec<String>),
    Pattern(Regex),
}

impl SkillHooks {
    /// Parses the `hooks` of a frontmatter. A hook that does not parse becomes a problem.
    pub fn parse(hooks: &Value) -> Self {
        let mut parsed = Self::default();
        match hooks {
            Value::Null => {}
            Value::Object(events) => {
                for (name, groups) in events {
                    match HookEvent::parse(name) {
                        Some(event) => parsed.add_event(event, groups),
                        None => parsed.add_problem(name, "unknown hook event"),
                    }
                }
            }
            _ => parsed.add_problem("hooks", "expected a mapping of events"),
        }
        parsed
    }

    /// The hooks of an event whose matcher accepts one of the subjects.
    pub fn matching<'h>(
        &'h self,
        skill: &'h SkillName,
        event: HookEvent,
        subjects: &'h [&'h str],
    ) -> impl Iterator<Item = MatchedHook> + 'h {
        let ignores_matchers = event.matcher_field().is_none();
        let matches = move |hook: &Hook| {
            hook.event == event && (ignores_matchers || subjects.iter().any(|subject| hook.matcher.accepts(subject)))
        };
        (0..)
            .zip(&self.hooks)
            .filter(move |(_, hook)| matches(hook))
            .map(move |(index, hook)| MatchedHook {
                key: HookKey {
                    skill: skill.clone(),
                    event,
                    index,
                },
                once: hook.once,
                handler: hook.handler.clone(),
            })
    }

    /// Whether one of the hooks is this command.
    pub fn has_command(&self, text: &str) -> bool {
        let is_same = |hook: &Hook| matches!(&hook.handler, HookHandler::Command { command, .. } if command == text);
        self.hooks.iter().any(is_same)
    }

    /// Whether the skill has no valid hook.
    pub fn is_empty(&self) -> bool {
        self.hooks.is_empty()
    }

    fn add_event(&mut self, event: HookEvent, groups: &Value) {
        let Value::Array(groups) = groups else {
            return self.add_problem(event.as_str(), "expected a list");
        };
        for group in groups {
            let matcher = match Matcher::parse(group.get("matcher")) {
                Ok(matcher) => matcher,
                Err(problem) => {
                    self.add_problem(event.as_str(), &problem);
                    continue;
                }
            };
            // A group usually contains a list of handlers; a single handler without a group is accepted too.
            let handlers = match group.get("hooks") {
                Some(Value::Array(handlers)) => handlers.as_slice(),
                Some(_) => {
                    self.add_problem(event.as_str(), "expected `hooks` to be a list");
                    continue;
                }
                None => std::slice::from_ref(group),
            };
            for handler in handlers {
                let once = [handler, group]
                    .iter()
                    .any(|declaration| declaration.get("once") == Some(&Value::Bool(true)));
                match parse_handler(handler) {
                    Ok(handler) => self.hooks.push(Hook {
                        event,
                        matcher: matcher.clone(),
                        once,
                        handler,
                    }),
                    Err(problem) => self.add_problem(event.as_str(), &problem),
                }
            }
        }
    }

    fn add_problem(&mut self, key: &str, problem: &str) {
        self.problems.push(format!("{key}: {problem}"));
    }
}

fn parse_handler(handler: &Value) -> Result<HookHandler, String> {
    let text = |key: &str| handler.get(key).and_then(Value::as_str).map(str::to_owned);
    let required = |key: &str| text(key).ok_or_else(|| format!("expected a string for `{key}`"));
    match handler.get("type").and_then(Value::as_str) {
        Some("command") => Ok(HookHandler::Command {
            command: required("command")?,
            timeout: handler.get("timeout").and_then(Value::as_f64),
        }),
        Some("prompt") => Ok(HookHandler::Prompt {
            prompt: required("prompt")?,
        }),
        Some("agent") => Ok(HookHandler::Agent {
            prompt: required("prompt")?,
            details: handler.as_object().map(other_agent_fields).unwrap_or_default(),
        }),
        Some(other) => Err(format!(
            "unknown handler type {other:?}: expected command, prompt or agent"
        )),
        None => Err("a handler has no `type`".to_owned()),
    }
}

fn other_agent_fields(handler: &Map<String, Value>) -> Map<String, Value> {
    let others = handler
        .iter()
        .filter(|(key, _)| !matches!(key.as_str(), "type" | "prompt" | "once"));
    others.map(|(key, value)| (key.clone(), value.clone())).collect()
}

impl Matcher {
    /// Parses a matcher: one name or several joined by `|` match exactly; anything else is a regular expression.
    fn parse(matcher: Option<&Value>) -> Result<Self, String> {
        let text = match matcher {
            None | Some(Value::Null) => return Ok(Self::Everything),
            Some(Value::String(text)) => text.trim(),
            Some(_) => return Err("expected `matcher` to be a string".to_owned()),
        };
        if matches!(text, "" | "*") {
            return Ok(Self::Everything);
        }
        if text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '|'))
        {
            return Ok(Self::Names(text.split('|').map(str::to_owned).collect()));
        }
        let pattern = RegexBuilder::new(text).size_limit(MAX_MATCHER_BYTES).build();
        pattern
            .map(Self::Pattern)
            .map_err(|error| format!("invalid matcher {text:?}: {error}"))
    }

    fn accepts(&self, subject: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Names(names) => names.iter().any(|name| name == subject),
            Self::Pattern(pattern) => pattern.is_match(subject),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn matching(hooks: &SkillHooks, event: HookEvent, tool: &str) -> Vec<u32> {
        let skill = SkillName::parse("s").unwrap();
        hooks
            .matching(&skill, event, &[tool])
            .map(|hook| hook.key.index)
            .collect()
    }

    #[test]
    fn hooks_match_by_event_and_matcher() {
        let hooks = SkillHooks::parse(&json!({
            "PreToolUse": [
                {"matcher": "Bash", "hooks": [{"type": "command", "command": "./check.sh", "timeout": 5}]},
                {"matcher": "Edit|Write", "hooks": [{"type": "prompt", "prompt": "Mind the style.", "once": true}]},
                {"matcher": "mcp__.*", "hooks": [{"type": "agent", "prompt": "Review", "model": "small"}]},
            ],
            "PostToolUse": [{"hooks": [{"type": "command", "command": "log"}]}],
            "Stop": [{"type": "command", "command": "bye"}, {"matcher": "ignored", "type": "command", "command": "bye"}],
        }));
        assert_eq!(hooks.problems, Vec::<String>::new());
        assert_eq!(matching(&hooks, HookEvent::PreToolUse, "Bash"), [0]);
        assert_eq!(matching(&hooks, HookEvent::PreToolUse, "BashX"), [0; 0]);
        assert_eq!(matching(&hooks, HookEvent::PreToolUse, "Write"), [1]);
        assert_eq!(matching(&hooks, HookEvent::PreToolUse, "mcp__x"), [2]);
        assert_eq!(matching(&hooks, HookEvent::PostToolUse, "anything"), [3]);
        assert_eq!(matching(&hooks, HookEvent::Stop, ""), [4, 5]);
        assert_eq!(matching(&hooks, HookEvent::SessionStart, ""), [0; 0]);
        let skill = SkillName::parse("s").unwrap();
        let agent = hooks
            .matching(&skill, HookEvent::PreToolUse, &["mcp__x"])
            .next()
            .unwrap();
        assert_eq!(
            serde_json::to_value(&agent.handler).unwrap(),
            json!({"type": "agent", "prompt": "Review", "model": "small"})
        );
    }

    #[test]
    fn invalid_hooks_become_problems() {
        let check = |hooks: Value, expected: &str| {
            let parsed = SkillHooks::parse(&hooks);
            assert!(parsed.is_empty(), "{hooks}");
            assert!(
                parsed.problems[0].contains(expected),
                "{:?} {expected}",
                parsed.problems
            );
        };
        check(json!([]), "mapping");
        check(json!({"PreTool": []}), "unknown hook event");
        check(json!({"Stop": {}}), "list");
        check(json!({"Stop": [{"matcher": "(", "hooks": []}]}), "invalid matcher");
        check(
            json!({"Stop": [{"matcher": "(a{1000}){1000}", "hooks": []}]}),
            "invalid matcher",
        );
        check(
            json!({"Stop": [{"hooks": [{"type": "http", "url": "x"}]}]}),
            "unknown handler type",
        );
        check(json!({"Stop": [{"hooks": [{"type": "command"}]}]}), "`command`");
        check(json!({"Stop": [{"hooks": [7]}]}), "type");
        assert!(SkillHooks::parse(&Value::Null).problems.is_empty());
    }

    #[test]
    fn every_event_has_its_name() {
        for event in HookEvent::ALL {
            assert_eq!(HookEvent::parse(event.as_str()), Some(*event));
            assert_eq!(serde_json::to_value(event).unwrap(), event.as_str());
        }
    }
}
