//! One request for many files: the command of `--each`, whose placeholders become arguments or variables.
//!
//! The value of a placeholder is never part of the text that a shell reads. In a command line for a shell, a placeholder
//! becomes a quoted reference to an environment variable; elsewhere its value becomes part of one argument. Whatever a
//! file is called, the shell reads the same text.

use std::collections::BTreeMap;

use skillbox_model::{InputSpec, RunRequest};

use crate::error::BatchError;
use crate::file_glob::FoundFile;
use crate::placeholder::{Piece, Placeholder, split};
use crate::shell_text::{ShellDanger, check_line, check_words};

/// Where the inputs of a run are, on every executor.
const INPUTS_DIRECTORY: &str = "/workspace/work/inputs";
const QUOTE_HINT: &str = "remove the quotes around the placeholder: its value is always one word, whatever it contains";

/// A request with placeholders in `command`, `argv`, `args` and the values of `env`.
#[derive(Clone, Debug)]
pub struct JobTemplate {
    /// The request as it was written.
    request: RunRequest,
    /// The command line in which each placeholder is a reference to a variable, and these variables.
    command: Option<(String, Vec<Placeholder>)>,
}

impl JobTemplate {
    /// Checks the template. A placeholder that a shell could read as text is an error.
    pub fn new(request: RunRequest) -> Result<Self, BatchError> {
        for placeholder in Placeholder::ALL {
            if request.env.contains_key(placeholder.variable()) {
                return Err(template_error(
                    "env",
                    format!("{} is set for each job", placeholder.variable()),
                    "choose another name",
                ));
            }
        }
        check_words(&request.argv).map_err(|danger| danger.in_field("argv"))?;
        if let Some(line) = &request.command {
            check_line(line).map_err(|danger| danger.in_field("command"))?;
        }
        let command = request.command.as_deref().map(to_shell_line).transpose()?;
        Ok(Self { request, command })
    }

    /// The request as it was written, which identifies the batch.
    pub fn request(&self) -> &RunRequest {
        &self.request
    }

    /// The request for one file. `index` starts at 0.
    pub fn expand(&self, file: &FoundFile, index: usize) -> RunRequest {
        let values = Values::of(file, index);
        let expand_all = |words: &[String]| words.iter().map(|word| values.insert_into(word)).collect();
        let mut env: BTreeMap<String, String> = self.request.env.clone();
        for value in env.values_mut() {
            *value = values.insert_into(value);
        }
        let mut request = RunRequest {
            argv: expand_all(&self.request.argv),
            args: expand_all(&self.request.args),
            env,
            ..self.request.clone()
        };
        if let Some((line, used)) = &self.command {
            request.command = Some(line.clone());
            for placeholder in used {
                let value = values.value(*placeholder).to_owned();
                request.env.insert(placeholder.variable().to_owned(), value);
            }
        }
        request.inputs.push(InputSpec {
            from: format!("host://{}", file.path),
            to: None,
            mode: skillbox_model::InputMode::Copy,
            pin: false,
        });
        request
    }
}

/// The values of the placeholders for one file.
struct Values {
    input: String,
    name: String,
    stem: String,
    index: String,
}

impl Values {
    fn of(file: &FoundFile, index: usize) -> Self {
        let name = file.name().to_owned();
        let stem = match name.rsplit_once('.') {
            Some((stem, _)) if !stem.is_empty() => stem.to_owned(),
            _ => name.clone(),
        };
        Self {
            input: format!("{INPUTS_DIRECTORY}/{name}"),
            stem,
            name,
            index: (index + 1).to_string(),
        }
    }

    fn value(&self, placeholder: Placeholder) -> &str {
        match placeholder {
            Placeholder::Input => &self.input,
            Placeholder::Name => &self.name,
            Placeholder::Stem => &self.stem,
            Placeholder::Index => &self.index,
        }
    }

    fn insert_into(&self, text: &str) -> String {
        let pieces = split(text).into_iter();
        pieces
            .map(|piece| match piece {
                Piece::Text(text) => text,
                Piece::Placeholder(placeholder) => self.value(placeholder),
            })
            .collect()
    }
}

/// Replaces the placeholders of a shell command line by quoted references to variables.
///
/// A placeholder inside quotes is refused. Between single quotes the reference would not be expanded; between double
/// quotes its value would be safe for this shell, but not for a second one, as in `bash -c "… {input}"`.
fn to_shell_line(line: &str) -> Result<(String, Vec<Placeholder>), BatchError> {
    let mut quotes = QuoteState::default();
    let mut text = String::with_capacity(line.len() + 16);
    let mut used = Vec::new();
    for piece in split(line) {
        match piece {
            Piece::Text(part) => {
                quotes.read(part);
                text.push_str(part);
            }
            Piece::Placeholder(placeholder) => {
                if quotes.is_quoted() {
                    let message = format!("{} is inside quotes", placeholder.token());
                    return Err(template_error("command", message, QUOTE_HINT));
                }
                text.push_str(&format!("\"${{{}}}\"", placeholder.variable()));
                if !used.contains(&placeholder) {
                    used.push(placeholder);
                }
            }
        }
    }
    Ok((text, used))
}

