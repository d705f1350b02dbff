//! `skillbox create`: a new skill that validates and whose script runs.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::Serialize;
use skillbox_model::{ErrorCode, SkillName};
use skillbox_repository::name_faults;

use super::Answer;
use crate::failure::Failure;
use crate::render::{Page, Span, Tone, visible_path};

/// Make a new skill that validates and whose script runs
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox create log-reader              ./log-reader",
    "skillbox create log-reader --dir skills ./skills/log-reader",
))]
pub struct CreateArgs {
    /// Its name: lower-case letters, digits and single hyphens, at most 64
    name: String,
    /// The directory to make it in
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
}

/// What was made.
#[derive(Serialize)]
pub struct Created {
    name: String,
    path: PathBuf,
    files: Vec<&'static str>,
}

struct TemplateFile {
    path: &'static str,
    text: &'static str,
    executable: bool,
    about: &'static str,
}

const TEMPLATE: &[TemplateFile] = &[
    TemplateFile {
        path: "SKILL.md",
        text: include_str!("create_template/SKILL.md"),
        executable: false,
        about: "what an agent reads: start here",
    },
    TemplateFile {
        path: "scripts/count.sh",
        text: include_str!("create_template/count.sh"),
        executable: true,
        about: "a script that works: try it",
    },
    TemplateFile {
        path: "references/output.md",
        text: include_str!("create_template/output.md"),
        executable: false,
        about: "details that are read only when needed",
    },
    TemplateFile {
        path: "assets/report.md",
        text: include_str!("create_template/report.md"),
        executable: false,
        about: "files for the result: templates, fonts, data",
    },
];

pub fn run(args: &CreateArgs) -> Result<Created, Failure> {
    let name = checked_name(&args.name)?;
    let path = args.dir.join(name.as_str());
    if path.symlink_metadata().is_ok() {
        return Err(exists(&path));
    }
    let failed = |error: io::Error| {
        Failure::new(
            ErrorCode::Storage,
            format!("cannot make {}: {error}", visible_path(&path)),
        )
        .hint("check the rights and the space of the directory, or choose another with --dir")
    };
    fs::create_dir_all(&args.dir).map_err(failed)?;
    // It appears whole or not at all: made aside, then renamed to where nothing may stand.
    let aside = tempfile::Builder::new()
        .prefix(".skillbox-create-")
        .tempdir_in(&args.dir)
        .map_err(failed)?;
    let made = aside.path().join(name.as_str());
    write_template(&name, &made).map_err(failed)?;
    match renameat_with(CWD, &made, CWD, &path, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(Created {
            name: name.into(),
            path,
            files: TEMPLATE.iter().map(|file| file.path).collect(),
        }),
        Err(rustix::io::Errno::EXIST) => Err(exists(&path)),
        Err(errno) => Err(failed(errno.into())),
    }
}

/// A name that the specification allows.
fn checked_name(text: &str) -> Result<SkillName, Failure> {
    let refused = |reason: String| {
        Failure::new(ErrorCode::InvalidRequest, reason)
            .hint("a skill's name has lower-case letters, digits and single hyphens, at most 64, such as `log-reader`")
    };
    let name = SkillName::parse(text).map_err(|error| refused(error.to_string()))?;
    let faults: Vec<_> = name_faults(text).iter().map(ToString::to_string).collect();
    if faults.is_empty() {
        Ok(name)
    } else {
        Err(refused(format!("{text:?} is no name: {}", faults.join(", "))))
    }
}

fn exists(path: &Path) -> Failure {
    Failure::new(
        ErrorCode::AlreadyExists,
        format!("{} exists already; nothing was changed", visible_path(path)),
    )
}

fn write_template(name: &SkillName, dir: &Path) -> io::Result<()> {
    for file in TEMPLATE {
        let path = dir.join(file.path);
        fs::create_dir_all(path.parent().unwrap_or(dir))?;
        fs::write(&path, file.text.replace("{name}", name.as_str()))?;
        if file.executable {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}

impl Answer for Created {
    fn render(&self, page: &mut Page) {
        let path = visible_path(&self.path);
        page.line(&[
            Span::new(Tone::Good, "created "),
            Span::new(Tone::Name, &self.name),
            Span::plain(" in "),
            Span::plain(&path),
        ]);
        page.gap();
        for file in TEMPLATE {
            page.beside(2, Span::plain(file.path), 25, Tone::Dim, file.about);
        }
        page.gap();
        page.line(&[Span::new(Tone::Heading, "next")]);
        page.line(&[Span::plain(
            "  1. say in SKILL.md what the skill does and when to use it",
        )]);
        page.line(&[
            Span::plain("  2. "),
            Span::new(Tone::Hint, format!("skillbox validate {path}")),
        ]);
    }
}
