//! The writable view of a skill: an overlay, a copy where the kernel refuses one, and a report where neither works.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, Gid, Mode, OFlags, Uid, chownat, mkdirat, openat};
use skillbox_model::ByteSize;
use skillbox_sandbox::{Bind, BindAccess, BindKind, BindOwner, CopyMethod, Spawner, WritableSkill};

use crate::fixture::{FinishedRun, TestRun, spawner};

const SKILL: &str = "shown";
const SCRIPT: &str = "cat a.txt; echo -n changed > a.txt && cat a.txt; stat -f -c %T . ";

/// A skill with one file, which only its owner may change.
fn skill() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(directory.path().join("a.txt"), "original\n").unwrap();
    directory
}

/// A run in the directory of a skill that it may change. The workspace has these directories.
fn prepared_run(spawner: &Spawner, script: &str, skill: &Path, directories: &[&str], size: ByteSize) -> TestRun {
    let mut run = TestRun::bash(script);
    run.profile.limits.default.workspace = size;
    let workspace = spawner.create_workspace(size, 1000).unwrap();
    let script = spawner.facts().unwrap().script_ids;
    for name in directories {
        mkdirat(&workspace, *name, Mode::RWXU).unwrap();
        let owner = (Uid::from_raw(script.uid), Gid::from_raw(script.gid));
        chownat(&workspace, *name, Some(owner.0), Some(owner.1), AtFlags::empty()).unwrap();
    }
    run.workspace = Some(workspace);
    // The mount points of the skills cover the layers.
    let mount_points = skill.join("mount-points");
    fs::create_dir_all(mount_points.join(SKILL)).unwrap();
    run.job.binds.push(Bind {
        target: "/workspace/skills".to_owned(),
        kind: BindKind::Directory,
        access: BindAccess::ReadOnly,
        owner: BindOwner::Unchanged,
    });
    run.binds.push(File::open(mount_points).unwrap().into());
    run.binds.push(File::open(skill).unwrap().into());
    let writable = WritableSkill::new("/workspace/skills", SKILL).unwrap();
    run.job.cwd = writable.target();
    run.job.binds.push(Bind {
        target: writable.target(),
        kind: BindKind::Directory,
        access: BindAccess::ReadOnly,
        owner: BindOwner::Script,
    });
    run.job.writable_skill = Some(writable);
    run
}

fn run(spawner: &Spawner, skill: &Path, directories: &[&str], method: CopyMethod) -> FinishedRun {
    let mut run = prepared_run(spawner, SCRIPT, skill, directories, ByteSize::mib(16));
    if let Some(skill) = &mut run.job.writable_skill {
        skill.method = method;
    }
    run.launch(spawner)
}

const LAYERS: [&str; 3] = ["skills", "skills/shown", "skills/.overlay-work"];

#[test]
fn a_script_changes_an_overlay_or_a_copy_and_not_the_skill() {
    for (method, file_system) in [(CopyMethod::Overlay, "overlayfs"), (CopyMethod::Copy, "tmpfs")] {
        let skill = skill();
        let done = run(&spawner(), skill.path(), &LAYERS, method);
        assert_eq!(done.ok(), format!("original\nchanged{file_system}"), "{method:?}");
        assert_eq!(done.result.read_only_skill, None);
        assert_eq!(fs::read_to_string(skill.path().join("a.txt")).unwrap(), "original\n");
    }
}

#[test]
fn where_the_kernel_refuses_an_overlay_the_skill_is_copied() {
    let skill = skill();
    // Without its work directory an overlay cannot be mounted.
    let done = run(&spawner(), skill.path(), &LAYERS[..2], CopyMethod::Overlay);
    assert_eq!(done.ok(), "original\nchangedtmpfs");
    assert_eq!(done.result.read_only_skill, None);
}

#[test]
fn where_neither_works_the_skill_stays_read_only_and_the_result_says_why() {
    let skill = skill();
    fs::write(skill.path().join("large.bin"), vec![7; 3 << 20]).unwrap();
    let spawner = spawner();
    let script = "cat a.txt; echo x > a.txt || echo refused";
    let mut small = prepared_run(&spawner, script, skill.path(), &LAYERS, ByteSize::mib(1));
    if let Some(skill) = &mut small.job.writable_skill {
        skill.method = CopyMethod::Copy;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let layers = openat(small.workspace.as_ref().unwrap(), LAYERS[1], flags, Mode::empty()).unwrap();
    let done = small.launch(&spawner);
    assert_eq!(done.ok(), "original\nrefused", "{}", done.stderr);
    let reason = done.result.read_only_skill.clone().unwrap();
    assert!(
        reason.starts_with("cannot make the skill writable: No space left on device"),
        "{reason}"
    );
    // The incomplete copy was removed.
    let remaining = Dir::read_from(&layers).unwrap().count();
    assert_eq!(remaining, 2, "only `.` and `..`");
}
