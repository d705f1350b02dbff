use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use skillbox_model::RelPath;
use skillbox_repository::{SkillDir, SkillReadError, TreeEntryKind};

use crate::workshop::{Workshop, assert_findings, names, skill_md};

fn rel(path: &str) -> RelPath {
    RelPath::parse(path).unwrap()
}

/// A skill full of links, beside a secret.
fn linked_skill() -> (Workshop, SkillDir) {
    let shop = Workshop::new();
    fs::write(shop.outside().join("secret.md"), "SECRET").unwrap();
    shop.skill("linked");
    shop.file("linked/references/real.md", "real");
    shop.file("linked/tools/run.py", "print()");
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
        symlink(target, shop.path("linked").join(link)).unwrap();
    }
    mknodat(CWD, shop.path("linked/pipe.md"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let skill = shop.scan().get("linked").unwrap().open().unwrap();
    (shop, skill)
}

#[test]
fn links_inside_work() {
    let (_shop, skill) = linked_skill();
    assert_eq!(skill.read(&rel("alias.md"), 100).unwrap(), b"real");
    assert_eq!(skill.read(&rel("references/back.md"), 100).unwrap(), b"real");
    assert_eq!(skill.read(&rel("scripts/run.py"), 100).unwrap(), b"print()");
}

#[test]
fn links_that_leave_are_never_read() {
    let (_shop, skill) = linked_skill();
    for path in [
        "leak.md",
        "references/leak.md",
        "passwd.txt",
        "everything/etc/passwd",
        "proc.md",
        "up/linked/alias.md",
    ] {
        let error = skill.read(&rel(path), 1 << 20).unwrap_err();
        assert!(matches!(error, SkillReadError::Leaves { .. }), "{path}: {error}");
    }
    assert!(matches!(
        skill.read(&rel("gone.md"), 9).unwrap_err(),
        SkillReadError::Missing { .. }
    ));
    assert!(matches!(
        skill.read(&rel("pipe.md"), 9).unwrap_err(),
        SkillReadError::NotAFile(_)
    ));
    assert!(matches!(
        skill.read(&rel("references"), 9).unwrap_err(),
        SkillReadError::NotAFile(_)
    ));
}

#[test]
fn links_that_leave_are_never_listed() {
    let (shop, skill) = linked_skill();
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
    let tree = skill.tree().unwrap();
    let links: Vec<_> = tree
        .entries
        .iter()
        .filter(|entry| matches!(entry.kind, TreeEntryKind::Link { .. }))
        .map(|entry| entry.path.to_str().unwrap())
        .collect();
    assert_eq!(links, ["alias.md", "references/back.md", "scripts"]);
    let mut left_out: Vec<_> = tree
        .left_out
        .iter()
        .map(|it| {
            (
                it.path.strip_prefix(shop.path("linked")).unwrap().to_str().unwrap(),
                it.code,
            )
        })
        .collect();
    left_out.sort();
    assert_eq!(
        left_out,
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
fn a_skill_md_that_is_a_link_must_stay_inside() {
    let shop = Workshop::new();
    shop.skill("good");
    shop.file("inside/docs/text.md", skill_md("inside", "Linked inside."));
    symlink("docs/text.md", shop.path("inside/SKILL.md")).unwrap();
    fs::create_dir(shop.path("sibling")).unwrap();
    symlink("../good/SKILL.md", shop.path("sibling/SKILL.md")).unwrap();
    fs::write(shop.outside().join("outside.md"), skill_md("outside", "Secret.")).unwrap();
    fs::create_dir(shop.path("outside")).unwrap();
    symlink("../../outside.md", shop.path("outside/SKILL.md")).unwrap();
    let catalog = shop.scan();
    assert_eq!(names(&catalog), ["good", "inside"]);
    assert_eq!(&*catalog.get("inside").unwrap().meta.description, "Linked inside.");
    assert_findings(
        &catalog,
        &shop.root(),
        &[
            ("link_leaves_skill", "outside/SKILL.md"),
            ("link_leaves_skill", "sibling/SKILL.md"),
        ],
    );
    assert!(!format!("{:?}", catalog.diagnostics()).contains("Secret"));
}

#[test]
fn history_and_caches_are_no_part_of_a_skill() {
    let shop = Workshop::new();
    shop.skill("cloned");
    shop.file("cloned/.git/config", "[remote] url = https://token@example.com");
    shop.file("cloned/scripts/__pycache__/x.pyc", "bytes");
    let skill = shop.scan().get("cloned").unwrap().open().unwrap();
    let files: Vec<_> = skill
        .files()
        .unwrap()
        .iter()
        .map(|entry| entry.path.to_string())
        .collect();
    assert_eq!(files, ["SKILL.md", "scripts"]);
    for path in [".git/config", "scripts/__pycache__/x.pyc"] {
        assert!(matches!(
            skill.read(&rel(path), 99).unwrap_err(),
            SkillReadError::Missing { .. }
        ));
    }
}

/// A file and a link to a secret change places as fast as they can; no read ever gives the secret.
#[test]
fn a_race_between_file_and_link_gives_nothing_away() {
    let shop = Workshop::new();
    fs::write(shop.outside().join("secret"), "SECRET").unwrap();
    fs::create_dir(shop.outside().join("secrets")).unwrap();
    fs::write(shop.outside().join("secrets/file.md"), "SECRET").unwrap();
    shop.skill("raced");
    shop.file("raced/doc.md", "harmless");
    shop.file("raced/docs/file.md", "harmless");
    symlink("../../secret", shop.path("raced/doc-link.md")).unwrap();
    symlink("../../secrets", shop.path("raced/docs-link")).unwrap();
    let skill = SkillDir::open(&shop.path("raced")).unwrap();
    let secret_free = skill.digest();
    assert!(secret_free.is_ok());

    let stop = AtomicBool::new(false);
    let exchange = |a: &Path, b: &Path| renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                exchange(&shop.path("raced/doc.md"), &shop.path("raced/doc-link.md"));
                exchange(&shop.path("raced/docs"), &shop.path("raced/docs-link"));
            }
        });
        let mut harmless = 0;
        for _ in 0..5_000 {
            for path in ["doc.md", "docs/file.md"] {
                match skill.read(&rel(path), 100) {
                    Ok(bytes) => {
                        assert_eq!(bytes, b"harmless");
                        harmless += 1;
                    }
                    Err(error) => assert!(
                        matches!(error, SkillReadError::Leaves { .. } | SkillReadError::Missing { .. }),
                        "{error}"
                    ),
                }
            }
        }
        for _ in 0..200 {
            for entry in skill.files().unwrap() {
                if let TreeEntryKind::File { size, .. } = entry.kind {
                    assert_ne!(size, "SECRET".len() as u64, "{}", entry.path);
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        assert!(harmless > 0, "the control never succeeded");
    });
}
