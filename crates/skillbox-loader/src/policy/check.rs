//! Checks one tool call against the declarations of the loaded skills.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::allowed_tool::{AllowedTool, ToolName};
use super::command_line::{SimpleCommand, split_commands};
use super::command_pattern::{LocatedCommand, StartDirectory};
use super::shell_lexer::Word;

/// How a session enforces `allowed-tools`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PolicyKind {
    /// Shown in the prompt, never enforced.
    #[default]
    Recommend,
    /// Allows the tools that the loaded skills declare. If one of the skills declares none, every tool is allowed.
    Restrict,
    /// Allows only the tools that the loaded skills declare. A skill that declares none adds none.
    Strict,
}

impl PolicyKind {
    /// The name in JSON and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Recommend => "recommend",
            Self::Restrict => "restrict",
            Self::Strict => "strict",
        }
    }
}

/// The tools that no policy blocks, unless the host sets its own.
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

/// The tools that one loaded skill declares in `allowed-tools`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeclaredTools<'s> {
    /// Whether the skill declares any tool, even if no entry parses.
    pub(crate) declares_any: bool,
    /// The entries that parse.
    pub(crate) entries: &'s [AllowedTool],
}

/// The result of checking one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The call may be made.
    Allowed,
    /// The call must not be made. If the skills declare patterns for the tool, the text says why none matches.
    Blocked(Option<String>),
}

/// Checks a call of `tool` while skills with these declarations are loaded.
pub(crate) fn check(
    kind: PolicyKind,
    always_allowed: &BTreeSet<String>,
    declared: &[DeclaredTools<'_>],
    tool: &str,
    arguments: &Value,
) -> Verdict {
    if kind == PolicyKind::Recommend || declared.is_empty() || always_allowed.contains(tool) {
        return Verdict::Allowed;
    }
    if kind == PolicyKind::Restrict && declared.iter().any(|tools| !tools.declares_any) {
        return Verdict::Allowed;
    }
    match check_declared_tools(declared, tool, arguments) {
        Ok(()) => Verdict::Allowed,
        Err(reason) => Verdict::Blocked(reason),
    }
}

/// The kind of a call, which decides what an entry must match.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallKind {
    /// A command line, or a script with its arguments.
    Command,
    /// Input for a running program. No pattern can check it.
    StdinWrite,
    /// Polls or ends a program that an allowed call has started.
    ProcessControl,
    /// Any other tool.
    Other,
}

fn classify_call(tool: &str, arguments: &Value) -> CallKind {
    match tool {
        "Bash" | "skill_run" | "skill_exec" => CallKind::Command,
        "skill_write_stdin" => CallKind::StdinWrite,
        "skill_poll_session" | "skill_kill_session" => CallKind::ProcessControl,
        // A host's own shell tool is treated as a shell, whatever its name.
        _ if arguments.get("command").is_some() => CallKind::Command,
        _ => CallKind::Other,
    }
}

fn check_declared_tools(declared: &[DeclaredTools<'_>], tool: &str, arguments: &Value) -> Result<(), Option<String>> {
    let counts_as_bash = matches!(
        tool,
        "skill_run" | "skill_exec" | "skill_write_stdin" | "skill_poll_session" | "skill_kill_session"
    );
    let names = [ToolName::new(tool), ToolName::new("Bash")];
    let names = if counts_as_bash { &names[..] } else { &names[..1] };
    let entries = declared.iter().flat_map(|tools| tools.entries);
    let matching: Vec<&AllowedTool> = entries
        .filter(|entry| names.iter().any(|name| entry.matches_tool(name)))
        .collect();
    if matching.is_empty() {
        return Err(None);
    }
    if matching.iter().any(|entry| entry.allows_any_argument()) {
        return Ok(());
    }
    match classify_call(tool, arguments) {
        CallKind::ProcessControl => Ok(()),
        CallKind::StdinWrite => Err(Some("a pattern cannot check the input of a running program".to_owned())),
        CallKind::Other if matching.iter().any(|entry| entry.matches_argument(arguments)) => Ok(()),
        CallKind::Other => Err(Some("no pattern for this tool matches the argument".to_owned())),
        CallKind::Command => check_command(&matching, arguments).map_err(Some),
    }
}

fn check_command(entries: &[&AllowedTool], arguments: &Value) -> Result<(), String> {
    let is_given = |key: &str| {
        arguments.get(key).is_some_and(|value| match value {
            Value::Null => false,
            Value::String(text) => !matches!(text.as_str(), "" | "." | "./"),
            Value::Object(map) => !map.is_empty(),
            _ => true,
        })
    };
    // `PATH`, `LD_PRELOAD`, `GIT_SSH_COMMAND` and similar variables make an allowed name run another program.
    if is_given("env") {
        return Err("a pattern cannot check a command with a changed environment".to_owned());
    }
    let start_directory = if is_given("cwd") {
        StartDirectory::Custom
    } else {
        StartDirectory::Default
    };
    for command in parse_commands(arguments)? {
        let located = LocatedCommand {
            words: &command.words,
            start_directory,
        };
        if !entries.iter().any(|entry| entry.matches_command(located)) {
            let name = command.words.first().map_or("", |word| &word.text);
            return Err(format!("no pattern allows this use of {name:?}"));
        }
    }
    Ok(())
}

/// Parses the simple commands of a call from its command line, its argv, or its script and arguments.
fn parse_commands(arguments: &Value) -> Result<Vec<SimpleCommand>, String> {
    let unreadable = || "the call contains no command that can be checked".to_owned();
    let given = |key: &str| arguments.get(key).filter(|value| !value.is_null());
    let words = |value: Option<&Value>| -> Result<Vec<String>, String> {
        let Some(value) = value else { return Ok(Vec::new()) };
        let text = |word: &Value| word.as_str().map(str::to_owned);
        let parsed = value.as_array().and_then(|words| words.iter().map(text).collect());
        parsed.ok_or_else(unreadable)
    };
    let argv = words(given("argv"))?;
    let literal = |words: Vec<String>| {
        let words = words.into_iter().map(Word::literal).collect();
        vec![SimpleCommand { words }]
    };
    match (given("command"), given("script"), argv.is_empty()) {
        (Some(Value::String(command)), None, true) => split_commands(command).map_err(|refusal| refusal.to_string()),
        (None, Some(Value::String(script)), true) => {
            let mut call = vec![script.clone()];
            call.extend(words(given("args"))?);
            Ok(literal(call))
        }
        (None, None, false) => Ok(literal(argv)),
        _ => Err(unreadable()),
    }
}
