//! Saving outputs: whole files become artifacts, or an error says why not.

use std::io::{Seek, SeekFrom};

use skillbox_artifacts::{ArtifactName, Origin, Scope, Store};
use skillbox_executor::EventSink;
use skillbox_executor::job::Collecting;
use skillbox_executor::workspace::Outputs;
use skillbox_model::{RelPath, RunEvent, RunId, SavedArtifact};

use crate::RunError;

/// A collected file that is now an artifact.
#[derive(Debug)]
pub(crate) struct Saved {
    pub file: RelPath,
    pub artifact: SavedArtifact,
}

/// What became of the outputs.
#[derive(Debug, Default)]
pub(crate) struct Saving {
    pub saved: Vec<Saved>,
    pub warnings: Vec<String>,
}

/// Stores every collected file, where the request asks for it. The workspace is not read again: collection left
/// the files open.
pub(crate) fn save(
    store: &Store,
    scope: &Scope,
    run_id: &RunId,
    how: &Collecting,
    outputs: &mut Outputs,
    events: &mut EventSink<'_>,
) -> Result<Saving, RunError> {
    let mut saving = Saving::default();
    for collected in &mut outputs.files {
        let Some(file) = collected.file.as_mut().filter(|_| how.save) else {
            continue;
        };
        let name = match ArtifactName::parse(format!("{}{}", how.prefix, collected.name)) {
            Ok(name) => name,
            Err(error) => {
                saving
                    .warnings
                    .push(format!("{} is not saved: {error}", collected.name));
                continue;
            }
        };
        let origin = Origin {
            mime_type: Some(collected.mime_type.clone()),
            run_id: Some(run_id.clone()),
        };
        file.seek(SeekFrom::Start(0)).map_err(RunError::Collect)?;
        let artifact = store.put(scope, &name, file, origin)?;
        events.emit(|| RunEvent::Saved {
            name: artifact.name.to_string(),
            version: artifact.version,
        });
        saving.saved.push(Saved {
            file: collected.name.clone(),
            artifact: SavedArtifact {
                reference: artifact.reference(),
                name: artifact.name.to_string(),
                version: artifact.version,
            },
        });
    }
    Ok(saving)
}
