//! Lists the files of a skill with their digests, and checks its signatures.

use skillbox_model::{Digest, RelPath};
use skillbox_repository::{SkillDir, SkillEntry, SkillReadError, TreeEntryKind, content_digest};
use skillbox_trust::{
    BUNDLE_FILE, FileKind, MANIFEST_FILE, MANIFEST_SIGNATURE_FILE, ManifestFile, Publisher, SignatureFiles,
    SignatureStatus, SkillManifest, check_signatures,
};

use crate::RunError;

/// The maximum size of a signature file: a manifest lists up to 100,000 files.
const MAX_SIGNATURE_BYTES: u64 = 32 << 20;

/// The files of a skill at one moment, and the state of its signatures.
#[derive(Debug)]
pub struct SkillFiles {
    /// The files with their digests. Its digest is that of the skill.
    pub manifest: SkillManifest,
    /// The result of checking the skill's signatures.
    pub signature: SignatureStatus,
}

/// Reads a skill as it is on disk now.
pub fn read_skill_files(entry: &SkillEntry, publishers: &[Publisher]) -> Result<SkillFiles, RunError> {
    let unreadable = |source| RunError::Skill {
        skill: entry.name().clone(),
        source,
    };
    let directory = entry.open().map_err(unreadable)?;
    let files = list_files(&directory).map_err(unreadable)?;
    let manifest = SkillManifest::new(files).map_err(|source| RunError::UnlistableSkill {
        skill: entry.name().clone(),
        source,
    })?;
    let signature = match read_signatures(&directory, &manifest).map_err(unreadable)? {
        Some([listed, manifest_signature, bundle]) => check_signatures(
            publishers,
            &manifest,
            SignatureFiles {
                manifest: listed.as_deref(),
                manifest_signature: manifest_signature.as_deref(),
                bundle: bundle.as_deref(),
            },
        )
        .into(),
        None => SignatureStatus::Invalid("the signature files changed while they were read".to_owned()),
    };
    Ok(SkillFiles { manifest, signature })
}

fn list_files(directory: &SkillDir) -> Result<Vec<ManifestFile>, SkillReadError> {
    let mut budget = directory.read_budget(&|| false);
    let mut files = Vec::new();
    for entry in directory.tree_entries()? {
        let (kind, sha256) = match &entry.kind {
            TreeEntryKind::Dir => continue,
            TreeEntryKind::Link { target } => {
                let digest = content_digest(target.as_ref());
                let digest = digest.map_err(|source| directory.budget_error(&budget, &entry.path, source))?;
                (FileKind::Link, digest)
            }
            TreeEntryKind::File { .. } => {
                let file = directory.open_file(&entry.path)?;
                let kind = if file.is_executable() {
                    FileKind::Executable
                } else {
                    FileKind::File
                };
                let digest = content_digest(budget.reader(file))
                    .map_err(|source| directory.budget_error(&budget, &entry.path, source))?;
                (kind, digest)
            }
        };
        files.push(ManifestFile {
            path: entry.path,
            kind,
            sha256,
        });
    }
    Ok(files)
}

/// The content of the signature files; `None` if one is not the file that the manifest lists.
fn read_signatures(
    directory: &SkillDir,
    manifest: &SkillManifest,
) -> Result<Option<[Option<Vec<u8>>; 3]>, SkillReadError> {
    let mut contents = [None, None, None];
    for (content, name) in contents
        .iter_mut()
        .zip([MANIFEST_FILE, MANIFEST_SIGNATURE_FILE, BUNDLE_FILE])
    {
        let Some((path, listed)) = find_listed(manifest, name) else {
            continue;
        };
        let bytes = directory.read_file(path, MAX_SIGNATURE_BYTES)?;
        let digest = content_digest(bytes.as_slice());
        if digest.ok() != Some(*listed) {
            return Ok(None);
        }
        *content = Some(bytes);
    }
    Ok(Some(contents))
}

fn find_listed<'m>(manifest: &'m SkillManifest, name: &str) -> Option<(&'m RelPath, &'m Digest)> {
    let mut files = manifest.files();
    let (path, _, digest) =
        files.find(|(path, kind, _)| path.as_bytes() == name.as_bytes() && *kind != FileKind::Link)?;
    Some((path, digest))
}
