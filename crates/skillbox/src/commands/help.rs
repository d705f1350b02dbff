//! `skillbox help`: help for a command or a topic.

use clap::Args;
use serde::Serialize;
use skillbox_model::{ErrorCode, ExitCode, Severity};
use skillbox_repository::{ParseCode, ScanCode};

use super::help_settings;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Span, Terminal, Tone};

/// Print help for a command or a topic
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox help validate       same as `skillbox validate --help`",
    "skillbox help errors         error codes, their meaning and remedy",
    "skillbox help findings       codes of diagnostics about skills",
    "skillbox help settings       flag, variable, key and default of each setting",
    "skillbox help exit-codes     exit codes and their meaning",
))]
pub struct HelpArgs {
    /// A command, or a topic: `errors`, `findings`, `settings` or `exit-codes`
    topic: Vec<String>,
    /// Print the topic `settings` as a Markdown document
    #[arg(long, hide = true)]
    markdown: bool,
}

const TOPICS: &[&str] = &["errors", "findings", "settings", "exit-codes"];

pub fn run(args: &HelpArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<(), Failure> {
    let words: Vec<_> = args.topic.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["settings"] if args.markdown => help_settings::print_markdown(context, terminal),
        _ if args.markdown => Err(Failure::usage(
            "--markdown works with the topic `settings` only",
            "run `skillbox help settings --markdown`",
        )),
        ["errors"] => print_errors(context, terminal),
        ["findings"] => print_diagnostic_codes(context, terminal),
        ["settings"] => help_settings::run(context, terminal),
        ["exit-codes"] => print_exit_codes(context, terminal),
        path => print_command_help(path, context, terminal),
    }
}

fn print_command_help(path: &[&str], context: &Context<'_>, terminal: &mut Terminal) -> Result<(), Failure> {
    let mut command = (context.command_line)();
    command.build();
    for word in path {
        command = match command.find_subcommand(word) {
            Some(found) => found.clone(),
            None => {
                let message = format!("no command or topic is named `{}`", path.join(" "));
                let hint = format!(
                    "run `skillbox --help` for the commands; the topics are {}",
                    TOPICS.join(", ")
                );
                return Err(Failure::usage(message, hint));
            }
        };
    }
    Ok(terminal.print_styled(&command.render_help().ansi().to_string())?)
}

#[derive(Serialize)]
struct ErrorEntry {
    code: ErrorCode,
    meaning: &'static str,
    remedy: &'static str,
}

fn print_errors(context: &Context<'_>, terminal: &mut Terminal) -> Result<(), Failure> {
    let entries: Vec<_> = ErrorCode::ALL
        .iter()
        .map(|code| ErrorEntry {
            code: *code,
            meaning: code.meaning(),
            remedy: code.remedy(),
        })
        .collect();
    if context.as_json {
        return Ok(terminal.print_json(&entries)?);
    }
    let mut page = terminal.page();
    page.paragraph(
        0,
        Tone::Plain,
        "An error is printed as `error: …` on stderr. With --json, it is one object on stdout:",
    );
    page.blank_line();
    page.verbatim(
        2,
        Tone::Plain,
        r#"{"error": {"code": …, "message": …, "hint"?: …, "field"?: …}}"#,
    );
    page.blank_line();
    page.paragraph(
        0,
        Tone::Plain,
        "Codes are stable: none changes its meaning, and new ones may be added.",
    );
    page.blank_line();
    for entry in entries {
        page.labelled(
            2,
            Span::new(Tone::Name, entry.code.as_str()),
            26,
            Tone::Plain,
            entry.meaning,
        );
        page.labelled(26, Span::new(Tone::Hint, "→"), 28, Tone::Dim, entry.remedy);
    }
    Ok(terminal.print(page)?)
}

#[derive(Serialize)]
struct DiagnosticCodeEntry {
    code: &'static str,
    severity: Severity,
    meaning: &'static str,
}

fn print_diagnostic_codes(context: &Context<'_>, terminal: &mut Terminal) -> Result<(), Failure> {
    let parse_codes = ParseCode::ALL
        .iter()
        .map(|code| (code.as_str(), code.severity(), code.description()));
    let scan_codes = ScanCode::ALL
        .iter()
        .map(|code| (code.as_str(), code.severity(), code.description()));
    let entries = parse_codes
        .chain(scan_codes)
        .map(|(code, severity, meaning)| DiagnosticCodeEntry {
            code,
            severity,
            meaning,
        });
    let entries: Vec<_> = entries.collect();
    if context.as_json {
        return Ok(terminal.print_json(&entries)?);
    }
    let mut page = terminal.page();
    for (severity, title) in [
        (Severity::Error, "errors: the skill or file is skipped"),
        (
            Severity::Warning,
            "warnings: the skill or file is used, but has a problem",
        ),
        (Severity::Info, "notes: advice for authors"),
    ] {
        page.heading(title);
        for entry in entries.iter().filter(|entry| entry.severity == severity) {
            page.labelled(2, Span::new(Tone::Name, entry.code), 28, Tone::Plain, entry.meaning);
        }
    }
    Ok(terminal.print(page)?)
}

#[derive(Serialize)]
struct ExitCodeEntry {
    code: u8,
    /// The command that uses the code; all others if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'static str>,
    meaning: &'static str,
}

fn print_exit_codes(context: &Context<'_>, terminal: &mut Terminal) -> Result<(), Failure> {
    let other = |code, meaning| ExitCodeEntry {
        code,
        command: None,
        meaning,
    };
    let run = |code, meaning| ExitCodeEntry {
        code,
        command: Some("run"),
        meaning,
    };
    let entries = [
        other(ExitCode::OK, "success"),
        other(
            ExitCode::FAILURE,
            "the checked object is bad, or the request was refused",
        ),
        other(ExitCode::USAGE, "wrong usage or setting"),
        run(ExitCode::OK, "to 123: the script's own exit code"),
        run(ExitCode::TIMED_OUT, "timed out"),
        run(ExitCode::REFUSED, "skillbox refused the run or failed"),
        run(126, "the command is not executable"),
        run(127, "the command was not found"),
        run(ExitCode::SIGNAL_BASE, "+ N: ended by signal N"),
        run(ExitCode::LIMIT, "ended by a limit, or cancelled"),
    ];
    if context.as_json {
        return Ok(terminal.print_json(&entries)?);
    }
    let mut page = terminal.page();
    for (title, command) in [("skillbox run", Some("run")), ("all other commands", None)] {
        page.line(&[Span::new(Tone::Heading, title)]);
        for entry in entries.iter().filter(|entry| entry.command == command) {
            let code = Span::new(Tone::Name, entry.code.to_string());
            page.labelled(2, code, 7, Tone::Plain, entry.meaning);
        }
    }
    Ok(terminal.print(page)?)
}
