//! Disclosure through the command line: prompts, tools, calls, sessions, policy, budgets, hooks.

mod budget;
mod calls;
mod definitions;
mod hooks;
mod policy;
mod sessions;

use serde_json::Value;

use crate::cli::{Cli, CommandOutput};

/// A command line with three skills: one with documents, one that declares tools, one with neither.
pub fn cli_with_skills() -> Cli {
    let cli = Cli::new();
    write_skill(
        &cli,
        "pdf",
        "description: Reads PDFs.\nallowed-tools: Bash(pdftotext:*) Read",
        "# PDF\n\nThe body of pdf.\n",
    );
    cli.write_file("skills/pdf/references/forms.md", "All about forms.\n");
    cli.write_file("skills/pdf/references/fonts.md", "All about fonts.\n");
    cli.write_file("skills/pdf/scripts/extract.py", "print('x')\n");
    write_skill(
        &cli,
        "git",
        "description: Reads history.\nallowed-tools: Bash(git:*)",
        "# Git\n\nThe body of git.\n",
    );
    write_skill(
        &cli,
        "plain",
        "description: Declares nothing.",
        "# Plain\n\nThe body of plain.\n",
    );
    cli
}

/// Writes a skill; `fields` are the lines of its frontmatter after the name.
pub fn write_skill(cli: &Cli, name: &str, fields: &str, body: &str) {
    cli.write_file(
        format!("skills/{name}/SKILL.md"),
        format!("---\nname: {name}\n{fields}\n---\n{body}"),
    );
}

/// Runs a call with JSON arguments and further command line arguments.
pub fn call(cli: &Cli, tool: &str, arguments: &Value, flags: &str) -> CommandOutput {
    let arguments = arguments.to_string();
    let mut line = vec!["--skills", "skills", "call", tool, &arguments];
    line.extend(flags.split_whitespace());
    cli.run_args(&line)
}

/// Runs a call that must succeed and returns its result.
#[track_caller]
pub fn call_ok(cli: &Cli, tool: &str, arguments: &Value, flags: &str) -> Value {
    call(cli, tool, arguments, flags).expect_code(0).json()
}

/// Runs a call that must be refused and returns its error.
#[track_caller]
pub fn call_refused(cli: &Cli, tool: &str, arguments: &Value, flags: &str) -> Value {
    let output = call(cli, tool, arguments, flags).expect_code(1);
    assert_eq!(output.stderr, "", "a refusal is printed on stdout");
    output.json()["error"].take()
}

/// Prints the prompt section.
#[track_caller]
pub fn prompt(cli: &Cli, flags: &str) -> String {
    cli.run(&format!("--skills skills prompt {flags}"))
        .expect_code(0)
        .stdout
}
