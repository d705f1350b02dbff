//! Splits a shell command line into the simple commands it would start, or refuses.
//!
//! A pattern such as `Bash(git:*)` vouches for a program and its leading words. That is worth something only
//! if we know every program that bash would start, so this reader understands simple commands joined by
//! `;`, `&`, `&&`, `||`, `|` and line breaks, and nothing else. What it refuses, and why:
//!
//! - command, process and arithmetic substitution, and every parameter expansion but `$NAME` and `${NAME}`:
//!   they run code or hide what runs;
//! - subshells, groups, functions and shell keywords: their inner commands would go unseen;
//! - assignments: `PATH=. git` is another git;
//! - redirections, save between descriptors and with `/dev/null`: a pattern for a reader must not become a
//!   permission to write files, or to read others;
//! - built-ins that change how later commands are found or read (`eval`, `alias`, `printf -v`, `hash`, …).
//!
//! `$NAME`, globs, braces and a tilde in an argument are let through as words of unknown content: only a
//! pattern's final `*` covers them.

use super::shell_words::{Cursor, Word};

/// Longer command lines are refused unread.
const LONGEST: usize = 128 * 1024;

/// One simple command of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The program and its arguments; never empty, and the first word is exact.
    pub(crate) words: Vec<Word>,
}

/// Why a command line cannot be vouched for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ShellRefusal {
    #[error("the command is empty")]
    Empty,
    #[error("the command has {0} bytes, more than can be checked")]
    TooLong(usize),
    #[error("the command contains a control character")]
    Control,
    #[error("a quote is not closed")]
    OpenQuote,
    #[error("a backslash ends the command")]
    OpenEscape,
    #[error("a backslash breaks a word in two lines")]
    BrokenWord,
    #[error("an operator has no command beside it")]
    MissingCommand,
    #[error("a substitution runs a command that cannot be seen")]
    Substitution,
    #[error("an expansion other than `$NAME` cannot be checked")]
    Expansion,
    #[error("a subshell or function cannot be checked")]
    Subshell,
    #[error("a redirection reads or writes a file")]
    Redirection,
    #[error("the assignment {0:?} changes the environment of a command")]
    Assignment(String),
    #[error("the name of a command is the result of an expansion")]
    HiddenCommand,
    #[error("{0:?} is part of the shell and changes what later words mean")]
    ShellWord(String),
}

/// Splits a command line into its simple commands.
pub(crate) fn split(command: &str) -> Result<Vec<Segment>, ShellRefusal> {
    if command.len() > LONGEST {
        return Err(ShellRefusal::TooLong(command.len()));
    }
    if command.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
        return Err(ShellRefusal::Control);
    }
    let mut cursor = Cursor::new(command);
    let mut segments = Vec::new();
    let mut words = Vec::new();
    // After `&&`, `||` and `|` another command must follow.
    let mut another_due = false;
    loop {
        cursor.skip_blanks();
        let Some(c) = cursor.peek() else { break };
        match c {
            '\n' => {
                cursor.next();
                finish(&mut words, &mut segments, &mut another_due)?;
            }
            '#' => cursor.skip_line(),
            ';' | '&' | '|' => {
                if cursor.starts_with("&>") {
                    redirection(&mut cursor)?;
                    continue;
                }
                if words.is_empty() {
                    return Err(ShellRefusal::MissingCommand);
                }
                finish(&mut words, &mut segments, &mut another_due)?;
                another_due = operator(&mut cursor);
            }
            '(' | ')' => return Err(ShellRefusal::Subshell),
            '<' | '>' => redirection(&mut cursor)?,
            _ if cursor.at_descriptor_redirection() => {
                cursor.skip_digits();
                redirection(&mut cursor)?;
            }
            _ => words.push(cursor.word()?),
        }
    }
    finish(&mut words, &mut segments, &mut another_due)?;
    match (segments.is_empty(), another_due) {
        (_, true) => Err(ShellRefusal::MissingCommand),
        (true, false) => Err(ShellRefusal::Empty),
        (false, false) => Ok(segments),
    }
}

