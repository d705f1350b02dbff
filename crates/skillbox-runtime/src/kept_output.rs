//! Collected files that stay open after the run, for callers that read them later.

use std::fs::File;

use skillbox_executor::workspace::Outputs;
use skillbox_model::Digest;

/// A collected file that is still open.
#[derive(Debug)]
pub struct KeptOutput {
    /// The path below the workspace, as in the report.
    pub name: String,
    /// The size in bytes.
    pub size_bytes: u64,
    /// The MIME type.
    pub mime_type: String,
    /// The digest of the content.
    pub digest: Digest,
    /// The file, read to any position.
    pub file: File,
}

/// Takes the open files out of the outputs.
pub(crate) fn take_files(outputs: &mut Outputs) -> Vec<KeptOutput> {
    let files = outputs.files.iter_mut().filter_map(|collected| {
        Some(KeptOutput {
            file: collected.file.take()?,
            name: collected.name.to_string(),
            size_bytes: collected.size_bytes,
            mime_type: collected.mime_type.clone(),
            digest: collected.digest,
        })
    });
    files.collect()
}
