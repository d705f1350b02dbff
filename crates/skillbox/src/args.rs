//! Parses the command line.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Style, Styles};
use clap::{ArgAction, Args, CommandFactory, Parser};

use crate::commands::{Command, RunArgs};
use crate::render::Verbosity;
use crate::settings::GlobalFlags;

const STYLES: Styles = Styles::styled()
    .header(Style::new().bold())
    .usage(Style::new().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Find, validate, disclose and run Agent Skills in a sandbox
#[derive(Parser, Debug)]
#[command(
    name = "skillbox",
    version,
    styles = STYLES,
    max_term_width = 80,
    disable_help_subcommand = true,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = concat!(
        "Without --skills, skillbox searches these places; a later one wins:\n\
         the built-in skills, ~/.agents/skills, ~/.claude/skills, ./.claude/skills,\n\
         ./.agents/skills, ./skills, and each directory in SKILLS_ROOT.\n\n",
        crate::examples!(
        "skillbox demo                       take a guided tour; no setup needed",
        "skillbox list                       list the skills found here",
        "skillbox create my-skill            create a skill that validates and runs",
        "skillbox help settings              describe every setting and its value",
        )
    )
)]
pub struct CommandLine {
    /// The options that every command accepts.
    #[command(flatten)]
    pub options: GlobalOptions,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

impl CommandLine {
    /// Parses the words of a command line, the program's name first.
    pub fn parse_words(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let words = move_repeatable_flags_first(words.into_iter().collect());
        match RunCommandLine::parse_words(&words) {
            Some(line) => Ok(line),
            None => Self::try_parse_from(words),
        }
    }

    /// Whether words that failed to parse name the command `run`.
    pub fn names_run_command(words: impl IntoIterator<Item = OsString>) -> bool {
        let lenient = Self::command().ignore_errors(true);
        let found = lenient.try_get_matches_from(words);
        found.is_ok_and(|matches| matches.subcommand_name() == Some("run"))
    }
}

/// The command line of `run`, parsed without declaring the flags of all other commands, because declaring them takes a
/// considerable part of the time of a run.
#[derive(Parser, Debug)]
struct RunCommandLine {
    #[command(flatten)]
    options: GlobalOptions,
    #[command(subcommand)]
    command: RunSubcommand,
}

#[derive(clap::Subcommand, Debug)]
enum RunSubcommand {
    Run(Box<RunArgs>),
}

impl RunCommandLine {
    /// The parsed line if it is a valid `run` command; [`CommandLine`] parses everything else.
    fn parse_words(words: &[OsString]) -> Option<CommandLine> {
        if !words.iter().take_while(|word| *word != "--").any(|word| word == "run") {
            return None;
        }
        let Self { options, command } = Self::try_parse_from(words).ok()?;
        let RunSubcommand::Run(arguments) = command;
        Some(CommandLine {
            options,
            command: Command::Run(arguments),
        })
    }
}

/// Moves every occurrence of a repeatable global flag to the front.
///
/// clap accepts global flags before and after the command, but drops the former when both are given:
/// `skillbox --skills a list --skills b` must mean both.
fn move_repeatable_flags_first(words: Vec<OsString>) -> Vec<OsString> {
    let repeatable: Vec<_> = GlobalFlags::repeatable().collect();
    let is_flag = |word: &OsStr| repeatable.iter().any(|flag| word == flag.as_str());
    let is_flag_with_value = |word: &OsStr| {
        let is_prefix = |flag: &String| {
            word.as_bytes()
                .strip_prefix(flag.as_bytes())
                .is_some_and(|rest| rest.starts_with(b"="))
        };
        repeatable.iter().any(is_prefix)
    };
    let mut words = words.into_iter().peekable();
    let (mut front, mut rest): (Vec<_>, Vec<_>) = (words.next().into_iter().collect(), Vec::new());
    while let Some(word) = words.next() {
        if word == "--" {
            rest.push(word);
            break;
        }
        let has_value = words.peek().is_some_and(|next| next != "--");
        if is_flag(&word) && has_value {
            front.push(word);
            front.extend(words.next());
        } else if is_flag_with_value(&word) {
            front.push(word);
        } else {
            rest.push(word);
        }
    }
    front.into_iter().chain(rest).chain(words).collect()
}

/// Options that may come before or after the command.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Global options")]
pub struct GlobalOptions {
    /// Print JSON with a stable schema
    #[arg(long, global = true)]
    pub json: bool,
    /// Print more, including notes
    #[arg(short, long, global = true, action = ArgAction::SetTrue, conflicts_with = "quiet")]
    verbose: bool,
    /// Print errors only
    #[arg(short, long, global = true, action = ArgAction::SetTrue)]
    quiet: bool,
    /// Config file to use instead of the default one
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The global settings.
    #[command(flatten)]
    pub settings: GlobalFlags,
}

impl GlobalOptions {
    /// How much is printed on stderr.
    pub fn verbosity(&self) -> Verbosity {
        match (self.verbose, self.quiet) {
            (true, _) => Verbosity::Verbose,
            (_, true) => Verbosity::Quiet,
            _ => Verbosity::Normal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_repeatable_flags_move_to_the_front() {
        let check = |line: &str, expected: &str| {
            let words = move_repeatable_flags_first(line.split(' ').map(OsString::from).collect());
            assert_eq!(words.join(OsStr::new(" ")), expected);
        };
        check("p list", "p list");
        check("p --skills a list --skills b", "p --skills a --skills b list");
        check(
            "p list --skills=a --json --skills b",
            "p --skills=a --skills b list --json",
        );
        check("p list --skills", "p list --skills");
        check("p list --skillsx=1", "p list --skillsx=1");
        check("p run x -- --skills b", "p run x -- --skills b");
        check("p list --skills -- x", "p list --skills -- x");
    }

    #[test]
    fn both_parsers_read_a_run_alike() {
        let words = |line: &str| move_repeatable_flags_first(line.split(' ').map(OsString::from).collect());
        for line in [
            "p run x -- true",
            "p --json run x --timeout 3 --output out/* -- a b",
            "p --skills a run --skills b --session s x",
            "p run x --script y --input a.csv --env A=b -q",
        ] {
            let short = RunCommandLine::parse_words(&words(line)).expect(line);
            let long = CommandLine::try_parse_from(words(line)).expect(line);
            assert_eq!(format!("{short:?}"), format!("{long:?}"));
        }
        for line in [
            "p run --help",
            "p --version run",
            "p run --no-such-flag",
            "p list -- run",
            "p search run",
        ] {
            assert!(RunCommandLine::parse_words(&words(line)).is_none(), "{line}");
        }
    }

    #[test]
    fn the_declarations_are_consistent() {
        use clap::CommandFactory;
        CommandLine::command().debug_assert();
    }
}
