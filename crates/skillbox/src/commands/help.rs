//! `skillbox help`: the help of a command, or of a topic that is no command.

use clap::{Args, CommandFactory};
use serde::Serialize;
use skillbox_model::{ErrorCode, ExitCode, Severity};
use skillbox_repository::{ParseCode, ScanCode};

use super::Context;
use super::config::ShownSettings;
use crate::args::Line;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone};
use crate::settings::{AgentFlags, HostFlags, ServeFlags};

/// Print help for a command or a topic
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox help validate       the same as `skillbox validate --help`",
    "skillbox help errors         every error code, what it means, what to do",
    "skillbox help findings       every code of a finding about a skill",
    "skillbox help settings       every setting: flag, variable, key, value",
    "skillbox help exit-codes     what the exit code says",
))]
pub struct HelpArgs {
    /// A command, or one of the topics `errors`, `findings`, `settings`, `exit-codes`
    topic: Vec<String>,
}

const TOPICS: &[&str] = &["errors", "findings", "settings", "exit-codes"];

pub fn run(args: &HelpArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<(), Failure> {
    let words: Vec<_> = args.topic.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["errors"] => errors(context, terminal),
        ["findings"] => findings(context, terminal),
        ["settings"] => settings(context, terminal),
        ["exit-codes"] => exit_codes(context, terminal),
        path => command_help(path, terminal),
    }
}

fn command_help(path: &[&str], terminal: &mut Terminal) -> Result<(), Failure> {
    let mut command = Line::command();
    command.build();
    for word in path {
        command = match command.find_subcommand(word) {
            Some(found) => found.clone(),
            None => {
                let message = format!("there is no command or topic `{}`", path.join(" "));
                let hint = format!("`skillbox --help` lists the commands; topics are {}", TOPICS.join(", "));
                return Err(Failure::usage(message, hint));
            }
        };
    }
    Ok(terminal.own_text(false, &command.render_help().ansi().to_string())?)
}

#[derive(Serialize)]
struct ErrorEntry {
    code: ErrorCode,
    meaning: &'static str,
    remedy: &'static str,
}

fn errors(context: &Context<'_>, terminal: &mut Terminal) -> Result<(), Failure> {
    let entries: Vec<_> = ErrorCode::ALL
        .iter()
        .map(|code| ErrorEntry {
            code: *code,
            meaning: code.meaning(),
            remedy: code.remedy(),
        })
        .collect();
    if context.as_json {
        return Ok(terminal.json(&entries)?);
    }
    let mut page = terminal.page();
    page.paragraph(
        0,
        Tone::Plain,
        "Errors are told as `error: …` on stderr, and with --json as one object on stdout:",
    );
    page.gap();
    page.verbatim(
        2,
        Tone::Plain,
        r#"{"error": {"code": …, "message": …, "hint"?: …, "field"?: …}}"#,
    );
    page.gap();
    page.paragraph(0, Tone::Plain, "A code never changes its meaning; new ones may come.");
    page.gap();
    for entry in entries {
        page.beside(
            2,
            Span::new(Tone::Name, entry.code.as_str()),
            26,
            Tone::Plain,
            entry.meaning,
        );
        page.beside(26, Span::new(Tone::Hint, "→"), 28, Tone::Dim, entry.remedy);
    }
    Ok(terminal.show(page)?)
}

#[derive(Serialize)]
struct FindingEntry {
    code: &'static str,
    severity: Severity,
    meaning: &'static str,
}

fn findings(context: &Context<'_>, terminal: &mut Terminal) -> Result<(), Failure> {
    let of_texts = ParseCode::ALL
        .iter()
        .map(|code| (code.as_str(), code.severity(), code.description()));
    let of_scans = ScanCode::ALL
        .iter()
        .map(|code| (code.as_str(), code.severity(), code.description()));
    let entries = of_texts.chain(of_scans).map(|(code, severity, meaning)| FindingEntry {
        code,
        severity,
        meaning,
    });
    let entries: Vec<_> = entries.collect();
    if context.as_json {
        return Ok(terminal.json(&entries)?);
    }
    let mut page = terminal.page();
    for (severity, title) in [
        (Severity::Error, "errors: the skill or file is not used"),
        (Severity::Warning, "warnings: it is used, and something was odd"),
        (Severity::Info, "advice"),
    ] {
        page.heading(title);
        for entry in entries.iter().filter(|entry| entry.severity == severity) {
            page.beside(2, Span::new(Tone::Name, entry.code), 28, Tone::Plain, entry.meaning);
        }
    }
    Ok(terminal.show(page)?)
}

fn settings(context: &Context<'_>, terminal: &mut Terminal) -> Result<(), Failure> {
    let shown = ShownSettings::gather(
        context,
        &HostFlags::default(),
        &AgentFlags::default(),
        &ServeFlags::default(),
    )?;
    if context.as_json {
        return Ok(terminal.json(&shown.settings)?);
    }
    let mut page = terminal.page();
    page.paragraph(
        0,
        Tone::Plain,
        "A flag wins over its environment variable, that over the config file, that over the default. The config file \
         is the one of --config or SKILLBOX_CONFIG, else ./skillbox.toml, else skillbox/skillbox.toml in the user's \
         config directory. Relative paths in it start at the file. Lists in variables are separated by colons where \
         they are paths, by commas otherwise.",
    );
    page.gap();
    shown.config_file_line(&mut page);
    for entry in &shown.settings {
        page.gap();
        page.line(&[Span::plain("  "), Span::new(Tone::Name, entry.flag.as_str())]);
        page.paragraph(6, Tone::Plain, entry.about);
        field(&mut page, "variable", &entry.variable);
        field(&mut page, "key", entry.key);
        field(&mut page, "value", &format!("{} ({})", entry.value, entry.origin));
    }
    Ok(terminal.show(page)?)
}

fn field(page: &mut Page, label: &str, value: &str) {
    page.beside(6, Span::new(Tone::Dim, label), 17, Tone::Plain, value);
}

#[derive(Serialize)]
struct ExitCodeEntry {
    code: u8,
    /// The one command that has it, where it is not every other.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'static str>,
    meaning: &'static str,
}

fn exit_codes(context: &Context<'_>, terminal: &mut Terminal) -> Result<(), Failure> {
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
        other(ExitCode::OK, "all is well"),
        other(ExitCode::BAD, "the thing asked about is bad, or could not be had"),
        other(ExitCode::USAGE, "the command line or a setting is wrong"),
        run(ExitCode::OK, "and up to 123: the script's own"),
        run(ExitCode::TIMED_OUT, "the deadline passed"),
        run(ExitCode::REFUSED, "skillbox refused the run, or failed"),
        run(126, "the command cannot be executed"),
        run(127, "there is no such command"),
        run(
            ExitCode::SIGNAL_BASE,
            "and more: ended by the signal of the number above it",
        ),
        run(ExitCode::LIMIT, "a limit ended it, or it was cancelled"),
    ];
    if context.as_json {
        return Ok(terminal.json(&entries)?);
    }
    let mut page = terminal.page();
    for (title, command) in [("skillbox run", Some("run")), ("all other commands", None)] {
        page.line(&[Span::new(Tone::Heading, title)]);
        for entry in entries.iter().filter(|entry| entry.command == command) {
            let code = Span::new(Tone::Name, entry.code.to_string());
            page.beside(2, code, 7, Tone::Plain, entry.meaning);
        }
    }
    Ok(terminal.show(page)?)
}
