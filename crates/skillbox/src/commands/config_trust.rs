//! `skillbox config trust`, `trusted` and `revoke`: the config files of working directories that the user trusts.

use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use skillbox_model::{Digest, ErrorCode, ExitCode};
use skillbox_trust::{ManagedEntity, ManagementActivity};

use super::output::{CommandOutput, print_output};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone};
use crate::settings::{Environment, TrustedFile, TrustedFiles, read_layers};
use crate::trust_setup::{open_trust, trust_failure};

#[derive(Args, Debug)]
pub struct TrustArgs {
    /// Skip the confirmation prompt
    #[arg(long, short)]
    yes: bool,
}

/// The result of `config trust`.
#[derive(Serialize)]
struct NewTrust {
    path: PathBuf,
    digest: Digest,
    /// The keys that the file may set from now on.
    settings: Vec<&'static str>,
}

/// The result of `config trusted`.
#[derive(Serialize)]
struct TrustList {
    files: Vec<ListedFile>,
}

#[derive(Serialize)]
struct ListedFile {
    path: PathBuf,
    digest: Digest,
    trusted_at: u64,
    state: FileState,
}

/// How a trusted file compares with the file on disk.
#[derive(Clone, Copy, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum FileState {
    /// The file is what the user trusted.
    Trusted,
    /// The file, or a profile that it names, has changed; it is not trusted any more.
    Changed,
    /// The file does not exist.
    Missing,
}

/// The result of `config revoke`.
#[derive(Serialize)]
struct Revoked {
    path: PathBuf,
}

pub fn trust(args: &TrustArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let list = trusted_files(context)?;
    let project = context.layers.project_file().ok_or_else(|| {
        let message = "the working directory has no skillbox.toml, or --config or SKILLBOX_CONFIG names another file";
        Failure::new(ErrorCode::NotFound, message).with_hint("change to the directory of the file, without --config")
    })?;
    let settings = context.layers.refusals().iter().map(|refused| refused.key).collect();
    let result = NewTrust {
        path: project.file.path().to_owned(),
        digest: project.digest,
        settings,
    };
    if !args.yes && io::stdin().is_terminal() && terminal.is_stderr_terminal() && !is_confirmed(&result, terminal)? {
        return Ok(ExitCode::FAILURE);
    }
    record_change(ManagementActivity::Update, &result.path, Some(result.digest), context)?;
    list.add(&result.path, result.digest).map_err(storage_failure)?;
    print_output(&result, context, terminal)
}

pub fn list(context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let files = trusted_files(context)?.list().map_err(storage_failure)?;
    let environment = context.layers.environment();
    let files = files.into_iter().map(|file| ListedFile {
        state: state_of(&file, environment),
        path: file.path,
        digest: file.digest,
        trusted_at: file.trusted_at,
    });
    print_output(&TrustList { files: files.collect() }, context, terminal)
}

pub fn revoke(file: Option<&Path>, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let file = file.unwrap_or(Path::new("skillbox.toml"));
    let path = context.layers.environment().working_dir().join(file);
    if !trusted_files(context)?.remove(&path).map_err(storage_failure)? {
        let message = format!("{} is not trusted", path.display());
        return Err(Failure::new(ErrorCode::NotFound, message).with_hint("see `skillbox config trusted`"));
    }
    record_change(ManagementActivity::Delete, &path, None, context)?;
    print_output(&Revoked { path }, context, terminal)
}

/// Records which config files the user trusts.
fn record_change(
    activity: ManagementActivity,
    path: &Path,
    digest: Option<Digest>,
    context: &Context<'_>,
) -> Result<(), Failure> {
    let entity = ManagedEntity {
        kind: "trusted config file",
        name: path.display().to_string(),
        uid: digest.map(|digest| digest.to_string()),
    };
    let recorded = open_trust(context)?.record(activity, &entity, "the trust in a config file changed");
    recorded.map_err(trust_failure)
}

fn trusted_files(context: &Context<'_>) -> Result<TrustedFiles, Failure> {
    let directory = context.layers.environment().config_dir();
    let directory = directory.ok_or_else(|| {
        let message = "the list of trusted files is in the user's config directory, and there is none";
        Failure::new(ErrorCode::Storage, message).with_hint("set HOME, or name the config file with --config")
    })?;
    Ok(TrustedFiles::in_config_dir(&directory))
}

/// Reads the file as a command in its directory would.
fn state_of(file: &TrustedFile, environment: &Environment) -> FileState {
    let Some(directory) = file.path.parent() else {
        return FileState::Missing;
    };
    let in_directory = environment.in_directory(directory);
    match read_layers(in_directory, None) {
        Ok(layers) => match layers.project_file() {
            Some(project) if project.is_trusted => FileState::Trusted,
            Some(_) => FileState::Changed,
            None => FileState::Missing,
        },
        Err(_) => FileState::Changed,
    }
}

/// Shows what the file may do when it is trusted, and asks.
fn is_confirmed(result: &NewTrust, terminal: &mut Terminal) -> Result<bool, Failure> {
    let mut page = terminal.page();
    result.render(&mut page);
    page.line(&[Span::plain("Trust this file? [y/N]")]);
    terminal.print_message(page)?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(storage_failure)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn storage_failure(error: io::Error) -> Failure {
    Failure::new(
        ErrorCode::Storage,
        format!("cannot use the list of trusted files: {error}"),
    )
    .with_hint("check `trusted-files.json` in the user's config directory")
}

impl CommandOutput for NewTrust {
    fn render(&self, page: &mut Page) {
        let path = self.path.display().to_string();
        page.labelled(0, Span::new(Tone::Dim, "file"), 10, Tone::Plain, &path);
        page.labelled(
            0,
            Span::new(Tone::Dim, "digest"),
            10,
            Tone::Plain,
            &self.digest.to_string(),
        );
        let settings = match self.settings.as_slice() {
            [] => "none that needs trust".to_owned(),
            keys => keys.join(", "),
        };
        page.labelled(0, Span::new(Tone::Dim, "settings"), 10, Tone::Plain, &settings);
    }
}

impl CommandOutput for TrustList {
    fn render(&self, page: &mut Page) {
        if self.files.is_empty() {
            page.line(&[Span::plain("no config file is trusted")]);
        }
        for file in &self.files {
            let (tone, word) = match file.state {
                FileState::Trusted => (Tone::Good, "trusted"),
                FileState::Changed => (Tone::Warning, "changed"),
                FileState::Missing => (Tone::Dim, "missing"),
            };
            let path = file.path.display().to_string();
            page.labelled(0, Span::new(tone, word), 10, Tone::Plain, &path);
        }
    }
}

impl CommandOutput for Revoked {
    fn render(&self, page: &mut Page) {
        let path = self.path.display().to_string();
        page.labelled(0, Span::new(Tone::Good, "revoked"), 10, Tone::Plain, &path);
    }
}
