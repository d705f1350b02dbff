use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use skillbox_model::RelPath;
use skillbox_repository::{SkillDir, SkillReadError, TreeEntryKind};

use crate::skill_fixture::{SkillFixture, assert_diagnostics, names, skill_md};

fn rel(path: &str) -> RelPath {
    RelPath::parse(path).unwrap()
}

/// A skill with many links, and a secret outside of it.
fn linked_skill() -> (SkillFixture, SkillDir) {
    let fixture = SkillFixture::new();
    fs::write(fixture.outside().join("secret.md"), "SECRET").unwrap();
    fixture.write_skill("linked");
    fixture.write_file("linked/references/real.md", "real");
    fixture.write_file("linked/tools/run.py", "print()");
    for (link, target) in [
        ("alias.md", "references/real.md"),
        ("references/back.md", "../alias.md"),
        ("scripts", "tools"),
        ("leak.md", "../../secret.md"),
        ("references/leak.md", "../../../secret.md"),
        ("passwd.txt", "/etc/passwd"),
        ("everything", "/"),
        ("proc.md", "/proc/self/environ"),
        ("up", ".."),
        ("gone.md", "missing.md"),
        ("circle.md", "circle.md"),
    ] {
        symlink(target, fixture.path("linked").join(link)).unwrap();
    }
    mknodat(CWD, fixture.path("linked/pipe.md"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let skill = fixture.scan().get("linked").unwrap().open().unwrap();
    (fixture, skill)
}

#[test]
fn links_inside_the_skill_are_followed() {
    let (_fixture, skill) = linked_skill();
    assert_eq!(skill.read_file(&rel("alias.md"), 100).unwrap(), b"real");
    assert_eq!(skill.read_file(&rel("references/back.md"), 100).unwrap(), b"real");
    assert_eq!(skill.read_file(&rel("scripts/run.py"), 100).unwrap(), b"print()");
}

#[test]
fn links_to_the_outside_are_never_read() {
    let (_fixture, skill) = linked_skill();
    for path in [
        "leak.md",
        "references/leak.md",
        "passwd.txt",
        "everything/etc/passwd",
        "proc.md",
        "up/linked/alias.md",
    ] {
        let error = skill.read_file(&rel(path), 1 << 20).unwrap_err();
        assert!(matches!(error, SkillReadError::OutsideSkill { .. }), "{path}: {error}");
    }
    assert!(matches!(
        skill.read_file(&rel("gone.md"), 9).unwrap_err(),
        SkillReadError::Missing { .. }
    ));
    assert!(matches!(
        skill.read_file(&rel("pipe.md"), 9).unwrap_err(),
        SkillReadError::NotAFile(_)
    ));
    assert!(matches!(
        skill.read_file(&rel("references"), 9).unwrap_err(),
        SkillReadError::NotAFile(_)
    ));
}

#[test]
fn links_to_the_outside_are_never_listed() {
    let (fixture, skill) = linked_skill();
    let docs: Vec<_> = skill.docs().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(docs, ["alias.md", "references/back.md", "references/real.md"]);
    let resources: Vec<_> = skill.resources().unwrap();
    let resources: Vec<_> = resources
        .iter()
        .map(|it| (it.kind.as_str(), it.path.to_str().unwrap()))
        .collect();
    assert_eq!(
        resources,
        [
            ("script", "scripts/run.py"),
            ("reference", "references/back.md"),
            ("reference", "references/real.md"),
            ("other", "alias.md"),
        ]
    );
    let tree = skill.read_tree().unwrap();
    let links: Vec<_> = tree
        .entries
        .iter()
        .filter(|entry| matches!(entry.kind, TreeEntryKind::Link { .. }))
        .map(|entry| entry.path.to_str().unwrap())
        .collect();
    assert_eq!(links, ["alias.md", "references/back.md", "scripts"]);
    let mut excluded: Vec<_> = tree
        .exclusions
        .iter()
        .map(|it| {
            (
                it.path.strip_prefix(fixture.path("linked")).unwrap().to_str().unwrap(),
                it.code,
            )
        })
        .collect();
    excluded.sort();
    assert_eq!(
        excluded,
        [
            ("circle.md", "link_loop"),
            ("everything", "link_leaves_skill"),
            ("gone.md", "dangling_link"),
            ("leak.md", "link_leaves_skill"),
            ("passwd.txt", "link_leaves_skill"),
            ("pipe.md", "special_file"),
            ("proc.md", "link_leaves_skill"),
            ("references/leak.md", "link_leaves_skill"),
            ("up", "link_leaves_skill"),
        ]
    );
}

#[test]
fn a_linked_skill_md_must_stay_inside_the_skill() {
    let fixture = SkillFixture::new();
    fixture.write_skill("good");
    fixture.write_file("inside/docs/text.md", skill_md("inside", "Linked inside."));
    symlink("docs/text.md", fixture.path("inside/SKILL.md")).unwrap();
    fs::create_dir(fixture.path("sibling")).unwrap();
    symlink("../good/SKILL.md", fixture.path("sibling/SKILL.md")).unwrap();
    fs::write(fixture.outside().join("outside.md"), skill_md("outside", "Secret.")).unwrap();
    fs::create_dir(fixture.path("outside")).unwrap();
    symlink("../../outside.md", fixture.path("outside/SKILL.md")).unwrap();
    let catalog = fixture.scan();
    assert_eq!(names(&catalog), ["good", "inside"]);
    assert_eq!(&*catalog.get("inside").unwrap().meta.description, "Linked inside.");
    assert_diagnostics(
        &catalog,
        &fixture.root(),
        &[
            ("link_leaves_skill", "outside/SKILL.md"),
            ("link_leaves_skill", "sibling/SKILL.md"),
        ],
    );
    assert!(!format!("{:?}", catalog.diagnostics()).contains("Secret"));
}

#[test]
fn version_control_and_caches_are_not_part_of_a_skill() {
    let fixture = SkillFixture::new();
    fixture.write_skill("cloned");
    fixture.write_file("cloned/.git/config", "[remote] url = https://token@example.com");
    fixture.write_file("cloned/scripts/__pycache__/x.pyc", "bytes");
    let skill = fixture.scan().get("cloned").unwrap().open().unwrap();
    let files: Vec<_> = skill
        .tree_entries()
        .unwrap()
        .iter()
        .map(|entry| entry.path.to_string())
        .collect();
    assert_eq!(files, ["SKILL.md", "scripts"]);
    for path in [".git/config", "scripts/__pycache__/x.pyc"] {
        assert!(matches!(
            skill.read_file(&rel(path), 99).unwrap_err(),
            SkillReadError::Missing { .. }
        ));
    }
}

/// A thread exchanges a file and a link to a secret all the time; no read ever returns the secret.
#[test]
fn a_race_between_file_and_link_reveals_no_secret() {
    let fixture = SkillFixture::new();
    fs::write(fixture.outside().join("secret"), "SECRET").unwrap();
    fs::create_dir(fixture.outside().join("secrets")).unwrap();
    fs::write(fixture.outside().join("secrets/file.md"), "SECRET").unwrap();
    fixture.write_skill("raced");
    fixture.write_file("raced/doc.md", "harmless");
    fixture.write_file("raced/docs/file.md", "harmless");
    symlink("../../secret", fixture.path("raced/doc-link.md")).unwrap();
    symlink("../../secrets", fixture.path("raced/docs-link")).unwrap();
    let skill = SkillDir::open(&fixture.path("raced")).unwrap();
    assert!(skill.digest().is_ok());

    let stop = AtomicBool::new(false);
    let exchange = |a: &Path, b: &Path| renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                exchange(&fixture.path("raced/doc.md"), &fixture.path("raced/doc-link.md"));
                exchange(&fixture.path("raced/docs"), &fixture.path("raced/docs-link"));
            }
        });
        let mut harmless = 0;
        for _ in 0..5_000 {
            for path in ["doc.md", "docs/file.md"] {
                match skill.read_file(&rel(path), 100) {
                    Ok(bytes) => {
                        assert_eq!(bytes, b"harmless");
                        harmless += 1;
                    }
                    Err(error) => assert!(
                        matches!(
                            error,
                            SkillReadError::OutsideSkill { .. } | SkillReadError::Missing { .. }
                        ),
                        "{error}"
                    ),
                }
            }
        }
        for _ in 0..200 {
            for entry in skill.tree_entries().unwrap() {
                if let TreeEntryKind::File { size, .. } = entry.kind {
                    assert_ne!(size, "SECRET".len() as u64, "{}", entry.path);
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        assert!(harmless > 0, "no read ever succeeded");
    });
}
