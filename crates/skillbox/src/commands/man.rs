//! `skillbox man`: manual pages, made from the same declarations as `--help`.

use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use skillbox_model::ErrorCode;

use crate::args::Line;
use crate::failure::Failure;
use crate::render::{Span, Terminal};

/// Print a manual page, or write all of them
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox man | man -l -             read it",
    "skillbox man validate | man -l -    one command's page",
    "skillbox man --out-dir man1         every page, for packagers",
))]
pub struct ManArgs {
    /// The page of this command
    #[arg(conflicts_with = "out_dir")]
    command: Option<String>,
    /// Write every page to this directory
    #[arg(long, value_name = "DIR")]
    out_dir: Option<PathBuf>,
}

pub fn run(args: &ManArgs, terminal: &mut Terminal) -> Result<(), Failure> {
    let mut program = Line::command();
    // Building gives the subcommands their full names and the global options.
    program.build();
    if let Some(dir) = &args.out_dir {
        return write_all(&program, dir, terminal);
    }
    let page = match &args.command {
        None => page(&program)?,
        Some(name) => match program.find_subcommand(name) {
            Some(command) => page(command)?,
            None => {
                return Err(Failure::usage(
                    format!("there is no command `{name}`"),
                    "`skillbox --help` lists the commands",
                ));
            }
        },
    };
    Ok(terminal.exact_out(&page)?)
}

fn write_all(program: &Command, dir: &Path, terminal: &mut Terminal) -> Result<(), Failure> {
    let written = |path: &Path, result: std::io::Result<()>| {
        result.map_err(|error| Failure::new(ErrorCode::Storage, format!("cannot write {}: {error}", path.display())))
    };
    written(dir, std::fs::create_dir_all(dir))?;
    let mut told = terminal.page();
    for command in std::iter::once(program).chain(program.get_subcommands().filter(|command| !command.is_hide_set())) {
        let path = dir.join(format!("{}.1", page_name(command)));
        written(&path, std::fs::write(&path, page(command)?))?;
        told.line(&[Span::plain(path.display().to_string())]);
    }
    Ok(terminal.show(told)?)
}

fn page(command: &Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    let named = command.clone().display_name(page_name(command));
    Man::new(named).manual("skillbox manual").render(&mut page)?;
    Ok(page)
}

/// `skillbox-list` for `skillbox list`.
fn page_name(command: &Command) -> String {
    command
        .get_display_name()
        .unwrap_or(command.get_name())
        .replace(' ', "-")
}
