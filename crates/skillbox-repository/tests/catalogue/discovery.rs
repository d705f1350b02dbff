use std::ffi::OsStr;
use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use skillbox_repository::{Repository, ScanOptions};

use crate::workshop::{Workshop, assert_findings, directory, names, skill_md};

#[test]
fn every_directory_with_a_skill_md_is_a_skill() {
    let shop = Workshop::new();
    for name in ["alpha", "beta", "gamma"] {
        shop.skill(name);
    }
    let catalog = shop.scan();
    assert_eq!(names(&catalog), ["alpha", "beta", "gamma"]);
    assert_findings(&catalog, &shop.root(), &[]);
    let beta = catalog.get("beta").unwrap();
    assert_eq!(beta.path(), shop.path("beta/SKILL.md"));
    assert_eq!(beta.dir(), shop.path("beta"));
    assert_eq!(beta.dir_in_source(), "beta");
    assert_eq!(&*beta.meta.description, "About beta.");
    assert_eq!(beta.source_label(), shop.root().to_str().unwrap());
    assert!(catalog.get("delta").is_none());
}

#[test]
fn an_empty_source_is_an_empty_catalogue() {
    let shop = Workshop::new();
    let catalog = shop.scan();
    assert!(catalog.is_empty());
    assert_eq!(catalog.len(), 0);
    assert_findings(&catalog, &shop.root(), &[]);
}

#[test]
fn other_files_and_directories_are_passed_by_in_silence() {
    let shop = Workshop::new();
    shop.skill("real");
    shop.file("real/helper.py", "");
    shop.file("real/other.md", skill_md("other", "No skill file."));
    shop.file("notes/README.md", "nothing here");
    shop.file("Skill.md", skill_md("third-casing", "Not a skill file's name."));
    let catalog = shop.scan();
    assert_eq!(names(&catalog), ["real"]);
    assert_findings(&catalog, &shop.root(), &[]);
}

#[test]
fn a_skills_own_directory_is_a_source_of_one() {
    let shop = Workshop::new();
    shop.skill("only");
    for path in [shop.path("only"), shop.path("only/")] {
        let catalog = Repository::open(vec![directory(path)], ScanOptions::default()).catalog();
        assert_eq!(names(&catalog), ["only"]);
        let entry = catalog.get("only").unwrap();
        assert_eq!(entry.path(), shop.path("only/SKILL.md"));
        assert_eq!(entry.dir_in_source(), "");
    }
}

#[test]
fn the_second_spelling_counts_where_the_first_is_missing() {
    let shop = Workshop::new();
    shop.file("both/SKILL.md", skill_md("both", "The first."));
    shop.file("both/skill.md", skill_md("both", "The second."));
    shop.file("lower/skill.md", skill_md("lower", "Alone."));
    let catalog = shop.scan();
    assert_eq!(&*catalog.get("both").unwrap().meta.description, "The first.");
    let lower = catalog.get("lower").unwrap();
    assert_eq!(lower.path(), shop.path("lower/skill.md"));
    assert_eq!(
        lower.open().unwrap().instructions().unwrap().body,
        "\n# lower\n\nDo it.\n"
    );
    assert!(lower.open().unwrap().resources().unwrap().is_empty());
}

#[test]
fn six_levels_are_searched_and_the_seventh_is_told() {
    let shop = Workshop::new();
    shop.skill("1/2/3/4/5/six");
    shop.skill("1/2/3/4/5/6/seven");
    shop.skill("a/b/c/d/e/f/seven-too");
    let catalog = shop.scan();
    assert_eq!(names(&catalog), ["six"]);
    assert_findings(&catalog, &shop.root(), &[("depth_limit", "1/2/3/4/5/6")]);
    assert!(
        catalog.diagnostics()[0].message.contains("1 more"),
        "{:?}",
        catalog.diagnostics()
    );
}

#[test]
fn directories_that_hold_no_skills_of_their_own_are_skipped() {
    let shop = Workshop::new();
    for skipped in [".git", "node_modules", ".venv", "__pycache__"] {
        shop.skill(&format!("{skipped}/inside"));
        shop.skill(&format!("group/{skipped}/inside"));
    }
    shop.skill(".hidden/found");
    let catalog = shop.scan();
    assert_eq!(names(&catalog), ["found"]);
    assert_findings(&catalog, &shop.root(), &[]);
}

#[test]
fn a_skill_inside_a_skill_is_told_and_not_loaded() {
    let shop = Workshop::new();
    shop.skill("outer");
    shop.skill("outer/inner");
    shop.skill("outer/templates/deep/second");
    shop.file("outer/other/skill.md", "whatever");
    shop.skill("outer/node_modules/package");
    shop.skill("beside");
    let catalog = shop.scan();
    assert_eq!(names(&catalog), ["beside", "outer"]);
    assert_findings(
        &catalog,
        &shop.root(),
        &[
            ("nested_skill", "outer/inner/SKILL.md"),
            ("nested_skill", "outer/other/skill.md"),
            ("nested_skill", "outer/templates/deep/second/SKILL.md"),
        ],
    );
    assert_eq!(catalog.diagnostics_of(catalog.get("outer").unwrap()).count(), 3);
    assert_eq!(catalog.diagnostics_of(catalog.get("beside").unwrap()).count(), 0);
}

