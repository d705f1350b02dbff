//! Prints the steps of the tour and records them for `--json`.

use std::path::Path;

use serde::Serialize;
use skillbox_model::ErrorCode;

use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone};

/// The tour in progress.
pub(super) struct Tour<'a> {
    terminal: &'a mut Terminal,
    as_json: bool,
    steps: Vec<Step>,
}

#[derive(Serialize)]
struct Step {
    title: &'static str,
    command: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    layers: Vec<PromptLayer>,
}

/// What one layer of disclosure adds to the prompt.
#[derive(Serialize)]
pub(super) struct PromptLayer {
    pub layer: &'static str,
    pub characters: usize,
    #[serde(skip)]
    pub description: String,
}

#[derive(Serialize)]
struct TourReport<'a> {
    ok: bool,
    steps: &'a [Step],
}

impl<'a> Tour<'a> {
    pub(super) fn new(terminal: &'a mut Terminal, as_json: bool) -> Self {
        Self {
            terminal,
            as_json,
            steps: Vec::new(),
        }
    }

    /// Shortens the paths in later output relative to this directory.
    pub(super) fn show_paths_relative_to(&mut self, directory: &Path) {
        self.terminal.set_working_dir(directory);
    }

    pub(super) fn print_introduction(&mut self) -> Result<(), Failure> {
        self.print(|page| {
            page.line(&[
                Span::new(Tone::Heading, "skillbox demo"),
                Span::new(Tone::Dim, " · a guided tour in eight steps"),
            ]);
            page.paragraph(
                0,
                Tone::Dim,
                "All output below is real. The demo writes to a temporary directory only.",
            );
        })
    }

    /// Adds the layers of a prompt to the current step.
    pub(super) fn record_layers(&mut self, layers: Vec<PromptLayer>) {
        if let Some(step) = self.steps.last_mut() {
            step.layers = layers;
        }
    }

    /// Starts a step: its number, its purpose, and the command that does the same.
    pub(super) fn start_step(&mut self, title: &'static str, command: &str, purpose: &str) -> Result<(), Failure> {
        self.steps.push(Step {
            title,
            command: command.to_owned(),
            layers: Vec::new(),
        });
        let number = self.steps.len();
        self.print(|page| {
            page.line(&[]);
            page.line(&[Span::new(Tone::Heading, format!("{number}. {title}"))]);
            page.paragraph(3, Tone::Dim, purpose);
            page.line(&[]);
            for line in command.lines() {
                let prompt = if line.starts_with(' ') { "  " } else { "$ " };
                page.line(&[Span::new(Tone::Dim, prompt), Span::new(Tone::Hint, line)]);
            }
        })
    }

    /// Prints the report for programs, or suggestions for people.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        if self.as_json {
            self.terminal.print_json(&TourReport {
                ok: true,
                steps: &self.steps,
            })?;
        }
        self.print(|page| {
            page.line(&[]);
            page.line(&[Span::new(Tone::Heading, "Next steps")]);
            for (command, purpose) in [
                ("skillbox create my-skill", "create a skill that validates and runs"),
                ("skillbox list", "list the skills found here"),
                ("skillbox doctor", "check what this host can enforce"),
                ("skillbox --help", "see all commands"),
            ] {
                page.labelled(2, Span::new(Tone::Hint, command), 30, Tone::Plain, purpose);
            }
        })
    }

    /// Prints for people at once. With `--json`, [`Self::finish`] prints the report instead.
    pub(super) fn print(&mut self, write: impl FnOnce(&mut Page)) -> Result<(), Failure> {
        if self.as_json {
            return Ok(());
        }
        let mut page = self.terminal.page();
        write(&mut page);
        Ok(self.terminal.print(page)?)
    }
}

pub(super) fn storage_failure(what: &str, error: &std::io::Error) -> Failure {
    Failure::new(ErrorCode::Storage, format!("cannot write {what}: {error}"))
}
