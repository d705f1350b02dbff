//! `skillbox create`: creates a skill from a template that validates and runs.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::Serialize;
use skillbox_model::{ErrorCode, SkillName};
use skillbox_repository::find_name_violations;

use super::output::CommandOutput;
use crate::failure::Failure;
use crate::render::{Page, Span, Tone, escape_path};

/// Create a skill from a template that validates and runs
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox create log-reader              ./log-reader",
    "skillbox create log-reader --dir skills ./skills/log-reader",
))]
pub struct CreateArgs {
    /// Name: up to 64 lowercase letters, digits and single hyphens
    name: String,
    /// Parent directory
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
}

/// The created skill.
#[derive(Serialize)]
pub struct CreatedSkill {
    name: String,
    path: PathBuf,
    files: Vec<&'static str>,
}

struct TemplateFile {
    path: &'static str,
    text: &'static str,
    is_executable: bool,
    purpose: &'static str,
}

const TEMPLATE: &[TemplateFile] = &[
    TemplateFile {
        path: "SKILL.md",
        text: include_str!("create_template/SKILL.md"),
        is_executable: false,
        purpose: "instructions for the agent; start here",
    },
    TemplateFile {
        path: "scripts/count.sh",
        text: include_str!("create_template/count.sh"),
        is_executable: true,
        purpose: "a working example script",
    },
    TemplateFile {
        path: "references/output.md",
        text: include_str!("create_template/output.md"),
        is_executable: false,
        purpose: "details that agents read only when needed",
    },
    TemplateFile {
        path: "assets/report.md",
        text: include_str!("create_template/report.md"),
        is_executable: false,
        purpose: "files for the output: templates, fonts, data",
    },
];

pub fn run(args: &CreateArgs) -> Result<CreatedSkill, Failure> {
    let name = parse_name(&args.name)?;
    let path = args.dir.join(name.as_str());
    if path.symlink_metadata().is_ok() {
        return Err(already_exists(&path));
    }
    let storage_failure = |error: io::Error| {
        Failure::new(
            ErrorCode::Storage,
            format!("cannot create {}: {error}", escape_path(&path)),
        )
        .with_hint("check permissions and free space of the directory, or choose another with --dir")
    };
    fs::create_dir_all(&args.dir).map_err(storage_failure)?;
    // The skill appears completely or not at all: it is written to a temporary directory, then renamed without replacing.
    let temporary = tempfile::Builder::new()
        .prefix(".skillbox-create-")
        .tempdir_in(&args.dir)
        .map_err(storage_failure)?;
    let written = temporary.path().join(name.as_str());
    write_template(&name, &written).map_err(storage_failure)?;
    match renameat_with(CWD, &written, CWD, &path, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(CreatedSkill {
            name: name.into(),
            path,
            files: TEMPLATE.iter().map(|file| file.path).collect(),
        }),
        Err(rustix::io::Errno::EXIST) => Err(already_exists(&path)),
        Err(errno) => Err(storage_failure(errno.into())),
    }
}

/// Parses a name that the specification allows.
fn parse_name(text: &str) -> Result<SkillName, Failure> {
    let invalid = |reason: String| {
        Failure::new(ErrorCode::InvalidRequest, reason)
            .with_hint("use up to 64 lowercase letters, digits and single hyphens, such as `log-reader`")
    };
    let name = SkillName::parse(text).map_err(|error| invalid(error.to_string()))?;
    let violations: Vec<_> = find_name_violations(text).iter().map(ToString::to_string).collect();
    if violations.is_empty() {
        Ok(name)
    } else {
        Err(invalid(format!(
            "{text:?} is not a valid name: {}",
            violations.join(", ")
        )))
    }
}

fn already_exists(path: &Path) -> Failure {
    Failure::new(
        ErrorCode::AlreadyExists,
        format!("{} already exists; nothing was changed", escape_path(path)),
    )
}

fn write_template(name: &SkillName, dir: &Path) -> io::Result<()> {
    for file in TEMPLATE {
        let path = dir.join(file.path);
        fs::create_dir_all(path.parent().unwrap_or(dir))?;
        fs::write(&path, file.text.replace("{name}", name.as_str()))?;
        if file.is_executable {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}

impl CommandOutput for CreatedSkill {
    fn render(&self, page: &mut Page) {
        let path = escape_path(&self.path);
        page.line(&[
            Span::new(Tone::Good, "created "),
            Span::new(Tone::Name, &self.name),
            Span::plain(" in "),
            Span::plain(&path),
        ]);
        page.blank_line();
        for file in TEMPLATE {
            page.labelled(2, Span::plain(file.path), 25, Tone::Dim, file.purpose);
        }
        page.blank_line();
        page.line(&[Span::new(Tone::Heading, "next steps")]);
        page.line(&[Span::plain(
            "  1. describe in SKILL.md what the skill does and when to use it",
        )]);
        page.line(&[
            Span::plain("  2. "),
            Span::new(Tone::Hint, format!("skillbox validate {path}")),
        ]);
        let named = if path.contains('/') { path } else { format!("./{path}") };
        page.line(&[
            Span::plain("  3. "),
            Span::new(
                Tone::Hint,
                format!("skillbox run {named} --script scripts/count.sh -- SKILL.md"),
            ),
        ]);
    }
}
