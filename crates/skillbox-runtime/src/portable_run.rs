//! What a request needs from this host, so that the run can take place on another one; and the other side, a runtime with
//! skills that came from elsewhere.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use skillbox_artifacts::{ArtifactRef, Scope};
use skillbox_executor::job::{InputRef, RequestError};
use skillbox_executor::workspace::InputSource;
use skillbox_loader::CatalogSnapshotCache;
use skillbox_model::{ErrorCode, RunRequest};
use skillbox_repository::{Catalog, Repository};

use crate::{RunError, Runtime};

/// An input that another host cannot resolve by its reference.
#[derive(Debug)]
pub struct PortableInput {
    /// Its position in the request.
    pub index: usize,
    /// Its destination below the workspace.
    pub to: String,
    /// The reference as reports show it.
    pub display_text: String,
    /// Where its content comes from.
    pub source: PortableSource,
}

/// Where the content of an input comes from.
#[derive(Debug)]
pub enum PortableSource {
    /// A file of this host.
    File {
        /// The open file.
        file: File,
        /// Whether its owner may execute it.
        is_executable: bool,
    },
    /// Content that is part of the request.
    Bytes(Vec<u8>),
    /// An artifact, by its exact version. Every host with the same store can resolve it.
    Artifact(String),
}

impl Runtime {
    /// Opens the inputs of a request that only this host can resolve. Those of skills are not among them.
    pub fn open_portable_inputs(
        &self,
        request: &RunRequest,
        catalog: &Catalog,
    ) -> Result<Vec<PortableInput>, RunError> {
        let spec = self.parse_request(request, catalog)?;
        let mut inputs = Vec::new();
        for (index, input) in spec.inputs.into_iter().enumerate() {
            let field = format!("inputs[{index}].from");
            let source = match input.from {
                InputRef::Host(path) => match self.settings.host_directories.open_input(&path, &field)? {
                    InputSource::File(file) => open_file(file, &field)?,
                    _ => {
                        let message = format!("{} is a directory, which cannot travel to another host", path.display());
                        let error = RequestError::new(&field, ErrorCode::InvalidRequest, message);
                        return Err(error.with_hint("name its files, or an archive of it").into());
                    }
                },
                InputRef::Data(data) => PortableSource::Bytes(data.bytes.to_vec()),
                InputRef::Artifact(text) => {
                    let reference =
                        ArtifactRef::parse(&text).map_err(|error| RequestError::invalid(&field, error.to_string()))?;
                    PortableSource::Artifact(self.artifacts.resolve(&Scope::User, &reference)?.reference())
                }
                // The run itself reports a workspace, which a run without a session does not have.
                InputRef::Skill { .. } | InputRef::Workspace(_) => continue,
            };
            inputs.push(PortableInput {
                index,
                to: input.to.to_string(),
                display_text: input.display_text,
                source,
            });
        }
        Ok(inputs)
    }

    /// The names of the skills whose files a request uses, the one that runs first.
    pub fn skills_of_request(&self, request: &RunRequest, catalog: &Catalog) -> Result<Vec<String>, RunError> {
        let spec = self.parse_request(request, catalog)?;
        let mut names = vec![spec.skill.to_string()];
        names.extend(spec.with_skills.iter().map(ToString::to_string));
        names.extend(spec.inputs.into_iter().filter_map(|input| match input.from {
            InputRef::Skill { skill, .. } => Some(skill),
            _ => None,
        }));
        Ok(names)
    }

    /// The same runtime with the skills of another repository. Trust rules, records, limits and executors are the same.
    pub fn with_repository(&self, repository: Repository) -> Self {
        Self {
            repository: Arc::new(repository),
            catalog_snapshots: CatalogSnapshotCache::with_extracted_skills(self.extracted_skills.root().to_owned())
                .into(),
            artifacts: self.artifacts.clone(),
            sessions: self.sessions.clone(),
            scratch_sessions: self.scratch_sessions.clone(),
            trust: self.trust.clone(),
            history: self.history.clone(),
            freezer: self.freezer.clone(),
            extracted_skills: self.extracted_skills.clone(),
            profiles: self.profiles.clone(),
            executors: self.executors.clone(),
            settings: self.settings.clone(),
            secrets: self.secrets.clone(),
            call_secrets: self.call_secrets.clone(),
            tenant: self.tenant.clone(),
            observer: self.observer.clone(),
            stored_bytes: self.stored_bytes.clone(),
        }
    }
}

fn open_file(file: File, field: &str) -> Result<PortableSource, RequestError> {
    let metadata = file.metadata().map_err(|error| {
        let message = format!("the file cannot be inspected: {error}");
        RequestError::new(field, ErrorCode::InputMissing, message)
    })?;
    Ok(PortableSource::File {
        file,
        is_executable: metadata.permissions().mode() & 0o100 != 0,
    })
}
