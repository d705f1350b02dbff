//! The command line as it is written.

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

/// Find, check, disclose and run Agent Skills, in a sandbox
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
        "Without --skills these are searched, a later one winning over an earlier one:\n\
         the built-in skills, ~/.agents/skills, ~/.claude/skills, ./.claude/skills,\n\
         ./.agents/skills, ./skills, and each entry of the path list SKILLS_ROOT.\n\n",
        crate::examples!(
        "skillbox demo                       a guided tour, no set-up needed",
        "skillbox list                       what there is",
        "skillbox create my-skill            a new skill that validates and runs",
        "skillbox help settings              every setting and where its value is from",
        )
    )
)]
pub struct Line {
    /// Options that every command takes.
    #[command(flatten)]
    pub shared: Shared,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Line {
    /// Parses the words of a command line, the program's name first.
    pub fn of(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let words = gathered(words.into_iter().collect());
        match RunLine::of(&words) {
            Some(line) => Ok(line),
            None => Self::try_parse_from(words),
        }
    }

    /// Whether the words, wrong as they are, mean a run.
    pub fn is_of_run(words: impl IntoIterator<Item = OsString>) -> bool {
        let lenient = Self::command().ignore_errors(true);
        let found = lenient.try_get_matches_from(words);
        found.is_ok_and(|matches| matches.subcommand_name() == Some("run"))
    }
}

/// The command line of a run, which is read without declaring the flags of every other command first. That takes as
/// long as a good part of the run.
#[derive(Parser, Debug)]
struct RunLine {
    #[command(flatten)]
    shared: Shared,
    #[command(subcommand)]
    command: OnlyRun,
}

#[derive(clap::Subcommand, Debug)]
enum OnlyRun {
    Run(Box<RunArgs>),
}

impl RunLine {
    /// The line, if it is one of a run without mistakes. Everything else is for [`Line`] to read, or to refuse.
    fn of(words: &[OsString]) -> Option<Line> {
        if !words.iter().take_while(|word| *word != "--").any(|word| word == "run") {
            return None;
        }
        let Self { shared, command } = Self::try_parse_from(words).ok()?;
        let OnlyRun::Run(arguments) = command;
        Some(Line {
            shared,
            command: Command::Run(arguments),
        })
    }
}

/// The same words with every occurrence of a repeatable global flag moved to the front.
///
/// clap takes global flags before or after the command, but where one stands on both sides it forgets the first:
/// `skillbox --skills a list --skills b` must mean both.
fn gathered(words: Vec<OsString>) -> Vec<OsString> {
    let repeatable: Vec<_> = GlobalFlags::repeatable().collect();
    let is_flag = |word: &OsStr| repeatable.iter().any(|flag| word == flag.as_str());
    let is_flag_with_value = |word: &OsStr| {
        let starts = |flag: &String| {
            word.as_bytes()
                .strip_prefix(flag.as_bytes())
                .is_some_and(|rest| rest.starts_with(b"="))
        };
        repeatable.iter().any(starts)
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

/// Options that may stand before or after the command.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Global options")]
pub struct Shared {
    /// Print JSON of a stable shape on stdout
    #[arg(long, global = true)]
    pub json: bool,
    /// Tell more: advice too
    #[arg(short, long, global = true, action = ArgAction::SetTrue, conflicts_with = "quiet")]
    verbose: bool,
    /// Tell less: errors only
    #[arg(short, long, global = true, action = ArgAction::SetTrue)]
    quiet: bool,
    /// Read this config file instead of ./skillbox.toml or the user's
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Settings.
    #[command(flatten)]
    pub settings: GlobalFlags,
}

impl Shared {
    /// How much is told.
    pub fn verbosity(&self) -> Verbosity {
        match (self.verbose, self.quiet) {
            (true, _) => Verbosity::Verbose,
            (_, true) => Verbosity::Quiet,
            _ => Verbosity::Normal,
        }
    }
}

/// The examples of a command's help, under a heading like clap's own.
#[macro_export]
macro_rules! examples {
    ($($line:literal),+ $(,)?) => {
        concat!("\u{1b}[1mExamples:\u{1b}[0m", $("\n  ", $line),+)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_flags_are_gathered_and_nothing_else_moves() {
        let check = |line: &str, expected: &str| {
            let words = gathered(line.split(' ').map(OsString::from).collect());
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
    fn a_run_is_read_alike_in_both_ways() {
        let words = |line: &str| gathered(line.split(' ').map(OsString::from).collect());
        for line in [
            "p run x -- true",
            "p --json run x --timeout 3 --output out/* -- a b",
            "p --skills a run --skills b --session s x",
            "p run x --script y --input a.csv --env A=b -q",
        ] {
            let short = RunLine::of(&words(line)).expect(line);
            let long = Line::try_parse_from(words(line)).expect(line);
            assert_eq!(format!("{short:?}"), format!("{long:?}"));
        }
        for line in [
            "p run --help",
            "p --version run",
            "p run --no-such-flag",
            "p list -- run",
            "p search run",
        ] {
            assert!(RunLine::of(&words(line)).is_none(), "{line}");
        }
    }

    #[test]
    fn the_declarations_hold_together() {
        use clap::CommandFactory;
        Line::command().debug_assert();
    }
}
