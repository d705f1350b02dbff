//! Directories of skills on the host, mounted read-only where the operator asks for it.
//!
//! A run does not depend on them: the skill that runs is a frozen copy, which is sent into the container and checked
//! against its digest. The mounts let a script read the other skills of the host.

use std::path::{Path, PathBuf};

use bollard::models::{Mount, MountBindOptions, MountBindOptionsPropagationEnum, MountType};

/// Where the first directory is mounted. It is below `/opt`, which scripts may read.
const FIRST_TARGET: &str = "/opt/skills";

/// The variable that contains the mounted directories, separated by colons.
pub(super) const SKILLS_ROOT_VARIABLE: &str = "SKILLS_ROOT";

/// One mount for each directory.
pub(super) fn skills_root_mounts(directories: &[PathBuf]) -> Vec<Mount> {
    let mount = |(index, directory): (usize, &PathBuf)| Mount {
        target: Some(mount_target(index)),
        source: Some(path_text(directory)),
        typ: Some(MountType::BIND),
        read_only: Some(true),
        bind_options: Some(MountBindOptions {
            propagation: Some(MountBindOptionsPropagationEnum::PRIVATE),
            // File systems that are mounted below the directory are not part of what the operator named.
            non_recursive: Some(true),
            ..MountBindOptions::default()
        }),
        ..Mount::default()
    };
    directories.iter().enumerate().map(mount).collect()
}

/// The value of the variable, or `None` without directories.
pub(super) fn skills_root_value(directories: &[PathBuf]) -> Option<String> {
    let targets: Vec<String> = (0..directories.len()).map(mount_target).collect();
    (!targets.is_empty()).then(|| targets.join(":"))
}

/// Whether a container has exactly the requested mounts, all of them read-only.
pub(super) fn has_only_these_mounts(mounts: &[Mount], directories: &[PathBuf]) -> bool {
    let identity = |mount: &Mount| (mount.source.clone(), mount.target.clone(), mount.typ, mount.read_only);
    let found: Vec<_> = mounts.iter().map(identity).collect();
    let requested: Vec<_> = skills_root_mounts(directories).iter().map(identity).collect();
    found == requested
}

fn mount_target(index: usize) -> String {
    match index {
        0 => FIRST_TARGET.to_owned(),
        index => format!("{FIRST_TARGET}-{}", index + 1),
    }
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_directory_is_mounted_read_only_at_a_path_of_its_own() {
        let directories = [PathBuf::from("/srv/a"), PathBuf::from("/srv/b")];
        let mounts = skills_root_mounts(&directories);
        let targets: Vec<_> = mounts.iter().filter_map(|mount| mount.target.as_deref()).collect();
        assert_eq!(targets, ["/opt/skills", "/opt/skills-2"]);
        assert!(mounts.iter().all(|mount| mount.read_only == Some(true)));
        assert_eq!(
            skills_root_value(&directories).as_deref(),
            Some("/opt/skills:/opt/skills-2")
        );
        assert_eq!(skills_root_value(&[]), None);
    }

    #[test]
    fn other_mounts_and_writable_mounts_are_found() {
        let directories = [PathBuf::from("/srv/a")];
        let mounts = skills_root_mounts(&directories);
        assert!(has_only_these_mounts(&mounts, &directories));
        assert!(has_only_these_mounts(&[], &[]));
        assert!(!has_only_these_mounts(&mounts, &[]), "a mount that nobody asked for");
        let writable = Mount {
            read_only: Some(false),
            ..mounts[0].clone()
        };
        assert!(!has_only_these_mounts(&[writable], &directories));
    }
}
