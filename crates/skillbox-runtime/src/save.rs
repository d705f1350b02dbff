//! Saves collected files as artifacts, whole or not at all.

use std::io::{Seek, SeekFrom};

use skillbox_artifacts::{ArtifactMetadata, ArtifactName, Scope, Store};
use skillbox_executor::EventSink;
use skillbox_executor::job::JobSpec;
use skillbox_executor::workspace::Outputs;
use skillbox_model::{RelPath, RunEvent, SavedArtifact};

use crate::RunError;

/// A collected file that is now an artifact.
#[derive(Debug)]
pub(crate) struct SavedFile {
    pub name: RelPath,
    pub artifact: SavedArtifact,
}

/// The saved files, with a warning for each that has no valid artifact name.
#[derive(Debug, Default)]
pub(crate) struct SavedOutputs {
    pub files: Vec<SavedFile>,
    pub warnings: Vec<String>,
}

/// Stores every collected file if the request asks for it. The collected files are still open, so the workspace is not
/// read again.
pub(crate) fn save_outputs(
    store: &Store,
    scope: &Scope,
    spec: &JobSpec,
    outputs: &mut Outputs,
    events: &mut EventSink<'_>,
) -> Result<SavedOutputs, RunError> {
    let mut saved = SavedOutputs::default();
    if !spec.collection.save {
        return Ok(saved);
    }
    for collected in &mut outputs.files {
        let Some(file) = collected.file.as_mut() else {
            continue;
        };
        let name = match ArtifactName::parse(format!("{}{}", spec.collection.artifact_prefix, collected.name)) {
            Ok(name) => name,
            Err(error) => {
                saved.warnings.push(format!("{} is not saved: {error}", collected.name));
                continue;
            }
        };
        let metadata = ArtifactMetadata {
            mime_type: Some(collected.mime_type.clone()),
            run_id: Some(spec.run_id.clone()),
        };
        file.seek(SeekFrom::Start(0)).map_err(RunError::Collect)?;
        let artifact = store.put(scope, &name, file, metadata)?;
        events.emit(|| RunEvent::Saved {
            name: artifact.name.to_string(),
            version: artifact.version,
        });
        saved.files.push(SavedFile {
            name: collected.name.clone(),
            artifact: SavedArtifact {
                reference: artifact.reference(),
                name: artifact.name.to_string(),
                version: artifact.version,
            },
        });
    }
    Ok(saved)
}