/// Takes the operator; says whether a command must follow it.
fn operator(cursor: &mut Cursor<'_>) -> bool {
    for (text, command_follows) in [("&&", true), ("||", true), ("|&", true), ("|", true), ("&", false)] {
        if cursor.take(text) {
            return command_follows;
        }
    }
    cursor.next();
    false
}

fn finish(words: &mut Vec<Word>, segments: &mut Vec<Segment>, another_due: &mut bool) -> Result<(), ShellRefusal> {
    if words.is_empty() {
        return Ok(());
    }
    let segment = Segment {
        words: std::mem::take(words),
    };
    check_command_word(&segment)?;
    segments.push(segment);
    *another_due = false;
    Ok(())
}

/// Takes a redirection between descriptors or with `/dev/null`; refuses every other.
fn redirection(cursor: &mut Cursor<'_>) -> Result<(), ShellRefusal> {
    if cursor.starts_with("<(") || cursor.starts_with(">(") {
        return Err(ShellRefusal::Substitution);
    }
    // Here-documents and here-strings come first, being longer than `<`.
    if cursor.starts_with("<<") || cursor.starts_with("<>") {
        return Err(ShellRefusal::Redirection);
    }
    let duplicates = ["&>>", "&>", ">>", ">|", ">&", "<&", ">", "<"]
        .into_iter()
        .find(|text| cursor.take(text))
        .is_some_and(|text| matches!(text, ">&" | "<&"));
    cursor.skip_blanks();
    if !cursor.at_word() {
        return Err(ShellRefusal::Redirection);
    }
    let target = cursor.word()?;
    let harmless = if duplicates {
        target.exact && (target.text == "-" || target.text.bytes().all(|b| b.is_ascii_digit()))
    } else {
        target.exact && target.text == "/dev/null"
    };
    if harmless {
        Ok(())
    } else {
        Err(ShellRefusal::Redirection)
    }
}

fn check_command_word(segment: &Segment) -> Result<(), ShellRefusal> {
    let (command, arguments) = segment.words.split_first().ok_or(ShellRefusal::Empty)?;
    if !command.exact || command.text.is_empty() {
        return Err(ShellRefusal::HiddenCommand);
    }
    if is_assignment(&command.text) {
        return Err(ShellRefusal::Assignment(command.text.clone()));
    }
    let sets_variable = |word: &Word| !word.exact || word.text.starts_with("-v");
    let changes_shell = SHELL_WORDS.binary_search(&command.text.as_str()).is_ok()
        || command.text == "printf" && arguments.first().is_some_and(sets_variable);
    if changes_shell {
        return Err(ShellRefusal::ShellWord(command.text.clone()));
    }
    Ok(())
}

/// `NAME=…`, `NAME+=…` and `NAME[…]=…`. Quotes are not looked at: a program with such a name is none of ours.
fn is_assignment(word: &str) -> bool {
    let name = word.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let Some(end) = name.filter(|end| *end > 0) else {
        return false;
    };
    if word.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let rest = &word[end..];
    rest.starts_with('=') || rest.starts_with("+=") || rest.starts_with('[') && rest.contains('=')
}

/// Keywords, and built-ins that change how later commands are found, read or run, in order.
pub(super) const SHELL_WORDS: &[&str] = &[
    "!",
    ".",
    "[[",
    "]]",
    "alias",
    "bind",
    "builtin",
    "case",
    "command",
    "compgen",
    "complete",
    "compopt",
    "coproc",
    "declare",
    "dirs",
    "do",
    "done",
    "elif",
    "else",
    "enable",
    "esac",
    "eval",
    "exec",
    "export",
    "fc",
    "fi",
    "for",
    "function",
    "getopts",
    "hash",
    "history",
    "if",
    "in",
    "jobs",
    "let",
    "local",
    "mapfile",
    "popd",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "return",
    "select",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "then",
    "time",
    "trap",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "until",
    "wait",
    "while",
    "{",
    "}",
];
