//! The reasons why a shell command line cannot be checked.

/// Why a command line cannot be checked against patterns.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ShellRefusal {
    #[error("the command is empty")]
    Empty,
    #[error("the command has {0} bytes, too many to be checked")]
    TooLong(usize),
    #[error("the command contains a control character")]
    ControlCharacter,
    #[error("a quote is not closed")]
    UnclosedQuote,
    #[error("a backslash ends the command")]
    TrailingBackslash,
    #[error("a backslash continues a word on the next line")]
    LineContinuation,
    #[error("an operator lacks a command")]
    MissingCommand,
    #[error("a substitution runs a command that cannot be checked")]
    Substitution,
    #[error("an expansion other than `$NAME` cannot be checked")]
    Expansion,
    #[error("a subshell or function cannot be checked")]
    Subshell,
    #[error("a redirection reads or writes a file")]
    Redirection,
    #[error("the assignment {0:?} changes the environment of a command")]
    Assignment(String),
    #[error("an expansion determines the name of the command")]
    ExpandedCommandName,
    #[error("{0:?} is a shell keyword or built-in that changes how later commands run")]
    ShellChangingWord(String),
}
