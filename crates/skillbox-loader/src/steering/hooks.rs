//! The hooks of a skill, read into typed events.

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use skillbox_model::SkillName;

use super::hook_event::HookEvent;

/// A matcher's compiled size is bounded: skills are foreign.
const MATCHER_BYTES: usize = 1 << 20;

/// What a skill wants done at which moments.
#[derive(Debug, Default)]
pub struct SkillHooks {
    hooks: Vec<Hook>,
    /// What could not be read; such a hook never fires.
    pub problems: Vec<String>,
}

#[derive(Debug)]
struct Hook {
    event: HookEvent,
    matcher: Matcher,
    once: bool,
    handler: HookHandler,
}

/// What a hook does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum HookHandler {
    /// A shell command, run in the sandbox with the skill's files, never on the host.
    Command {
        /// The command line.
        command: String,
        /// Seconds until it is ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout: Option<f64>,
    },
    /// A text for the next prompt.
    Prompt {
        /// The text.
        prompt: String,
    },
    /// A task for another agent, for the host to start.
    Agent {
        /// The task.
        prompt: String,
        /// Everything else that the skill says about it.
        #[serde(default, flatten)]
        details: Map<String, Value>,
    },
}

/// Which hook of which skill.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HookKey {
    /// The skill.
    pub skill: SkillName,
    /// The moment.
    pub event: HookEvent,
    /// Its place among the skill's hooks.
    pub index: u32,
}

/// A hook whose moment has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FiredHook {
    /// Which one it is.
    #[serde(flatten)]
    pub key: HookKey,
    /// Whether it fires only once.
    pub once: bool,
    /// What to do.
    pub handler: HookHandler,
}

#[derive(Debug)]
enum Matcher {
    Everything,
    /// One or several exact names.
    Names(Vec<String>),
    Pattern(Regex),
}

impl SkillHooks {
    /// Reads the `hooks` of a frontmatter; what cannot be read is kept as a problem.
    pub fn parse(hooks: &Value) -> Self {
        let mut read = Self::default();
        match hooks {
            Value::Null => {}
            Value::Object(events) => {
                for (name, groups) in events {
                    match HookEvent::parse(name) {
                        Some(event) => read.event(event, groups),
                        None => read.problem(name, "no such event is known"),
                    }
                }
            }
            _ => read.problem("hooks", "a mapping of events is expected"),
        }
        read
    }

    /// The hooks of an event whose matcher takes one of the subjects.
    pub fn matching<'h>(
        &'h self,
        skill: &'h SkillName,
        event: HookEvent,
        subjects: &'h [&'h str],
    ) -> impl Iterator<Item = FiredHook> + 'h {
        let takes =
            move |hook: &Hook| hook.event == event && subjects.iter().any(|subject| hook.matcher.takes(subject));
        (0..)
            .zip(&self.hooks)
            .filter(move |(_, hook)| takes(hook))
            .map(move |(index, hook)| FiredHook {
                key: HookKey {
                    skill: skill.clone(),
                    event,
                    index,
                },
                once: hook.once,
                handler: hook.handler.clone(),
            })
    }

    /// Whether there is any hook.
    pub fn is_empty(&self) -> bool {
        self.hooks.is_empty()
    }

    fn event(&mut self, event: HookEvent, groups: &Value) {
        let Value::Array(groups) = groups else {
            return self.problem(event.as_str(), "a list is expected");
        };
        for group in groups {
            let matcher = match Matcher::parse(group.get("matcher")) {
                Ok(matcher) => matcher,
                Err(problem) => {
                    self.problem(event.as_str(), &problem);
                    continue;
                }
            };
            // A group usually holds a list of handlers; a lone handler is taken as it is.
            let handlers = match group.get("hooks") {
                Some(Value::Array(handlers)) => handlers.as_slice(),
                Some(_) => {
                    self.problem(event.as_str(), "`hooks` is expected to be a list");
                    continue;
                }
                None => std::slice::from_ref(group),
            };
            for handler in handlers {
                let once = [handler, group]
                    .iter()
                    .any(|place| place.get("once") == Some(&Value::Bool(true)));
                match parse_handler(handler) {
                    Ok(handler) => self.hooks.push(Hook {
                        event,
                        matcher: matcher.duplicate(),
                        once,
                        handler,
                    }),
                    Err(problem) => self.problem(event.as_str(), &problem),
                }
            }
        }
    }

    fn problem(&mut self, place: &str, problem: &str) {
        self.problems.push(format!("{place}: {problem}"));
    }
}

