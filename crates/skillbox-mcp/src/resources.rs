//! Resources: the skills' files, and what runs gave.

use std::io::Read;

use rmcp::ErrorData;
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use serde_json::json;
use skillbox_artifacts::{ArtifactRef, Scope};
use skillbox_model::{ErrorCode, RelPath};
use skillbox_runtime::RunError;

use crate::host::{Host, failed};
use crate::output_uri::{ARTIFACT, WORKSPACE, meanings};
use crate::page::{Page, page};
use crate::session::ClientSession;
use crate::skills::{self, INDEX_URI, SCHEME};
use crate::tools;

const PAGE: usize = 200;
/// One output may have so many bytes when it is read as a resource.
const MAX_OUTPUT_BYTES: u64 = 64 << 20;

/// The index, every SKILL.md and the files of this client's runs, sorted by URI.
pub(crate) fn list(
    host: &Host,
    session: Option<&ClientSession>,
    cursor: Option<&str>,
) -> Result<Page<Resource>, ErrorData> {
    let mut resources = vec![skills::index()];
    for entry in host.runtime.catalog().skills() {
        match skills::skill_md_resource(entry) {
            Ok(resource) => resources.push(resource),
            Err(error) => tracing::warn!(skill = %entry.name(), "the skill cannot be listed: {error}"),
        }
    }
    let outputs = session.map(ClientSession::outputs).unwrap_or_default();
    resources.extend(outputs.into_iter().map(tools::resource));
    resources.sort_by(|a, b| a.uri.cmp(&b.uri));
    page(resources, |resource| &resource.uri, cursor, PAGE)
}

/// What can be read besides what is listed.
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
pub(crate) fn read(host: &Host, session: Option<&ClientSession>, uri: &str) -> Result<ResourceContents, ErrorData> {
    let unknown = || ErrorData::resource_not_found(format!("unknown resource {uri:?}"), Some(json!({"uri": uri})));
    if uri == INDEX_URI {
        return Ok(host.index());
    }
    if uri.starts_with(SCHEME) {
        return skills::read(host, uri);
    }
    let session = session.ok_or_else(unknown)?;
    let (read, rest): (Reader, &str) = match (uri.strip_prefix(ARTIFACT), uri.strip_prefix(WORKSPACE)) {
        (Some(name), _) => (artifact, name),
        (_, Some(path)) => (workspace_file, path),
        (None, None) => return Err(unknown()),
    };
    for meaning in meanings(rest) {
        if let Some((content, mime_type)) = read(host, session, &meaning)? {
            return Ok(skills::contents(uri, whole(content, uri)?, &mime_type));
        }
    }
    Err(unknown())
}

type Content = (Box<dyn Read>, String);
/// Finds a file of a session and its type.
type Reader = fn(&Host, &ClientSession, &str) -> Result<Option<Content>, ErrorData>;

fn artifact(host: &Host, session: &ClientSession, reference: &str) -> Result<Option<Content>, ErrorData> {
    let Ok(reference) = ArtifactRef::parse(reference) else {
        return Ok(None);
    };
    let store = host.runtime.artifacts();
    let scope = Scope::Session(session.id().clone());
    let artifact = match store.resolve(&scope, &reference) {
        Ok(artifact) => artifact,
        Err(error) if error.code() == ErrorCode::ArtifactMissing => return Ok(None),
        Err(error) => return Err(failed(&error)),
    };
    let content = store.open(&artifact).map_err(|error| failed(&error))?;
    let mime_type = artifact.mime_type.clone();
    let mime_type = mime_type.unwrap_or_else(|| guessed(artifact.name.as_str()));
    Ok(Some((Box::new(content), mime_type)))
}

fn workspace_file(host: &Host, session: &ClientSession, path: &str) -> Result<Option<Content>, ErrorData> {
    let Ok(path) = RelPath::parse(path) else {
        return Ok(None);
    };
    match host.runtime.workspace_file(session.id(), &path) {
        Ok(file) => Ok(Some((Box::new(file), guessed(&path.to_string())))),
        Err(RunError::Request(_)) => Ok(None),
        Err(other) => Err(failed(&other)),
    }
}

fn guessed(name: &str) -> String {
    mime_guess::from_path(name).first_or_octet_stream().to_string()
}

fn whole(content: impl Read, uri: &str) -> Result<Vec<u8>, ErrorData> {
    let mut bytes = Vec::new();
    let read = content.take(MAX_OUTPUT_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| failed(&error))?;
    if bytes.len() as u64 > MAX_OUTPUT_BYTES {
        let message = format!("{uri} has more than the {MAX_OUTPUT_BYTES} bytes that are given as one resource");
        return Err(ErrorData::invalid_params(message, None));
    }
    Ok(bytes)
}
