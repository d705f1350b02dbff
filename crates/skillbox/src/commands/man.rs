//! `skillbox man`: manual pages, generated from the same declarations as `--help`.

use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;
use skillbox_model::ErrorCode;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Span, Terminal};

/// Print a manual page, or write all pages
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox man | man -l -             read the main page",
    "skillbox man validate | man -l -    read the page of a command",
    "skillbox man --out-dir man1         write all pages",
))]
pub struct ManArgs {
    /// Command to print the page of
    #[arg(conflicts_with = "out_dir")]
    command: Option<String>,
    /// Write all pages to this directory
    #[arg(long, value_name = "DIR")]
    out_dir: Option<PathBuf>,
}

pub fn run(args: &ManArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<(), Failure> {
    let mut program = (context.command_line)();
    // Building propagates full names and global options to the subcommands.
    program.build();
    if let Some(dir) = &args.out_dir {
        return write_all_pages(&program, dir, terminal);
    }
    let page = match &args.command {
        None => render_page(&program)?,
        Some(name) => match program.find_subcommand(name) {
            Some(command) => render_page(command)?,
            None => {
                return Err(Failure::usage(
                    format!("no command is named `{name}`"),
                    "run `skillbox --help` for the commands",
                ));
            }
        },
    };
    Ok(terminal.write_stdout(&page)?)
}

fn write_all_pages(program: &Command, dir: &Path, terminal: &mut Terminal) -> Result<(), Failure> {
    let check_write = |path: &Path, result: std::io::Result<()>| {
        result.map_err(|error| Failure::new(ErrorCode::Storage, format!("cannot write {}: {error}", path.display())))
    };
    check_write(dir, std::fs::create_dir_all(dir))?;
    let mut written_paths = terminal.page();
    for command in std::iter::once(program).chain(program.get_subcommands().filter(|command| !command.is_hide_set())) {
        let path = dir.join(format!("{}.1", page_name(command)));
        check_write(&path, std::fs::write(&path, render_page(command)?))?;
        written_paths.line(&[Span::plain(path.display().to_string())]);
    }
    Ok(terminal.print(written_paths)?)
}

fn render_page(command: &Command) -> Result<Vec<u8>, Failure> {
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