#[test]
fn a_broken_skill_hides_what_lies_below_it_but_not_in_silence() {
    let shop = Workshop::new();
    shop.file("SKILL.md", "no frontmatter");
    shop.skill("below");
    let catalog = shop.scan();
    assert!(catalog.is_empty());
    assert_findings(
        &catalog,
        &shop.root(),
        &[("no_frontmatter", "SKILL.md"), ("nested_skill", "below/SKILL.md")],
    );
}

#[test]
fn the_order_is_that_of_the_paths_whatever_the_threads_do() {
    let shop = Workshop::new();
    for index in 0..300 {
        shop.skill(&format!("group-{}/skill-{index:03}", index % 7));
        shop.skill(&format!("flat-{index:03}"));
    }
    shop.skill("group");
    shop.skill("group-0/a-b");
    shop.skill("group-0/a/b");
    let scan = |threads| {
        let options = ScanOptions {
            threads: NonZeroUsize::new(threads).unwrap(),
            ..ScanOptions::default()
        };
        let catalog = Repository::open(vec![shop.source()], options).catalog();
        catalog
            .skills()
            .map(|entry| entry.path().to_owned())
            .collect::<Vec<_>>()
    };
    let one = scan(1);
    assert_eq!(one.len(), 603);
    // `Path` compares component for component.
    assert!(one.is_sorted());
    for threads in [2, 3, 8] {
        assert_eq!(scan(threads), one);
    }
}

#[test]
fn the_number_of_directories_is_bounded_and_said() {
    let shop = Workshop::new();
    for index in 0..20 {
        shop.skill(&format!("skill-{index:02}"));
    }
    for threads in [1, 4] {
        let options = ScanOptions {
            max_directories: 11,
            threads: NonZeroUsize::new(threads).unwrap(),
            ..ScanOptions::default()
        };
        let catalog = Repository::open(vec![shop.source()], options).catalog();
        // The source's own directory is one of the eleven.
        assert_eq!(catalog.len(), 10);
        assert!(catalog.get("skill-09").is_some());
        assert_findings(&catalog, &shop.root(), &[("directory_limit", "")]);
    }
}

#[test]
fn linked_skill_directories_and_collections_work() {
    let shop = Workshop::new();
    let elsewhere = shop.outside().join("elsewhere");
    for name in ["one", "two"] {
        fs::create_dir_all(elsewhere.join("collection").join(name)).unwrap();
        let text = skill_md(name, "Linked.");
        fs::write(elsewhere.join("collection").join(name).join("SKILL.md"), text).unwrap();
    }
    symlink(elsewhere.join("collection/one"), shop.path("one")).unwrap();
    symlink(elsewhere.join("collection"), shop.path("pack")).unwrap();
    symlink("/etc/hostname", shop.path("a-file")).unwrap();
    let catalog = shop.scan();
    assert_eq!(names(&catalog), ["one", "two"]);
    assert_eq!(catalog.get("two").unwrap().path(), shop.path("pack/two/SKILL.md"));
    // The same skill by two paths of one source: the later path wins, and it is said.
    assert_eq!(catalog.get("one").unwrap().path(), shop.path("pack/one/SKILL.md"));
    assert_findings(&catalog, &shop.root(), &[("duplicate_name", "one/SKILL.md")]);
}

#[test]
fn a_linked_source_shows_the_path_that_was_given() {
    let shop = Workshop::new();
    shop.skill("one");
    let link = shop.outside().join("link");
    symlink(shop.root(), &link).unwrap();
    let catalog = Repository::open(vec![directory(&link)], ScanOptions::default()).catalog();
    assert_eq!(catalog.get("one").unwrap().path(), link.join("one/SKILL.md"));
}

#[test]
fn paths_that_are_not_utf8_survive() {
    let shop = Workshop::new();
    let dir = shop.root().join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir_all(dir.join("scripts")).unwrap();
    fs::write(dir.join("SKILL.md"), skill_md("cafe", "Odd path.")).unwrap();
    fs::write(dir.join("scripts").join(OsStr::from_bytes(b"\xff.py")), "").unwrap();
    let catalog = shop.scan();
    let entry = catalog.get("cafe").unwrap();
    assert_eq!(entry.dir(), dir);
    let skill = entry.open().unwrap();
    assert!(skill.instructions().is_ok());
    assert_eq!(skill.resources().unwrap()[0].path.as_bytes(), b"scripts/\xff.py");
    assert!(skill.digest().is_ok());
    // A finding about such a path still becomes JSON.
    assert_eq!(catalog.diagnostics().len(), 1, "the name differs from the directory's");
    assert!(
        serde_json::to_string(catalog.diagnostics())
            .unwrap()
            .contains("caf\u{fffd}")
    );
}

#[test]
fn a_relative_source_is_shown_absolute() {
    let catalog = Repository::open(vec![directory("../../skills/csv-report")], ScanOptions::default()).catalog();
    let entry = catalog.get("csv-report").unwrap();
    assert!(entry.path().is_absolute() && entry.open().is_ok(), "{:?}", entry.path());
    assert_eq!(entry.source_label(), "../../skills/csv-report");
}
