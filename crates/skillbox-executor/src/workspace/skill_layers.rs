//! The directory `skills/` of a workspace, as the host sees it: below it are the changes of a run to its skill.
//!
//! The sandbox mounts the workspace, and the skills on this directory. Where both have the same mount of the workspace,
//! a path from its root leads the host into the mounts of the sandbox, until the kernel has removed them. A descriptor
//! that was opened before does not.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, mkdirat};
use rustix::io::Errno;
use skillbox_model::{RelPath, SkillName};
use skillbox_sandbox::WritableSkill;

use super::{Workspace, WorkspaceError, nofollow, remove_tree};
use crate::layout;

impl Workspace {
    /// Creates the directory for the changes to a skill, and an empty one that the kernel needs for an overlay. Changes
    /// of an earlier run are kept; [`Self::clear_skills`] removes them.
    pub(crate) fn create_skill_layers(&self, skill: &WritableSkill) -> Result<(), WorkspaceError> {
        let work = WritableSkill::WORK_DIRECTORY;
        let failed = |action| WorkspaceError::io(action, work);
        self.ensure_directory(&format!("{}/{}", layout::SKILLS, skill.name))?;
        let opened = nofollow::open_child_directory(self.root(), layout::SKILLS.as_bytes())
            .map_err(failed("open the parent of"))?;
        let skills = self.skill_layers.get_or_init(|| opened).as_fd();
        match mkdirat(skills, work, Mode::RWXU) {
            Err(Errno::EXIST) => {
                remove_tree(skills, work.as_bytes()).map_err(failed("clear"))?;
                mkdirat(skills, work, Mode::RWXU)
            }
            created => created,
        }
        .map_err(failed("create"))?;
        self.set_script_owner(skills, work.as_bytes())
            .map_err(failed("change the owner of"))
    }

    /// Removes everything below the directory of the skills: what earlier runs changed, and mount points.
    pub fn clear_skills(&self) -> Result<(), WorkspaceError> {
        let failed = |action| WorkspaceError::io(action, layout::SKILLS);
        if let Some(skills) = self.skill_layers.get() {
            let names = nofollow::list_names(skills.as_fd()).map_err(failed("list"))?;
            return names
                .iter()
                .try_for_each(|name| remove_tree(skills.as_fd(), name).map_err(failed("clear")));
        }
        // The directory is usually empty, and creating it again is slow on a disk.
        if nofollow::is_empty_directory(self.root(), layout::SKILLS.as_bytes()) {
            return Ok(());
        }
        remove_tree(self.root(), layout::SKILLS.as_bytes()).map_err(failed("clear"))
    }

    /// Removes what earlier runs changed in the directory of one skill.
    pub fn clear_skill(&self, skill: &SkillName) -> Result<(), WorkspaceError> {
        let failed = |action| WorkspaceError::io(action, layout::skill_directory(skill));
        match nofollow::open_child_directory(self.root(), layout::SKILLS.as_bytes()) {
            Ok(skills) => remove_tree(skills.as_fd(), skill.as_str().as_bytes()).map_err(failed("clear")),
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(failed("open the parent of")(error)),
        }
    }

    /// The directory of the skills, if `path` is this directory and it was opened before the run.
    pub(super) fn skill_layers_at(&self, path: &RelPath) -> Option<BorrowedFd<'_>> {
        let layers = self.skill_layers.get()?;
        (path.as_bytes() == layout::SKILLS.as_bytes()).then(|| layers.as_fd())
    }

    /// Opens a directory of the workspace. Links are not followed, and neither are the mounts of a run on the directory
    /// of the skills.
    pub(super) fn open_directory(&self, path: &RelPath) -> rustix::io::Result<OwnedFd> {
        let mut parts = path.components();
        let Some(layers) = self
            .skill_layers
            .get()
            .filter(|_| parts.next() == Some(layout::SKILLS.as_bytes()))
        else {
            return nofollow::open_directory(self.root(), path);
        };
        let mut current = rustix::io::fcntl_dupfd_cloexec(layers, 0)?;
        for part in parts {
            current = nofollow::open_child_directory(current.as_fd(), part)?;
        }
        Ok(current)
    }

    /// Opens the parent of `path`, as [`Self::open_directory`] does. Returns it with the last component.
    pub(super) fn open_parent<'a>(&self, path: &'a RelPath) -> rustix::io::Result<(OwnedFd, &'a [u8])> {
        let parent = match path.parent() {
            Some(parent) => self.open_directory(&parent)?,
            None => rustix::io::fcntl_dupfd_cloexec(self.root(), 0)?,
        };
        Ok((parent, path.file_name()))
    }
}
