//! Decides one tool call against what the loaded skills declare.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::command::{Invocation, Place};
use super::entry::{Entry, ToolName};
use super::shell::{Segment, split};
use super::shell_words::Word;

/// What `allowed-tools` means in a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PolicyKind {
    /// Shown in the prompt, never enforced.
    #[default]
    Recommend,
    /// Only what the loaded skills declare together, and no limit while one of them declares nothing.
    Restrict,
    /// Only what the loaded skills declare together; a skill that declares nothing adds nothing.
    Strict,
}

impl PolicyKind {
    /// The word on the wire and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Recommend => "recommend",
            Self::Restrict => "restrict",
            Self::Strict => "strict",
        }
    }
}

/// The tools that no policy blocks, unless the host gives a set of its own.
pub fn default_always_allowed() -> BTreeSet<String> {
    let ours = [
        "skill_list",
        "skill_load",
        "skill_unload",
        "skill_list_docs",
        "skill_select_docs",
        "skill_read",
        "skill_search",
        "skill_disable",
        "skill_enable",
    ];
    let others = [
        "load_skill",
        "read_skill",
        "search_skills",
        "write_todos",
        "read_file",
        "ls",
    ];
    ours.into_iter().chain(others).map(str::to_owned).collect()
}

/// What one loaded skill declares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant<'s> {
    /// Whether it declares anything, even something that cannot be read.
    pub(crate) is_declared: bool,
    /// What could be read.
    pub(crate) entries: &'s [Entry],
}

/// The answer to one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The call may go on.
    Allowed,
    /// The call must not be made; the reason is why a pattern for this tool did not cover it.
    Blocked(Option<String>),
}

/// Decides a call of `tool` while skills with these grants are loaded.
pub(crate) fn check(
    kind: PolicyKind,
    always_allowed: &BTreeSet<String>,
    grants: &[Grant<'_>],
    tool: &str,
    arguments: &Value,
) -> Verdict {
    if kind == PolicyKind::Recommend || grants.is_empty() || always_allowed.contains(tool) {
        return Verdict::Allowed;
    }
    if kind == PolicyKind::Restrict && grants.iter().any(|grant| !grant.is_declared) {
        return Verdict::Allowed;
    }
    match covers(grants, tool, arguments) {
        Ok(()) => Verdict::Allowed,
        Err(because) => Verdict::Blocked(because),
    }
}

/// How much of a call an entry has to cover.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A command line, or a script with its arguments.
    Command,
    /// Words typed into a program that runs already: no pattern can vouch for them.
    Typing,
    /// Looking after a program that an allowed call has started.
    Following,
    /// Any other tool.
    Other,
}

fn kind_of(tool: &str, arguments: &Value) -> Kind {
    match tool {
        "Bash" | "skill_run" | "skill_exec" => Kind::Command,
        "skill_write_stdin" => Kind::Typing,
        "skill_poll_session" | "skill_kill_session" => Kind::Following,
        // A host's own shell tool is a shell, whatever it is called.
        _ if arguments.get("command").is_some() => Kind::Command,
        _ => Kind::Other,
    }
}

fn covers(grants: &[Grant<'_>], tool: &str, arguments: &Value) -> Result<(), Option<String>> {
    let counts_as_bash = matches!(
        tool,
        "skill_run" | "skill_exec" | "skill_write_stdin" | "skill_poll_session" | "skill_kill_session"
    );
    let names = [ToolName::new(tool), ToolName::new("Bash")];
    let names = if counts_as_bash { &names[..] } else { &names[..1] };
    let all = grants.iter().flat_map(|grant| grant.entries);
    let about_it: Vec<&Entry> = all.filter(|entry| names.iter().any(|name| entry.names(name))).collect();
    if about_it.is_empty() {
        return Err(None);
    }
    if about_it.iter().any(|entry| entry.covers_everything()) {
        return Ok(());
    }
    match kind_of(tool, arguments) {
        Kind::Following => Ok(()),
        Kind::Typing => Err(Some(
            "a pattern cannot vouch for what is typed into a program".to_owned(),
        )),
        Kind::Other if about_it.iter().any(|entry| entry.covers_argument(arguments)) => Ok(()),
        Kind::Other => Err(Some("no pattern for this tool matches the argument".to_owned())),
        Kind::Command => covers_command(&about_it, arguments).map_err(Some),
    }
}

fn covers_command(entries: &[&Entry], arguments: &Value) -> Result<(), String> {
    let is_given = |key: &str| {
        arguments.get(key).is_some_and(|value| match value {
            Value::Null => false,
            Value::String(text) => !matches!(text.as_str(), "" | "." | "./"),
            Value::Object(map) => !map.is_empty(),
            _ => true,
        })
    };
    // `PATH`, `LD_PRELOAD`, `GIT_SSH_COMMAND` and their like make an allowed name another program.
    if is_given("env") {
        return Err("a pattern cannot vouch for a command with a changed environment".to_owned());
    }
    let place = if is_given("cwd") { Place::Chosen } else { Place::Default };
    for segment in segments(arguments)? {
        let invocation = Invocation {
            words: &segment.words,
            place,
        };
        if !entries.iter().any(|entry| entry.covers_command(invocation)) {
            let name = segment.words.first().map_or("", |word| &word.text);
            return Err(format!("no pattern covers this use of {name:?}"));
        }
    }
    Ok(())
}

/// The simple commands of a call: of its command line, its words, or its script with arguments.
fn segments(arguments: &Value) -> Result<Vec<Segment>, String> {
    let unreadable = || "the call names no command that can be checked".to_owned();
    let given = |key: &str| arguments.get(key).filter(|value| !value.is_null());
    let words = |value: Option<&Value>| -> Result<Vec<String>, String> {
        let Some(value) = value else { return Ok(Vec::new()) };
        let text = |word: &Value| word.as_str().map(str::to_owned);
        let read = value.as_array().and_then(|words| words.iter().map(text).collect());
        read.ok_or_else(unreadable)
    };
    let argv = words(given("argv"))?;
    let exact = |words: Vec<String>| {
        let words = words.into_iter().map(Word::exact).collect();
        vec![Segment { words }]
    };
    match (given("command"), given("script"), argv.is_empty()) {
        (Some(Value::String(command)), None, true) => split(command).map_err(|refusal| refusal.to_string()),
        (None, Some(Value::String(script)), true) => {
            let mut call = vec![script.clone()];
            call.extend(words(given("args"))?);
            Ok(exact(call))
        }
        (None, None, false) => Ok(exact(argv)),
        _ => Err(unreadable()),
    }
}