fn parse_handler(handler: &Value) -> Result<HookHandler, String> {
    let text = |key: &str| handler.get(key).and_then(Value::as_str).map(str::to_owned);
    let needed = |key: &str| text(key).ok_or_else(|| format!("a text is expected for `{key}`"));
    match handler.get("type").and_then(Value::as_str) {
        Some("command") => Ok(HookHandler::Command {
            command: needed("command")?,
            timeout: handler.get("timeout").and_then(Value::as_f64),
        }),
        Some("prompt") => Ok(HookHandler::Prompt {
            prompt: needed("prompt")?,
        }),
        Some("agent") => Ok(HookHandler::Agent {
            prompt: needed("prompt")?,
            details: handler.as_object().map(rest_of_agent).unwrap_or_default(),
        }),
        Some(other) => Err(format!(
            "{other:?} is no kind of handler: command, prompt or agent is expected"
        )),
        None => Err("a handler without a `type`".to_owned()),
    }
}

fn rest_of_agent(handler: &Map<String, Value>) -> Map<String, Value> {
    let others = handler
        .iter()
        .filter(|(key, _)| !matches!(key.as_str(), "type" | "prompt" | "once"));
    others.map(|(key, value)| (key.clone(), value.clone())).collect()
}

impl Matcher {
    /// Plain names, alone or with `|` between, mean themselves; anything else is a regular expression.
    fn parse(matcher: Option<&Value>) -> Result<Self, String> {
        let text = match matcher {
            None | Some(Value::Null) => return Ok(Self::Everything),
            Some(Value::String(text)) => text.trim(),
            Some(_) => return Err("`matcher` is expected to be a text".to_owned()),
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
        let pattern = RegexBuilder::new(text).size_limit(MATCHER_BYTES).build();
        pattern
            .map(Self::Pattern)
            .map_err(|error| format!("the matcher {text:?} cannot be read: {error}"))
    }

    fn takes(&self, subject: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Names(names) => names.iter().any(|name| name == subject),
            Self::Pattern(pattern) => pattern.is_match(subject),
        }
    }

    fn duplicate(&self) -> Self {
        match self {
            Self::Everything => Self::Everything,
            Self::Names(names) => Self::Names(names.clone()),
            Self::Pattern(pattern) => Self::Pattern(pattern.clone()),
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
    fn hooks_fire_by_event_and_matcher() {
        let hooks = SkillHooks::parse(&json!({
            "PreToolUse": [
                {"matcher": "Bash", "hooks": [{"type": "command", "command": "./check.sh", "timeout": 5}]},
                {"matcher": "Edit|Write", "hooks": [{"type": "prompt", "prompt": "Mind the style.", "once": true}]},
                {"matcher": "mcp__.*", "hooks": [{"type": "agent", "prompt": "Review", "model": "small"}]},
            ],
            "PostToolUse": [{"hooks": [{"type": "command", "command": "log"}]}],
            "Stop": [{"type": "command", "command": "bye"}],
        }));
        assert_eq!(hooks.problems, Vec::<String>::new());
        assert_eq!(matching(&hooks, HookEvent::PreToolUse, "Bash"), [0]);
        assert_eq!(matching(&hooks, HookEvent::PreToolUse, "BashX"), [0; 0]);
        assert_eq!(matching(&hooks, HookEvent::PreToolUse, "Write"), [1]);
        assert_eq!(matching(&hooks, HookEvent::PreToolUse, "mcp__x"), [2]);
        assert_eq!(matching(&hooks, HookEvent::PostToolUse, "anything"), [3]);
        assert_eq!(matching(&hooks, HookEvent::Stop, ""), [4]);
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
    fn what_cannot_be_read_is_told() {
        let check = |hooks: Value, expected: &str| {
            let read = SkillHooks::parse(&hooks);
            assert!(read.is_empty(), "{hooks}");
            assert!(read.problems[0].contains(expected), "{:?} {expected}", read.problems);
        };
        check(json!([]), "mapping");
        check(json!({"PreTool": []}), "no such event");
        check(json!({"Stop": {}}), "list");
        check(json!({"Stop": [{"matcher": "(", "hooks": []}]}), "cannot be read");
        check(
            json!({"Stop": [{"matcher": "(a{1000}){1000}", "hooks": []}]}),
            "cannot be read",
        );
        check(
            json!({"Stop": [{"hooks": [{"type": "http", "url": "x"}]}]}),
            "no kind of handler",
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
