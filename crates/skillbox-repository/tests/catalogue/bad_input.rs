use std::fs::{self, File, Permissions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::sync::mpsc::{self, TryRecvError};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, OFlags, makedev, mkdirat, mknodat, openat};
use skillbox_repository::{Repository, ScanOptions, Severity};

use crate::workshop::{Workshop, assert_findings, directory, names, skill_md, without_root_rights};

/// One directory with everything in it: each good skill is there, each odd or broken one is told once.
#[test]
fn every_good_one_is_present_and_every_other_is_told() {
    let shop = Workshop::new();
    for name in ["a-good", "m-good", "z-good"] {
        shop.skill(name);
    }
    shop.file(
        "crlf/SKILL.md",
        "---\r\nname: crlf\r\ndescription: Fine.\r\n---\r\nBody",
    );
    shop.file("no-newline/SKILL.md", "---\nname: no-newline\ndescription: Fine.\n---");
    // Odd: loaded, and told.
    shop.file("odd-name/SKILL.md", skill_md("Odd_Name", "Breaks the rules."));
    shop.file("odd-long/SKILL.md", skill_md("odd-long", &"long ".repeat(300)));
    shop.file("odd-colon/SKILL.md", skill_md("odd-colon", "use when: asked"));
    shop.file(
        "odd-bom/SKILL.md",
        format!("\u{feff}{}", skill_md("odd-bom", "Marked.")),
    );
    // Broken: told.
    shop.file("broken-empty/SKILL.md", "");
    shop.file("broken-none/SKILL.md", "# Just text\n");
    shop.file("broken-open/SKILL.md", "---\nname: x\n");
    shop.file("broken-yaml/SKILL.md", "---\nname: x\ndescription: [\n---\n");
    shop.file("broken-list/SKILL.md", "---\n- a\n- b\n---\n");
    shop.file("broken-no-name/SKILL.md", "---\ndescription: x\n---\n");
    shop.file("broken-null/SKILL.md", "---\nname: x\ndescription:\n---\n");
    shop.file("broken-climb/SKILL.md", skill_md("../escape", "Climbs."));
    shop.file(
        "broken-utf8/SKILL.md",
        b"---\nname: broken-utf8\ndescription: \xff\n---\n",
    );
    shop.file(
        "broken-body/SKILL.md",
        b"---\nname: broken-body\ndescription: x\n---\n\xff\xfe",
    );
    shop.file("broken-nul/SKILL.md", "---\nname: a\0b\ndescription: x\n---\n");
    shop.file("broken-bomb/SKILL.md", alias_bomb());
    let keys: String = (0..100_000).map(|key| format!("k{key}: v\n")).collect();
    shop.file(
        "broken-keys/SKILL.md",
        format!("---\nname: x\ndescription: y\n{keys}---\n"),
    );
    let large = shop.file("broken-large/SKILL.md", skill_md("broken-large", "Too large."));
    File::options()
        .write(true)
        .open(large)
        .unwrap()
        .set_len((10 << 20) + 1)
        .unwrap();
    fs::create_dir_all(shop.path("broken-dir/SKILL.md")).unwrap();
    fs::create_dir(shop.path("broken-fifo")).unwrap();
    mknodat(CWD, shop.path("broken-fifo/SKILL.md"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    fs::create_dir(shop.path("broken-socket")).unwrap();
    let _socket = UnixListener::bind(shop.path("broken-socket/SKILL.md")).unwrap();
    symlink(".", shop.path("broken-loop")).unwrap();
    symlink("nowhere", shop.path("broken-link")).unwrap();
    fs::create_dir(shop.path("broken-out")).unwrap();
    symlink("/etc/hostname", shop.path("broken-out/SKILL.md")).unwrap();

    let catalog = shop.scan();
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
    let told = |dir: &str| {
        let about = catalog
            .diagnostics()
            .iter()
            .filter(|it| it.path.starts_with(shop.path(dir)));
        about.map(|it| it.code).collect::<Vec<_>>()
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
        assert_eq!(told(dir), [code], "{dir}");
    }
    for dir in ["odd-name", "broken-null", "broken-climb", "broken-nul"] {
        assert!(!told(dir).is_empty(), "{dir}");
    }
    assert!(told("crlf").is_empty() && told("no-newline").is_empty() && told("a-good").is_empty());
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
fn devices_are_refused() {
    let shop = Workshop::new();
    shop.skill("good");
    fs::create_dir_all(shop.path("null")).unwrap();
    let made = mknodat(
        CWD,
        shop.path("null/SKILL.md"),
        FileType::CharacterDevice,
        Mode::RUSR,
        makedev(1, 3),
    );
    if made.is_err() {
        eprintln!("skipped: making devices needs root");
        return;
    }
    let catalog = shop.scan();
    assert_eq!(names(&catalog), ["good"]);
    assert_findings(&catalog, &shop.root(), &[("not_a_file", "null/SKILL.md")]);
}

#[test]
fn links_in_circles_end() {
    let shop = Workshop::new();
    shop.skill("x/good");
    fs::create_dir_all(shop.path("y")).unwrap();
    symlink("../y", shop.path("x/to-y")).unwrap();
    symlink("../x", shop.path("y/to-x")).unwrap();
    symlink("..", shop.path("x/up")).unwrap();
    symlink("self", shop.path("self")).unwrap();
    // Out of the source and in again by the front door.
    symlink(shop.outside(), shop.path("around")).unwrap();
    let started = Instant::now();
    let catalog = shop.scan();
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(names(&catalog), ["good"]);
    let codes: Vec<_> = catalog.diagnostics().iter().map(|it| it.code).collect();
    assert!(codes.contains(&"link_loop"), "{codes:?}");
    assert!(
        codes.iter().all(|code| matches!(*code, "link_loop" | "duplicate_name")),
        "{codes:?}"
    );
}

#[test]
fn a_tree_of_four_thousand_levels_is_told_and_survived() {
    let shop = Workshop::new();
    shop.skill("good");
    shop.skill("has-deep");
    deep_tree(&shop.path("deep"), 4_000);
    deep_tree(&shop.path("has-deep/deep"), 4_000);
    let catalog = shop.scan();
    assert_eq!(names(&catalog), ["good", "has-deep"]);
    assert_findings(&catalog, &shop.root(), &[("depth_limit", "deep/d/d/d/d/d")]);
    let error = catalog.get("has-deep").unwrap().open().unwrap().digest().unwrap_err();
    assert!(error.to_string().contains("levels"), "{error}");
    for top in ["deep", "has-deep/deep"] {
        remove_deep_tree(&shop.path(top));
    }
}

/// The path of such a tree is too long for one call, so it is made one directory at a time.
fn deep_tree(top: &std::path::Path, levels: usize) {
    fs::create_dir(top).unwrap();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut here: OwnedFd = openat(CWD, top, flags, Mode::empty()).unwrap();
    for _ in 1..levels {
        mkdirat(&here, "d", Mode::RWXU).unwrap();
        here = openat(&here, "d", flags, Mode::empty()).unwrap();
    }
}

/// Taken down from the top, since recursion into such a tree runs out of descriptors.
fn remove_deep_tree(top: &std::path::Path) {
    let (first, rest) = (top.join("d"), top.join("rest"));
    while fs::rename(first.join("d"), &rest).is_ok() {
        fs::remove_dir(&first).unwrap();
        fs::rename(&rest, &first).unwrap();
    }
}

#[test]
fn what_may_not_be_read_is_told_and_its_siblings_load() {
    let shop = Workshop::new();
    shop.skill("good");
    shop.skill("locked-dir");
    shop.skill("locked-group/inside");
    let file = shop.skill("locked-file");
    fs::set_permissions(&file, Permissions::from_mode(0o000)).unwrap();
    for dir in ["locked-dir", "locked-group"] {
        fs::set_permissions(shop.path(dir), Permissions::from_mode(0o000)).unwrap();
    }
    let catalog = without_root_rights(|| shop.scan());
    assert_eq!(names(&catalog), ["good"]);
    assert_findings(
        &catalog,
        &shop.root(),
        &[
            ("unreadable", "locked-dir"),
            ("unreadable", "locked-file/SKILL.md"),
            ("unreadable", "locked-group"),
        ],
    );
    assert!(catalog.diagnostics().iter().all(|it| it.severity == Severity::Error));
    // The rights come back, and so do the skills.
    let repository = without_root_rights(|| shop.open());
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    for dir in ["locked-dir", "locked-group"] {
        fs::set_permissions(shop.path(dir), Permissions::from_mode(0o700)).unwrap();
    }
    without_root_rights(|| repository.refresh());
    assert_eq!(repository.catalog().len(), 4);
    assert!(repository.catalog().diagnostics().is_empty());
}

#[test]
fn a_source_that_may_not_be_read_hides_no_other() {
    let (locked, good) = (Workshop::new(), Workshop::new());
    locked.skill("lost");
    good.skill("good");
    fs::set_permissions(locked.root(), Permissions::from_mode(0o000)).unwrap();
    let catalog = without_root_rights(|| {
        Repository::open(vec![locked.source(), good.source()], ScanOptions::default()).catalog()
    });
    assert_eq!(names(&catalog), ["good"]);
    let [told] = catalog.diagnostics() else {
        panic!("{:?}", catalog.diagnostics())
    };
    assert_eq!((told.code, &*told.path), ("unreadable", &*locked.root()));
    assert!(told.message.contains("Permission denied"), "{}", told.message);
}

#[test]
fn a_path_with_a_nul_is_a_finding() {
    let catalog = Repository::open(vec![directory("a\0b")], ScanOptions::default()).catalog();
    assert_eq!(catalog.diagnostics().len(), 1);
    let empty = Repository::open(vec![directory("")], ScanOptions::default()).catalog();
    assert_eq!(empty.diagnostics().len(), 1);
}

#[test]
fn files_that_vanish_during_the_scan_take_nothing_with_them() {
    let shop = Workshop::new();
    for index in 0..200 {
        shop.skill(&format!("stays-{index:03}"));
    }
    let (held, watched) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        // This half ends with the other one, however that ends.
        let shop = &shop;
        scope.spawn(move || {
            let mut turn = 0;
            while watched.try_recv() == Err(TryRecvError::Empty) {
                let name = format!("comes-{}", turn % 20);
                let file = shop.skill(&name);
                fs::remove_file(&file).unwrap();
                fs::remove_dir(file.parent().unwrap()).unwrap();
                turn += 1;
            }
        });
        for _ in 0..40 {
            let catalog = shop.scan();
            let stayed = names(&catalog).iter().filter(|name| name.starts_with("stays-")).count();
            assert_eq!(stayed, 200);
            for told in catalog.diagnostics() {
                assert!(
                    matches!(told.code, "vanished" | "no_frontmatter" | "unclosed_frontmatter"),
                    "{told:?}"
                );
            }
        }
        drop(held);
    });
}
