//! The digests of a run's inputs, for its audit record.

use std::fs::File;
use std::io;

use skillbox_executor::workspace::{InputSource, StagedLink, Workspace, open_in_workspace};
use skillbox_model::{RelPath, StagedInput};
use skillbox_repository::content_digest;
use skillbox_trust::FileDigest;

/// Hashes the staged files. A directory and a linked input have no digest: the files of a link stay outside and can
/// change during the run.
pub(crate) fn digest_inputs(
    inputs: &[StagedInput],
    links: &[StagedLink],
    workspace: &Workspace,
) -> io::Result<Vec<FileDigest>> {
    let digest_of = |input: &StagedInput| -> io::Result<FileDigest> {
        let name = format!("{} from {}", input.to, input.from);
        let is_link = links.iter().any(|link| link.to.to_string() == input.to);
        let path = RelPath::parse(&input.to).ok().filter(|_| !is_link);
        let file: Option<File> = match path.map(|path| open_in_workspace(workspace, &path)) {
            Some(Ok(InputSource::File(file))) => Some(file),
            Some(Err(error)) => return Err(error.into()),
            _ => None,
        };
        Ok(FileDigest {
            name,
            sha256: file.map(content_digest).transpose()?,
        })
    };
    inputs.iter().map(digest_of).collect()
}
