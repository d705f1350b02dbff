//! Resources: the files of skills and the outputs of runs.

use std::io::Read;

use rmcp::ErrorData;
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use serde_json::json;
use skillbox_artifacts::{ArtifactRef, Scope};
use skillbox_model::{ErrorCode, RelPath};
use skillbox_runtime::RunError;

use crate::blocking::internal_error;
use crate::output_uri::{ARTIFACT_SCHEME, WORKSPACE_SCHEME, candidate_references};
use crate::page::{Page, paginate};
use crate::server_state::ServerState;
use crate::session::ClientSession;
use crate::skills::{self, INDEX_URI, SKILL_SCHEME};
use crate::tools;

const PAGE_SIZE: usize = 200;
/// Maximum size of an output that can be read as a resource.
const MAX_OUTPUT_BYTES: u64 = 64 << 20;

/// The index, every SKILL.md and the files of this client's runs, sorted by URI.
pub(crate) fn list(
    server: &ServerState,
    session: Option<&ClientSession>,
    cursor: Option<&str>,
) -> Result<Page<Resource>, ErrorData> {
    let mut resources = vec![skills::index_resource()];
    for entry in server.runtime.catalog().skills() {
        match skills::skill_md_resource(entry) {
            Ok(resource) => resources.push(resource),
            Err(error) => tracing::warn!(skill = %entry.name(), "the skill cannot be listed: {error}"),
        }
    }
    let outputs = session.map(ClientSession::outputs).unwrap_or_default();
    resources.extend(outputs.into_iter().map(tools::output_resource));
    resources.sort_by(|a, b| a.uri.cmp(&b.uri));
    paginate(resources, |resource| &resource.uri, cursor, PAGE_SIZE)
}

/// Templates of the resources that can be read without being listed.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new("skill://{skill}/{+path}", "skill file").with_description("Any file of a skill"),
        ResourceTemplate::new("artifact://{+name}", "artifact")
            .with_description("A file that a run of this session saved; name@version for an older one"),
        ResourceTemplate::new("workspace://{+path}", "workspace file")
            .with_description("A file in the workspace of this session, such as workspace://out/report.json"),
    ]
}

/// Reads one resource.
pub(crate) fn read(
    server: &ServerState,
    session: Option<&ClientSession>,
    uri: &str,
) -> Result<ResourceContents, ErrorData> {
    let unknown = || ErrorData::resource_not_found(format!("unknown resource {uri:?}"), Some(json!({"uri": uri})));
    if uri == INDEX_URI {
        return Ok(skills::index_contents(server));
    }
    if uri.starts_with(SKILL_SCHEME) {
        return skills::read_file(server, uri);
    }
    let session = session.ok_or_else(unknown)?;
    let (open, rest): (OpenOutput, &str) = match (uri.strip_prefix(ARTIFACT_SCHEME), uri.strip_prefix(WORKSPACE_SCHEME))
    {
        (Some(name), _) => (open_artifact, name),
        (_, Some(path)) => (open_workspace_file, path),
        (None, None) => return Err(unknown()),
    };
    for reference in candidate_references(rest) {
        if let Some((content, mime_type)) = open(server, session, &reference)? {
            return Ok(skills::to_contents(uri, read_all(content, uri)?, &mime_type));
        }
    }
    Err(unknown())
}

/// Sets the URI of a resource to the one that the client requested.
pub(crate) fn set_uri(contents: &mut ResourceContents, requested: String) {
    match contents {
        ResourceContents::TextResourceContents { uri, .. } | ResourceContents::BlobResourceContents { uri, .. } => {
            *uri = requested;
        }
        _ => {}
    }
}

/// The content of an output, with its MIME type.
type Content = (Box<dyn Read>, String);
/// A function that opens an output of a session; `None` if the output does not exist.
type OpenOutput = fn(&ServerState, &ClientSession, &str) -> Result<Option<Content>, ErrorData>;

fn open_artifact(server: &ServerState, session: &ClientSession, reference: &str) -> Result<Option<Content>, ErrorData> {
    let Ok(reference) = ArtifactRef::parse(reference) else {
        return Ok(None);
    };
    let store = server.runtime.artifacts();
    let scope = Scope::Session(session.id().clone());
    let artifact = match store.resolve(&scope, &reference) {
        Ok(artifact) => artifact,
        Err(error) if error.code() == ErrorCode::ArtifactMissing => return Ok(None),
        Err(error) => return Err(internal_error(&error)),
    };
    let content = store.open(&artifact).map_err(|error| internal_error(&error))?;
    let mime_type = artifact.mime_type.clone();
    let mime_type = mime_type.unwrap_or_else(|| guess_mime_type(artifact.name.as_str()));
    Ok(Some((Box::new(content), mime_type)))
}

fn open_workspace_file(
    server: &ServerState,
    session: &ClientSession,
    path: &str,
) -> Result<Option<Content>, ErrorData> {
    let Ok(path) = RelPath::parse(path) else {
        return Ok(None);
    };
    match server.runtime.open_workspace_file(session.id(), &path) {
        Ok(file) => Ok(Some((Box::new(file), guess_mime_type(&path.to_string())))),
        Err(RunError::Request(_)) => Ok(None),
        Err(other) => Err(internal_error(&other)),
    }
}

fn guess_mime_type(name: &str) -> String {
    mime_guess::from_path(name).first_or_octet_stream().to_string()
}

fn read_all(content: impl Read, uri: &str) -> Result<Vec<u8>, ErrorData> {
    let mut bytes = Vec::new();
    let read = content.take(MAX_OUTPUT_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| internal_error(&error))?;
    if bytes.len() as u64 > MAX_OUTPUT_BYTES {
        let message = format!("{uri} is larger than {MAX_OUTPUT_BYTES} bytes, the limit for one resource");
        return Err(ErrorData::invalid_params(message, None));
    }
    Ok(bytes)
}
