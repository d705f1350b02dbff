//! Writes the files of embedded skills below the state directory, for hosts that read skills by path.
//!
//! Each set of embedded skills has a directory named by its digest. A skill is written when it is first loaded: under a
//! temporary name, then renamed, so that no reader sees half of it. Its files are read-only. A process checks the content
//! against the embedded skill once, and writes a skill again whose files were changed.

use std::collections::HashSet;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use skillbox_repository::{SkillDir, SkillEntry, SkillReadError, TreeEntryKind};

/// The directory of the extracted skills.
#[derive(Debug)]
pub(crate) struct ExtractedSkills {
    root: PathBuf,
    /// The skills that this process has checked.
    checked: Mutex<HashSet<PathBuf>>,
}

/// Why an embedded skill cannot be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExtractError {
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Read(#[from] SkillReadError),
}

impl ExtractedSkills {
    /// Extracts skills below `root`, which is created when it is needed.
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            // Prompts show the path, so it must not depend on the working directory.
            root: std::path::absolute(root).unwrap_or_else(|_| root.to_owned()),
            checked: Mutex::default(),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Writes the files of an embedded skill, unless they exist. A skill on disk has its own files already.
    pub(crate) fn extract(&self, entry: &SkillEntry) -> Result<(), ExtractError> {
        let Some(target) = entry.extracted_dir(&self.root) else {
            return Ok(());
        };
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        if checked.contains(&target) && target.is_dir() {
            return Ok(());
        }
        let skill = entry.open()?;
        if !has_same_files(&target, &skill)? {
            write_skill(&skill, &target)?;
        }
        checked.insert(target);
        Ok(())
    }
}

fn has_same_files(target: &Path, skill: &SkillDir) -> Result<bool, ExtractError> {
    let on_disk = SkillDir::open(target).and_then(|dir| dir.digest());
    match on_disk {
        Ok(digest) => Ok(digest == skill.digest()?),
        Err(_) => Ok(false),
    }
}

fn write_skill(skill: &SkillDir, target: &Path) -> Result<(), ExtractError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ExtractError::Write { path, source }
    };
    let parent = target.parent().unwrap_or(target);
    fs::create_dir_all(parent).map_err(failed(parent))?;
    let temporary = tempfile::Builder::new()
        .prefix(".partial-")
        .permissions(Permissions::from_mode(0o755))
        .tempdir_in(parent)
        .map_err(failed(parent))?;
    let content = temporary.path().join("skill");
    fs::create_dir(&content).map_err(failed(&content))?;
    for entry in skill.tree_entries()? {
        let path = content.join(entry.path.as_path());
        match entry.kind {
            TreeEntryKind::Dir => fs::create_dir_all(&path).map_err(failed(&path))?,
            TreeEntryKind::File { is_executable, .. } => {
                let directory = path.parent().unwrap_or(&content);
                fs::create_dir_all(directory).map_err(failed(directory))?;
                let mut file = fs::File::create(&path).map_err(failed(&path))?;
                io::copy(&mut skill.open_file(&entry.path)?, &mut file).map_err(failed(&path))?;
                let mode = if is_executable { 0o555 } else { 0o444 };
                file.set_permissions(Permissions::from_mode(mode))
                    .map_err(failed(&path))?;
            }
            // The build rejects links in embedded skills.
            TreeEntryKind::Link { .. } => {}
        }
    }
    // Files that were changed are moved out of the way, and removed with the temporary directory.
    if target.exists() {
        let changed = temporary.path().join("changed");
        fs::rename(target, changed).map_err(failed(target))?;
    }
    match fs::rename(&content, target) {
        // Another process wrote the same skill first.
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        renamed => renamed.map_err(failed(target)),
    }
}

#[cfg(test)]
mod tests {
    use skillbox_repository::{BUILT_IN_SKILLS, Repository, ScanOptions, Source};

    use super::*;

    #[test]
    fn extracted_files_are_complete_read_only_and_repaired() {
        let state = tempfile::tempdir().unwrap();
        let catalog = Repository::open(vec![Source::Embedded(&BUILT_IN_SKILLS)], ScanOptions::default()).catalog();
        let entry = catalog.get("csv-report").unwrap();
        let extracted = ExtractedSkills::new(state.path());
        extracted.extract(entry).unwrap();
        let directory = entry.extracted_dir(extracted.root()).unwrap();
        let digest = |path: &Path| SkillDir::open(path).unwrap().digest().unwrap();
        assert_eq!(digest(&directory), entry.open().unwrap().digest().unwrap());
        let skill_md = directory.join("SKILL.md");
        assert_eq!(fs::metadata(&skill_md).unwrap().permissions().mode() & 0o777, 0o444);

        fs::set_permissions(&skill_md, Permissions::from_mode(0o644)).unwrap();
        fs::write(&skill_md, "changed").unwrap();
        let other_process = ExtractedSkills::new(state.path());
        other_process.extract(entry).unwrap();
        assert_eq!(digest(&directory), entry.open().unwrap().digest().unwrap());
        let names: Vec<_> = fs::read_dir(directory.parent().unwrap()).unwrap().collect();
        assert_eq!(names.len(), 1, "no temporary directory remains: {names:?}");
    }
}
