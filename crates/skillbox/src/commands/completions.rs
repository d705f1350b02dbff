//! `skillbox completions`: a completion script for a shell.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::Line;
use crate::failure::Failure;
use crate::render::Terminal;

/// Print a completion script for a shell
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox completions bash > /etc/bash_completion.d/skillbox",
    "skillbox completions zsh > ~/.zfunc/_skillbox",
    "skillbox completions fish > ~/.config/fish/completions/skillbox.fish",
))]
pub struct CompletionsArgs {
    /// Which shell
    shell: Shell,
}

pub fn run(args: &CompletionsArgs, terminal: &mut Terminal) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Line::command(), "skillbox", &mut script);
    Ok(terminal.exact_out(&script)?)
}
