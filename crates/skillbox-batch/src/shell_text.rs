//! Finds places of a template where the value of a placeholder would be read as text of a shell.
//!
//! A quoted reference to a variable is one word for the shell that reads the command line. It becomes shell text again where
//! a second shell, or a construct that evaluates words, reads it. The search errs on the safe side: it looks at words and
//! does not parse the language of the shell. Text in other languages, as in `python3 -c`, is outside of it.

use crate::placeholder::{Piece, split};

/// Programs that read their arguments as a script, or a script from `-c`.
const SHELLS: [&str; 13] = [
    "sh", "bash", "rbash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh", "yash", "busybox",
];
/// Programs with other options than a shell that hand words to one.
const SHELL_STARTERS: [&str; 6] = ["su", "script", "ssh", "watch", "parallel", "tmux"];
/// Words of bash that evaluate other words of their command.
const EVALUATING_WORDS: [&str; 15] = [
    "eval",
    "let",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "unset",
    "trap",
    "alias",
    "read",
    "mapfile",
    "readarray",
    "getopts",
    "source",
];
/// Constructs of bash that evaluate words as arithmetic, in which an index can be a command.
const EVALUATING_CONSTRUCTS: [&str; 4] = ["((", "[[", "$[", "<<"];

/// A placeholder whose value could be read as shell text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ShellDanger {
    #[error("{0} can read the value of a placeholder as a script")]
    Shell(String),
    #[error("{0} can evaluate the value of a placeholder")]
    Evaluates(String),
}

impl ShellDanger {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Shell(_) => {
                "give the value to the script as an argument: `-c SCRIPT NAME {input}` with `$1` in the script, or leave \
                 out the second shell"
            }
            Self::Evaluates(_) => "put these commands into a script of the skill, with the placeholder as its argument",
        }
    }
}

/// Checks the words of a program and its arguments.
pub(crate) fn check_words(words: &[String]) -> Result<(), ShellDanger> {
    for (index, word) in words.iter().enumerate() {
        let (program, arguments) = (program_name(word), &words[index + 1..]);
        let is_danger = if SHELLS.contains(&program) {
            has_placeholder_in_script(arguments)
        } else if SHELL_STARTERS.contains(&program) {
            arguments.iter().any(|argument| has_placeholder(argument))
        } else if program == "env" {
            let splits = |argument: &String| argument.starts_with("-S") || argument.starts_with("--split-string");
            arguments.iter().any(splits) && arguments.iter().any(|argument| has_placeholder(argument))
        } else {
            false
        };
        if is_danger {
            return Err(ShellDanger::Shell(program.to_owned()));
        }
    }
    Ok(())
}

/// Checks a command line for a shell. Its quotes are checked where placeholders are replaced.
pub(crate) fn check_line(line: &str) -> Result<(), ShellDanger> {
    if !has_placeholder(line) {
        return Ok(());
    }
    if let Some(construct) = EVALUATING_CONSTRUCTS.into_iter().find(|text| line.contains(text)) {
        return Err(ShellDanger::Evaluates(construct.to_owned()));
    }
    let words = words_of_line(line);
    if let Some(word) = words.iter().find(|word| EVALUATING_WORDS.contains(&word.as_str())) {
        return Err(ShellDanger::Evaluates(word.clone()));
    }
    // Each of them evaluates the name of a variable with an index.
    let tests = ["[", "test", "printf"];
    if let Some(pair) = words
        .windows(2)
        .find(|pair| tests.contains(&pair[0].as_str()) && ["-v", "-R"].contains(&pair[1].as_str()))
    {
        return Err(ShellDanger::Evaluates(pair.join(" ")));
    }
    check_words(&words)
}