impl ShellDanger {
    fn in_field(self, field: &'static str) -> BatchError {
        template_error(field, self.to_string(), self.hint())
    }
}

fn template_error(field: &'static str, message: String, hint: &'static str) -> BatchError {
    BatchError::Template { field, message, hint }
}

/// Which quotes are open at a place of a shell command line.
#[derive(Default)]
struct QuoteState {
    open: Option<char>,
    is_escaped: bool,
}

impl QuoteState {
    fn read(&mut self, text: &str) {
        for c in text.chars() {
            if self.is_escaped {
                self.is_escaped = false;
                continue;
            }
            match (self.open, c) {
                (Some('\''), '\'') | (Some('"'), '"') => self.open = None,
                (Some('\''), _) => {}
                (_, '\\') => self.is_escaped = true,
                (None, '\'' | '"') => self.open = Some(c),
                _ => {}
            }
        }
    }

    fn is_quoted(&self) -> bool {
        self.open.is_some() || self.is_escaped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "/data/-x '\"$(id)`id`\n;{stem}.tar.gz";

    fn file(path: &str) -> FoundFile {
        FoundFile::for_test(path, "test")
    }

    #[test]
    fn the_text_for_the_shell_does_not_depend_on_the_name() {
        let request = RunRequest {
            command: Some("python3 x.py {input} -o out/{stem}.json ${name} {index}".to_owned()),
            ..RunRequest::default()
        };
        let template = JobTemplate::new(request).unwrap();
        let plain = template.expand(&file("/data/a.csv"), 0);
        let hostile = template.expand(&file(HOSTILE), 1);
        assert_eq!(
            plain.command.as_deref(),
            Some("python3 x.py \"${JOB_INPUT}\" -o out/\"${JOB_STEM}\".json ${name} \"${JOB_INDEX}\"")
        );
        assert_eq!(plain.command, hostile.command);
        assert_eq!(hostile.env["JOB_STEM"], "-x '\"$(id)`id`\n;{stem}.tar");
        assert_eq!(
            hostile.env["JOB_INPUT"],
            format!("{INPUTS_DIRECTORY}/-x '\"$(id)`id`\n;{{stem}}.tar.gz")
        );
        assert_eq!(
            (plain.env["JOB_INDEX"].as_str(), hostile.env["JOB_INDEX"].as_str()),
            ("1", "2")
        );
        assert!(
            !plain.env.contains_key("JOB_NAME"),
            "only variables that are used are set"
        );
        assert_eq!(hostile.inputs[0].from, format!("host://{HOSTILE}"));
    }

    #[test]
    fn without_a_shell_values_are_arguments() {
        let request = RunRequest {
            argv: vec![
                "cat".to_owned(),
                "--".to_owned(),
                "{name}".to_owned(),
                "x={stem}{stem}".to_owned(),
            ],
            env: [("WHAT".to_owned(), "<{name}>".to_owned())].into(),
            ..RunRequest::default()
        };
        let expanded = JobTemplate::new(request).unwrap().expand(&file("/d/a b.csv"), 0);
        assert_eq!(expanded.argv, ["cat", "--", "a b.csv", "x=a ba b"]);
        assert_eq!(expanded.env["WHAT"], "<a b.csv>");
    }

    #[test]
    fn a_placeholder_that_a_shell_could_read_is_refused() {
        for line in [
            "cat '{input}'",
            "cat \"{input}\"",
            "bash -c 'cat {input}'",
            "a \"b\\\"{stem}\"",
            "x \\{name}",
        ] {
            let request = RunRequest {
                command: Some(line.to_owned()),
                ..RunRequest::default()
            };
            assert!(JobTemplate::new(request).is_err(), "{line}");
        }
        for line in ["cat 'a' {input}", "echo it\\'s {input}", "echo \"'\" {input}"] {
            let request = RunRequest {
                command: Some(line.to_owned()),
                ..RunRequest::default()
            };
            assert!(JobTemplate::new(request).is_ok(), "{line}");
        }
        let request = RunRequest {
            argv: ["/bin/bash", "-ec", "cat {input}"].map(str::to_owned).to_vec(),
            ..RunRequest::default()
        };
        assert!(JobTemplate::new(request).is_err());
    }

    #[test]
    fn the_variables_of_jobs_are_reserved() {
        let request = RunRequest {
            argv: vec!["true".to_owned()],
            env: [("JOB_INPUT".to_owned(), "x".to_owned())].into(),
            ..RunRequest::default()
        };
        assert!(JobTemplate::new(request).is_err());
    }
}
