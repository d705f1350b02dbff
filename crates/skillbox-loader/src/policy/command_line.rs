//! Splits a shell command line into the simple commands that bash would run, or refuses it.
//!
//! A pattern such as `Bash(git:*)` allows a program and its leading words. The check is sound only if it knows every
//! program that bash would start. This parser therefore accepts simple commands joined by `;`, `&`, `&&`, `||`, `|` and
//! line breaks, and nothing else. It refuses:
//!
//! - command, process and arithmetic substitution, and every parameter expansion except `$NAME` and `${NAME}`: they run
//!   code or hide what runs;
//! - subshells, groups, functions and shell keywords: their inner commands would escape the check;
//! - assignments: `PATH=. git` runs another git;
//! - redirections, except between descriptors and with `/dev/null`: a pattern for a program that reads must not permit
//!   writing files or reading others;
//! - built-ins that change how later commands are found or parsed (`eval`, `alias`, `printf -v`, `hash`, …).
//!
//! `$NAME`, globs, braces and a tilde are accepted in an argument, as words of unknown content: only a pattern's final
//! `*` matches them.

use super::shell_lexer::{ShellCursor, Word};
use super::shell_refusal::ShellRefusal;

/// Longer command lines are refused without parsing.
const MAX_COMMAND_BYTES: usize = 128 * 1024;

/// One simple command of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SimpleCommand {
    /// The program and its arguments. Never empty; the first word is literal.
    pub(crate) words: Vec<Word>,
}

/// Splits a command line into its simple commands.
pub(crate) fn split_commands(command: &str) -> Result<Vec<SimpleCommand>, ShellRefusal> {
    if command.len() > MAX_COMMAND_BYTES {
        return Err(ShellRefusal::TooLong(command.len()));
    }
    if command.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
        return Err(ShellRefusal::ControlCharacter);
    }
    let mut cursor = ShellCursor::new(command);
    let mut commands = Vec::new();
    let mut words = Vec::new();
    // After `&&`, `||` and `|` another command must follow.
    let mut command_expected = false;
    loop {
        cursor.skip_blanks();
        let Some(c) = cursor.peek() else { break };
        match c {
            '\n' => {
                cursor.next();
                finish_command(&mut words, &mut commands, &mut command_expected)?;
            }
            '#' => cursor.skip_line(),
            ';' | '&' | '|' => {
                if cursor.starts_with("&>") {
                    skip_redirection(&mut cursor)?;
                    continue;
                }
                if words.is_empty() {
                    return Err(ShellRefusal::MissingCommand);
                }
                finish_command(&mut words, &mut commands, &mut command_expected)?;
                command_expected = skip_operator(&mut cursor);
            }
            '(' | ')' => return Err(ShellRefusal::Subshell),
            '<' | '>' => skip_redirection(&mut cursor)?,
            _ if cursor.at_descriptor_redirection() => {
                cursor.skip_digits();
                skip_redirection(&mut cursor)?;
            }
            _ => words.push(cursor.read_word()?),
        }
    }
    finish_command(&mut words, &mut commands, &mut command_expected)?;
    match (commands.is_empty(), command_expected) {
        (_, true) => Err(ShellRefusal::MissingCommand),
        (true, false) => Err(ShellRefusal::Empty),
        (false, false) => Ok(commands),
    }
}

/// Skips an operator and returns whether a command must follow it.
fn skip_operator(cursor: &mut ShellCursor<'_>) -> bool {
    for (text, command_follows) in [("&&", true), ("||", true), ("|&", true), ("|", true), ("&", false)] {
        if cursor.skip(text) {
            return command_follows;
        }
    }
    cursor.next();
    false
}

fn finish_command(
    words: &mut Vec<Word>,
    commands: &mut Vec<SimpleCommand>,
    command_expected: &mut bool,
) -> Result<(), ShellRefusal> {
    if words.is_empty() {
        return Ok(());
    }
    let command = SimpleCommand {
        words: std::mem::take(words),
    };
    check_program(&command)?;
    commands.push(command);
    *command_expected = false;
    Ok(())
}

/// Skips a redirection between descriptors or with `/dev/null`, and refuses every other.
fn skip_redirection(cursor: &mut ShellCursor<'_>) -> Result<(), ShellRefusal> {
    if cursor.starts_with("<(") || cursor.starts_with(">(") {
        return Err(ShellRefusal::Substitution);
    }
    // Here-documents and here-strings are checked first, because `<` is a prefix of them.
    if cursor.starts_with("<<") || cursor.starts_with("<>") {
        return Err(ShellRefusal::Redirection);
    }
    let is_duplication = ["&>>", "&>", ">>", ">|", ">&", "<&", ">", "<"]
        .into_iter()
        .find(|text| cursor.skip(text))
        .is_some_and(|text| matches!(text, ">&" | "<&"));
    cursor.skip_blanks();
    if !cursor.at_word() {
        return Err(ShellRefusal::Redirection);
    }
    let target = cursor.read_word()?;
    let is_harmless = if is_duplication {
        target.is_literal && (target.text == "-" || target.text.bytes().all(|b| b.is_ascii_digit()))
    } else {
        target.is_literal && target.text == "/dev/null"
    };
    if is_harmless {
        Ok(())
    } else {
        Err(ShellRefusal::Redirection)
    }
}

/// Refuses a program name that the shell expands, an assignment, and a word that changes the shell.
fn check_program(command: &SimpleCommand) -> Result<(), ShellRefusal> {
    let (program, arguments) = command.words.split_first().ok_or(ShellRefusal::Empty)?;
    if !program.is_literal || program.text.is_empty() {
        return Err(ShellRefusal::ExpandedCommandName);
    }
    if is_assignment(&program.text) {
        return Err(ShellRefusal::Assignment(program.text.clone()));
    }
    let sets_variable = |word: &Word| !word.is_literal || word.text.starts_with("-v");
    let changes_shell = SHELL_CHANGING_WORDS.binary_search(&program.text.as_str()).is_ok()
        || program.text == "printf" && arguments.first().is_some_and(sets_variable);
    if changes_shell {
        return Err(ShellRefusal::ShellChangingWord(program.text.clone()));
    }
    Ok(())
}

/// Whether a word is `NAME=…`, `NAME+=…` or `NAME[…]=…`. Quotes are ignored: no legitimate program has such a name.
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

/// Keywords, and built-ins that change how later commands are found, parsed or run. Sorted for binary search.
pub(super) const SHELL_CHANGING_WORDS: &[&str] = &[
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
