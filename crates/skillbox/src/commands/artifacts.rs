//! `skillbox artifacts`: stored output files of runs.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;
use skillbox_artifacts::{Artifact, ArtifactMetadata, ArtifactName, ArtifactRef, Scope, Store, StoreError};
use skillbox_executor::workspace::mime_type;
use skillbox_model::{ByteSize, ErrorCode, ExitCode, SessionId};

use super::copy_out::copy_out;
use super::output::{CommandOutput, print_output};
use super::session::for_tenant;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone, format_date};
use crate::runtime_setup;
use crate::settings::HostFlags;

/// List, get, put and remove artifacts
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox artifacts list",
    "skillbox artifacts list --tenant alice              those of a tenant of the server",
    "skillbox artifacts get reports/a.svg --to a.svg     the newest version",
    "skillbox artifacts get reports/a.svg@0 > first.svg",
    "skillbox artifacts put data.csv --name inputs/data.csv",
    "skillbox artifacts list --artifacts s3://bucket/skillbox    in an object store",
))]
pub struct ArtifactsArgs {
    /// Use the artifacts of this session
    #[arg(long, value_name = "ID", global = true)]
    session: Option<String>,
    /// Use the artifacts of this tenant of `skillbox serve`
    #[arg(long, value_name = "NAME", global = true)]
    tenant: Option<String>,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List the newest version of each artifact
    List,
    /// List all versions of an artifact
    Versions {
        /// Name of the artifact
        name: String,
    },
    /// Write an artifact to stdout or to a file
    Get {
        /// NAME or NAME@VERSION
        reference: String,
        /// Write to this file, which must not exist
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },
    /// Store a file as a new version
    Put {
        /// File to store
        file: PathBuf,
        /// Name of the artifact; default the name of the file
        #[arg(long)]
        name: Option<String>,
    },
    /// Remove one version, or all versions
    Rm {
        /// NAME or NAME@VERSION
        reference: String,
    },
}

/// The column of the details of an artifact: the id of its run fits behind it on 80 columns.
const DETAILS_COLUMN: usize = 28;

#[derive(Serialize)]
struct ArtifactList {
    artifacts: Vec<Artifact>,
}

pub fn run(args: &ArtifactsArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let (host, _) = HostFlags::default().resolve(context.layers)?;
    let runtime = runtime_setup::open_runtime(context, &host, None, terminal)?;
    let runtime = for_tenant(runtime, args.tenant.as_deref())?;
    let store = runtime.artifacts();
    let scope = match &args.session {
        None => Scope::User,
        Some(id) => Scope::Session(
            SessionId::parse(id.as_str()).map_err(|error| Failure::from_error(ErrorCode::SessionUnknown, &error))?,
        ),
    };
    let artifacts = match &args.verb {
        Verb::List => map_store_error(store.list(&scope))?,
        Verb::Versions { name } => versions(store, &scope, name)?,
        Verb::Get { reference, to } => return get(store, &scope, reference, to.as_ref(), context, terminal),
        Verb::Put { file, name } => vec![put(store, &scope, file, name.as_deref())?],
        Verb::Rm { reference } => {
            let removed = map_store_error(store.remove(&scope, &parse_reference(reference)?))?;
            // `session gc` retries and reports what cannot be freed now.
            let _freed = store.collect_garbage();
            removed
        }
    };
    print_output(&ArtifactList { artifacts }, context, terminal)
}

fn versions(store: &Store, scope: &Scope, name: &str) -> Result<Vec<Artifact>, Failure> {
    let reference = parse_reference(name)?;
    let found = map_store_error(store.versions(scope, &reference.name))?;
    if found.is_empty() {
        return map_store_error(Err(StoreError::Missing(reference)));
    }
    Ok(found)
}

fn get(
    store: &Store,
    scope: &Scope,
    reference: &str,
    to: Option<&PathBuf>,
    context: &Context<'_>,
    terminal: &mut Terminal,
) -> Result<u8, Failure> {
    let artifact = map_store_error(store.resolve(scope, &parse_reference(reference)?))?;
    let mut content = map_store_error(store.open(&artifact))?;
    copy_out(&mut content, to.map(PathBuf::as_path))?;
    match to {
        None => Ok(ExitCode::OK),
        Some(_) => {
            let artifacts = vec![artifact];
            print_output(&ArtifactList { artifacts }, context, terminal)
        }
    }
}

fn put(store: &Store, scope: &Scope, path: &PathBuf, name: Option<&str>) -> Result<Artifact, Failure> {
    let unreadable = |error: io::Error| {
        Failure::new(
            ErrorCode::InputMissing,
            format!("cannot read {}: {error}", path.display()),
        )
    };
    let is_file = std::fs::metadata(path).map_err(unreadable)?.is_file();
    if !is_file {
        return Err(unreadable(io::Error::other("not a regular file")));
    }
    let mut file = File::open(path).map_err(unreadable)?;
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = ArtifactName::parse(name.unwrap_or(&file_name))
        .map_err(|error| Failure::from_error(ErrorCode::InvalidRequest, &error))?;
    let mut head = Vec::new();
    (&file).take(8 << 10).read_to_end(&mut head).map_err(unreadable)?;
    file.rewind().map_err(unreadable)?;
    let metadata = ArtifactMetadata {
        mime_type: Some(mime_type(&file_name, &head)),
        run_id: None,
    };
    map_store_error(store.put(scope, &name, &mut file, metadata))
}

fn parse_reference(reference: &str) -> Result<ArtifactRef, Failure> {
    let text = reference.strip_prefix("artifact://").unwrap_or(reference);
    ArtifactRef::parse(text).map_err(|error| Failure::from_error(ErrorCode::InvalidRequest, &error))
}

fn map_store_error<T>(result: Result<T, StoreError>) -> Result<T, Failure> {
    result.map_err(|error| {
        let failure = Failure::from_error(error.code(), &error);
        match error.hint() {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    })
}

impl CommandOutput for ArtifactList {
    fn render(&self, page: &mut Page) {
        if self.artifacts.is_empty() {
            page.line(&[Span::plain("no stored artifacts")]);
            page.paragraph(
                0,
                Tone::Dim,
                "store some with `skillbox run SKILL --output GLOB --save -- COMMAND`",
            );
        }
        for artifact in &self.artifacts {
            let kind = artifact.mime_type.as_deref().unwrap_or("unknown type");
            let size = ByteSize(artifact.size_bytes);
            let text = format!("{}, {size}, {kind}", format_date(artifact.created_unix_ms));
            let name = format!("{}@{}", artifact.name, artifact.version);
            page.labelled(0, Span::new(Tone::Name, name), DETAILS_COLUMN, Tone::Plain, &text);
            let run = artifact.run_id.as_ref().map(|run| format!("run {run}, "));
            let origin = format!("{}{}", run.unwrap_or_default(), &artifact.sha256.hex()[..12]);
            page.paragraph(DETAILS_COLUMN, Tone::Dim, &origin);
        }
    }
}