/// The words of a command line, without quotes and escapes. Separators of commands end words.
fn words_of_line(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut open_quote = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (open_quote, character) {
            (Some(quote), _) if character == quote => open_quote = None,
            (None | Some('"'), '\\') => word.extend(characters.next()),
            (Some(_), _) => word.push(character),
            (None, '\'' | '"') => open_quote = Some(character),
            (None, ' ' | '\t' | '\n' | ';' | '|' | '&' | '(' | ')' | '`' | '<' | '>') => {
                words.push(std::mem::take(&mut word))
            }
            (None, _) => word.push(character),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// Whether a placeholder is among the arguments of a shell, other than the arguments of a script.
fn has_placeholder_in_script(arguments: &[String]) -> bool {
    let is_option = |argument: &String| argument.starts_with(['-', '+']);
    let script = match arguments {
        [] => return false,
        // A file, or the name of a tool of busybox.
        [file, ..] if !is_option(file) => 1,
        // Letters of which the last one announces the script, and no option that takes the word after it.
        [option, script, ..] if is_command_option(option) && !is_option(script) => 2,
        _ => arguments.len(),
    };
    arguments[..script].iter().any(|argument| has_placeholder(argument))
}

fn is_command_option(option: &str) -> bool {
    option
        .strip_prefix('-')
        .and_then(|letters| letters.strip_suffix('c'))
        .is_some_and(|letters| {
            letters
                .chars()
                .all(|letter| letter.is_ascii_lowercase() && !"oc".contains(letter))
        })
}

fn program_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

fn has_placeholder(text: &str) -> bool {
    split(text).iter().any(|piece| matches!(piece, Piece::Placeholder(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Result<(), ShellDanger> {
        check_words(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_script_with_a_placeholder_is_found_behind_every_spelling_of_its_options() {
        for bad in [
            &["/bin/bash", "-ec", "cat {input}"][..],
            &["bash", "-ceuo", "pipefail", "echo {name}"],
            &["bash", "-c", "+x", "echo {name}"],
            &["bash", "-o", "pipefail", "-c", "echo {name}"],
            &["bash", "--norc", "-c", "echo {name}"],
            &["env", "sh", "-c", "-e", "cat {input}"],
            &["busybox", "sh", "-c", "cat {input}"],
            &["bash", "{input}"],
            &["mksh", "-c", "echo {name}"],
            &["su", "-c", "echo {name}"],
            &["script", "-qc", "echo {name}"],
            &["env", "-S", "echo {name}"],
        ] {
            assert!(words(bad).is_err(), "{bad:?}");
        }
        for good in [
            &["bash", "-c", "cat \"$1\"", "_", "{input}"][..],
            &["bash", "-euc", "cat \"$1\"", "_", "{input}"],
            &["bash", "scripts/run.sh", "{input}", "-c", "{name}"],
            &["grep", "-c", "{stem}"],
            &["env", "A=1", "cat", "{input}"],
            &["bash", "-o", "pipefail", "-c", "true"],
        ] {
            assert_eq!(words(good), Ok(()), "{good:?}");
        }
    }

    #[test]
    fn a_line_that_evaluates_a_value_is_found() {
        for bad in [
            "bash -c echo\\ {name}",
            "echo $(( {stem} + 1 ))",
            "[[ {stem} -gt 5 ]] && true",
            "((x = {stem}))",
            "let x={stem}",
            "echo $[{stem}]",
            "eval echo {name}",
            "declare -i x={stem}",
            "printf -v {name} x",
            "test -v {stem}",
            "a; 'su' -c {name}",
            "true|sh -s {name} <<X",
            "x=$(bash -ec echo\\ {name})",
        ] {
            assert!(check_line(bad).is_err(), "{bad}");
        }
        for good in [
            "bash scripts/run.sh {input} > out/{stem}.txt",
            "bash -c 'cat \"$1\"' _ {input}",
            "python3 x.py {input} --title {stem} && cp {input} out/",
            "grep -v {stem} inputs/x | sort",
            "echo $((1 + 1))",
            "[ -e {input} ] && cat {input}",
        ] {
            assert_eq!(check_line(good), Ok(()), "{good}");
        }
    }
}
