use std::fs::{self, File, Permissions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::sync::mpsc::{self, TryRecvError};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, OFlags, makedev, mkdirat, mknodat, openat};
use skillbox_repository::{Repository, ScanOptions, Severity, strict};

use crate::skill_fixture::{
    SkillFixture, assert_diagnostics, directory_source, names, skill_md, without_permission_bypass,
};

/// One directory with all kinds of skills: every valid skill loads, and every odd or broken one has a diagnostic.
#[test]
fn valid_skills_load_and_all_others_are_reported() {
    let fixture = SkillFixture::new();
    for name in ["a-good", "m-good", "z-good"] {
        fixture.write_skill(name);
    }
    fixture.write_file(
        "crlf/SKILL.md",
        "---\r\nname: crlf\r\ndescription: Fine.\r\n---\r\nBody",
    );
    fixture.write_file("no-newline/SKILL.md", "---\nname: no-newline\ndescription: Fine.\n---");
    // Odd: loaded and reported.
    fixture.write_file("odd-name/SKILL.md", skill_md("Odd_Name", "Breaks the rules."));
    fixture.write_file("odd-long/SKILL.md", skill_md("odd-long", &"long ".repeat(300)));
    fixture.write_file("odd-colon/SKILL.md", skill_md("odd-colon", "use when: asked"));
    fixture.write_file(
        "odd-bom/SKILL.md",
        format!("\u{feff}{}", skill_md("odd-bom", "Marked.")),
    );
    // Broken: only reported.
    fixture.write_file("broken-empty/SKILL.md", "");
    fixture.write_file("broken-none/SKILL.md", "# Just text\n");
    fixture.write_file("broken-open/SKILL.md", "---\nname: x\n");
    fixture.write_file("broken-yaml/SKILL.md", "---\nname: x\ndescription: [\n---\n");
    fixture.write_file("broken-list/SKILL.md", "---\n- a\n- b\n---\n");
    fixture.write_file("broken-no-name/SKILL.md", "---\ndescription: x\n---\n");
    fixture.write_file("broken-null/SKILL.md", "---\nname: x\ndescription:\n---\n");
    fixture.write_file("broken-climb/SKILL.md", skill_md("../escape", "Climbs."));
    fixture.write_file(
        "broken-utf8/SKILL.md",
        b"---\nname: broken-utf8\ndescription: \xff\n---\n",
    );
    fixture.write_file(
        "broken-body/SKILL.md",
        b"---\nname: broken-body\ndescription: x\n---\n\xff\xfe",
    );
    fixture.write_file("broken-nul/SKILL.md", "---\nname: a\0b\ndescription: x\n---\n");
    fixture.write_file("broken-bomb/SKILL.md", alias_bomb());
    let keys: String = (0..100_000).map(|key| format!("k{key}: v\n")).collect();
    fixture.write_file(
        "broken-keys/SKILL.md",
        format!("---\nname: x\ndescription: y\n{keys}---\n"),
    );
    let large = fixture.write_file("broken-large/SKILL.md", skill_md("broken-large", "Too large."));
    File::options()
        .write(true)
        .open(large)
        .unwrap()
        .set_len((10 << 20) + 1)
        .unwrap();
    fs::create_dir_all(fixture.path("broken-dir/SKILL.md")).unwrap();
    fs::create_dir(fixture.path("broken-fifo")).unwrap();
    mknodat(CWD, fixture.path("broken-fifo/SKILL.md"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    fs::create_dir(fixture.path("broken-socket")).unwrap();
    let _socket = UnixListener::bind(fixture.path("broken-socket/SKILL.md")).unwrap();
    symlink(".", fixture.path("broken-loop")).unwrap();
    symlink("nowhere", fixture.path("broken-link")).unwrap();
    fs::create_dir(fixture.path("broken-out")).unwrap();
    symlink("/etc/hostname", fixture.path("broken-out/SKILL.md")).unwrap();

    let catalog = fixture.scan();
    assert_eq!(
        names(&catalog),
        [
            "a-good",
            "crlf",
            "m-good",
            "no-newline",
            "odd-bom",
            "odd-colon",
            "odd-long",
            "Odd_Name",
            "z-good"
        ]
    );
    let codes_below = |dir: &str| {
        let below = catalog
            .diagnostics()
            .iter()
            .filter(|it| it.path.starts_with(fixture.path(dir)));
        below.map(|it| it.code).collect::<Vec<_>>()
    };
    for (dir, code) in [
        ("odd-long", "description_too_long"),
        ("odd-colon", "unquoted_value"),
        ("odd-bom", "byte_order_mark"),
        ("broken-empty", "no_frontmatter"),
        ("broken-none", "no_frontmatter"),
        ("broken-open", "unclosed_frontmatter"),
        ("broken-yaml", "invalid_yaml"),
        ("broken-list", "not_a_mapping"),
        ("broken-no-name", "missing_name"),
        ("broken-utf8", "not_utf8"),
        ("broken-body", "not_utf8"),
        ("broken-bomb", "frontmatter_budget"),
        ("broken-keys", "frontmatter_budget"),
        ("broken-large", "too_large"),
        ("broken-dir", "not_a_file"),
        ("broken-fifo", "not_a_file"),
        ("broken-socket", "not_a_file"),
        ("broken-loop", "link_loop"),
        ("broken-link", "dangling_link"),
        ("broken-out", "link_leaves_skill"),
    ] {
        assert_eq!(codes_below(dir), [code], "{dir}");
    }
    for dir in ["odd-name", "broken-null", "broken-climb", "broken-nul"] {
        assert!(!codes_below(dir).is_empty(), "{dir}");
    }
    assert!(codes_below("crlf").is_empty() && codes_below("no-newline").is_empty() && codes_below("a-good").is_empty());
}

fn alias_bomb() -> String {
    let mut yaml = String::from("---\nname: bomb\ndescription: x\na0: &a0 [x, x]\n");
    for level in 1..30 {
        let below = level - 1;
        yaml += &format!("a{level}: &a{level} [*a{below}, *a{below}, *a{below}]\n");
    }
    yaml + "---\n"
}

#[test]
fn devices_are_rejected() {
    let fixture = SkillFixture::new();
    fixture.write_skill("good");
    fs::create_dir_all(fixture.path("null")).unwrap();
    let created = mknodat(
        CWD,
        fixture.path("null/SKILL.md"),
        FileType::CharacterDevice,
        Mode::RUSR,
        makedev(1, 3),
    );
    if created.is_err() {
        eprintln!("skipped: creating devices requires root");
        return;
    }
    let catalog = fixture.scan();
    assert_eq!(names(&catalog), ["good"]);
    assert_diagnostics(&catalog, &fixture.root(), &[("not_a_file", "null/SKILL.md")]);
}

#[test]
fn link_loops_are_detected() {
    let fixture = SkillFixture::new();
    fixture.write_skill("x/good");
    fs::create_dir_all(fixture.path("y")).unwrap();
    symlink("../y", fixture.path("x/to-y")).unwrap();
    symlink("../x", fixture.path("y/to-x")).unwrap();
    symlink("..", fixture.path("x/up")).unwrap();
    symlink("self", fixture.path("self")).unwrap();
    // This link points to the parent directory of the source, and thus indirectly to the source.
    symlink(fixture.outside(), fixture.path("around")).unwrap();
    let started = Instant::now();
    let catalog = fixture.scan();
    assert!(started.elapsed() < Duration::from_secs(30));
    assert_eq!(names(&catalog), ["good"]);
    let codes: Vec<_> = catalog.diagnostics().iter().map(|it| it.code).collect();
    assert!(codes.contains(&"link_loop"), "{codes:?}");
    assert!(
        codes.iter().all(|code| matches!(*code, "link_loop" | "duplicate_name")),
        "{codes:?}"
    );
}

#[test]
fn a_tree_of_four_thousand_levels_is_reported() {
    let fixture = SkillFixture::new();
    fixture.write_skill("good");
    fixture.write_skill("has-deep");
    create_deep_tree(&fixture.path("deep"), 4_000);
    create_deep_tree(&fixture.path("has-deep/deep"), 4_000);
    let catalog = fixture.scan();
    assert_eq!(names(&catalog), ["good", "has-deep"]);
    assert_diagnostics(&catalog, &fixture.root(), &[("depth_limit", "deep/d/d/d/d/d")]);
    let error = catalog.get("has-deep").unwrap().open().unwrap().digest().unwrap_err();
    assert!(error.to_string().contains("levels"), "{error}");
    for top in ["deep", "has-deep/deep"] {
        remove_deep_tree(&fixture.path(top));
    }
}

/// The path is too long for one call, so the directories are created one at a time.
fn create_deep_tree(top: &std::path::Path, levels: usize) {
    fs::create_dir(top).unwrap();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut here: OwnedFd = openat(CWD, top, flags, Mode::empty()).unwrap();
    for _ in 1..levels {
        mkdirat(&here, "d", Mode::RWXU).unwrap();
        here = openat(&here, "d", flags, Mode::empty()).unwrap();
    }
}

/// Removes the tree from the top, because a recursive removal runs out of descriptors.
fn remove_deep_tree(top: &std::path::Path) {
    let (first, rest) = (top.join("d"), top.join("rest"));
    while fs::rename(first.join("d"), &rest).is_ok() {
        fs::remove_dir(&first).unwrap();
        fs::rename(&rest, &first).unwrap();
    }
}

#[test]
fn unreadable_skills_are_reported_and_the_others_load() {
    let fixture = SkillFixture::new();
    fixture.write_skill("good");
    fixture.write_skill("locked-dir");
    fixture.write_skill("locked-group/inside");
    let file = fixture.write_skill("locked-file");
    fs::set_permissions(&file, Permissions::from_mode(0o000)).unwrap();
    for dir in ["locked-dir", "locked-group"] {
        fs::set_permissions(fixture.path(dir), Permissions::from_mode(0o000)).unwrap();
    }
    let catalog = without_permission_bypass(|| fixture.scan());
    assert_eq!(names(&catalog), ["good"]);
    assert_diagnostics(
        &catalog,
        &fixture.root(),
        &[
            ("unreadable", "locked-dir"),
            ("unreadable", "locked-file/SKILL.md"),
            ("unreadable", "locked-group"),
        ],
    );
    assert!(catalog.diagnostics().iter().all(|it| it.severity == Severity::Error));
    // After the permissions are restored, a refresh finds the skills.
    let repository = without_permission_bypass(|| fixture.open());
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    for dir in ["locked-dir", "locked-group"] {
        fs::set_permissions(fixture.path(dir), Permissions::from_mode(0o700)).unwrap();
    }
    without_permission_bypass(|| repository.refresh());
    assert_eq!(repository.catalog().len(), 4);
    assert!(repository.catalog().diagnostics().is_empty());
}

#[test]
fn strict_validation_needs_only_search_permission() {
    let fixture = SkillFixture::new();
    fixture.write_skill("search-only");
    let dir = fixture.path("search-only");
    fs::set_permissions(&dir, Permissions::from_mode(0o111)).unwrap();
    let errors = without_permission_bypass(|| {
        assert!(fs::read_dir(&dir).is_err(), "the directory must not be readable");
        strict::validate(&dir)
    });
    fs::set_permissions(&dir, Permissions::from_mode(0o755)).unwrap();
    assert_eq!(errors, Vec::<String>::new());
}

#[test]
fn an_unreadable_source_does_not_affect_other_sources() {
    let (locked, good) = (SkillFixture::new(), SkillFixture::new());
    locked.write_skill("lost");
    good.write_skill("good");
    fs::set_permissions(locked.root(), Permissions::from_mode(0o000)).unwrap();
    let catalog = without_permission_bypass(|| {
        Repository::open(vec![locked.source(), good.source()], ScanOptions::default()).catalog()
    });
    assert_eq!(names(&catalog), ["good"]);
    let [diagnostic] = catalog.diagnostics() else {
        panic!("{:?}", catalog.diagnostics())
    };
    assert_eq!((diagnostic.code, &*diagnostic.path), ("unreadable", &*locked.root()));
    assert!(
        diagnostic.message.contains("Permission denied"),
        "{}",
        diagnostic.message
    );
}

#[test]
fn a_source_path_with_a_nul_is_reported() {
    let catalog = Repository::open(vec![directory_source("a\0b")], ScanOptions::default()).catalog();
    assert_eq!(catalog.diagnostics().len(), 1);
    let empty = Repository::open(vec![directory_source("")], ScanOptions::default()).catalog();
    assert_eq!(empty.diagnostics().len(), 1);
}

#[test]
fn files_removed_during_a_scan_do_not_affect_others() {
    let fixture = SkillFixture::new();
    for index in 0..200 {
        fixture.write_skill(&format!("kept-{index:03}"));
    }
    let (keep_running, is_running) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        // The thread ends when the sender is dropped, also by a panic.
        let fixture = &fixture;
        scope.spawn(move || {
            let mut round = 0;
            while is_running.try_recv() == Err(TryRecvError::Empty) {
                let name = format!("removed-{}", round % 20);
                let file = fixture.write_skill(&name);
                fs::remove_file(&file).unwrap();
                fs::remove_dir(file.parent().unwrap()).unwrap();
                round += 1;
            }
        });
        for _ in 0..40 {
            let catalog = fixture.scan();
            let kept = names(&catalog).iter().filter(|name| name.starts_with("kept-")).count();
            assert_eq!(kept, 200);
            for diagnostic in catalog.diagnostics() {
                assert!(
                    matches!(diagnostic.code, "vanished" | "no_frontmatter" | "unclosed_frontmatter"),
                    "{diagnostic:?}"
                );
            }
        }
        drop(keep_running);
    });
}
