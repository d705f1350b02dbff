//! The digests of a run's inputs, for its audit record.

use std::io;
use std::os::fd::AsFd;

use skillbox_executor::workspace::{InputSource, StagedLink, Workspace, open_in_workspace};
use skillbox_model::{Digest, RelPath, StagedInput};
use skillbox_repository::content_digest;
use skillbox_runner::tree_digest;
use skillbox_trust::FileDigest;

/// Hashes the staged files and directories. A linked input has no digest: its files stay outside and can change during
/// the run.
pub(crate) fn digest_inputs(
    inputs: &[StagedInput],
    links: &[StagedLink],
    workspace: &Workspace,
) -> io::Result<Vec<FileDigest>> {
    let digest_of = |input: &StagedInput| -> io::Result<FileDigest> {
        let name = format!("{} from {}", input.to, input.from);
        let is_link = links.iter().any(|link| link.to.to_string() == input.to);
        let path = RelPath::parse(&input.to).ok().filter(|_| !is_link);
        let sha256 = match path.map(|path| open_in_workspace(workspace, &path)) {
            Some(Ok(InputSource::File(file))) => Some(content_digest(file)?),
            Some(Ok(InputSource::Directory(directory))) => {
                Some(Digest::from_sha256(tree_digest(directory.as_fd(), &[])?))
            }
            Some(Err(error)) => return Err(error.into()),
            _ => None,
        };
        Ok(FileDigest { name, sha256 })
    };
    inputs.iter().map(digest_of).collect()
}
