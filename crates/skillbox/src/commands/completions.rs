//! `skillbox completions`: shell completion scripts.

use clap::Args;
use clap_complete::Shell;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::Terminal;

/// Print a shell completion script
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox completions bash > /etc/bash_completion.d/skillbox",
    "skillbox completions zsh > ~/.zfunc/_skillbox",
    "skillbox completions fish > ~/.config/fish/completions/skillbox.fish",
))]
pub struct CompletionsArgs {
    /// Shell to complete for
    shell: Shell,
}

pub fn run(args: &CompletionsArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut (context.command_line)(), "skillbox", &mut script);
    Ok(terminal.write_stdout(&script)?)
}
