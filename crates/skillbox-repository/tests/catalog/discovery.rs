use std::ffi::OsStr;
use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use skillbox_repository::{Repository, ScanOptions};

use crate::skill_fixture::{SkillFixture, assert_diagnostics, directory_source, names, skill_md};

#[test]
fn every_directory_with_a_skill_md_is_a_skill() {
    let fixture = SkillFixture::new();
    for name in ["alpha", "beta", "gamma"] {
        fixture.write_skill(name);
    }
    let catalog = fixture.scan();
    assert_eq!(names(&catalog), ["alpha", "beta", "gamma"]);
    assert_diagnostics(&catalog, &fixture.root(), &[]);
    let beta = catalog.get("beta").unwrap();
    assert_eq!(beta.skill_md_path(), fixture.path("beta/SKILL.md"));
    assert_eq!(beta.dir(), fixture.path("beta"));
    assert_eq!(beta.dir_in_source(), "beta");
    assert_eq!(&*beta.meta.description, "About beta.");
    assert_eq!(beta.source_label(), fixture.root().to_str().unwrap());
    assert!(catalog.get("delta").is_none());
}

#[test]
fn an_empty_source_has_an_empty_catalog() {
    let fixture = SkillFixture::new();
    let catalog = fixture.scan();
    assert!(catalog.is_empty());
    assert_eq!(catalog.len(), 0);
    assert_diagnostics(&catalog, &fixture.root(), &[]);
}

#[test]
fn other_files_and_directories_are_ignored() {
    let fixture = SkillFixture::new();
    fixture.write_skill("real");
    fixture.write_file("real/helper.py", "");
    fixture.write_file("real/other.md", skill_md("other", "No skill file."));
    fixture.write_file("notes/README.md", "nothing here");
    fixture.write_file("Skill.md", skill_md("third-casing", "Not a skill file's name."));
    let catalog = fixture.scan();
    assert_eq!(names(&catalog), ["real"]);
    assert_diagnostics(&catalog, &fixture.root(), &[]);
}

#[test]
fn the_directory_of_a_skill_can_be_a_source() {
    let fixture = SkillFixture::new();
    fixture.write_skill("only");
    for path in [fixture.path("only"), fixture.path("only/")] {
        let catalog = Repository::open(vec![directory_source(path)], ScanOptions::default()).catalog();
        assert_eq!(names(&catalog), ["only"]);
        let entry = catalog.get("only").unwrap();
        assert_eq!(entry.skill_md_path(), fixture.path("only/SKILL.md"));
        assert_eq!(entry.dir_in_source(), "");
    }
}

#[test]
fn lower_case_skill_md_is_used_if_the_other_is_missing() {
    let fixture = SkillFixture::new();
    fixture.write_file("both/SKILL.md", skill_md("both", "The first."));
    fixture.write_file("both/skill.md", skill_md("both", "The second."));
    fixture.write_file("lower/skill.md", skill_md("lower", "Alone."));
    let catalog = fixture.scan();
    assert_eq!(&*catalog.get("both").unwrap().meta.description, "The first.");
    let lower = catalog.get("lower").unwrap();
    assert_eq!(lower.skill_md_path(), fixture.path("lower/skill.md"));
    assert_eq!(
        lower.open().unwrap().read_skill_md().unwrap().body,
        "\n# lower\n\nDo it.\n"
    );
    assert!(lower.open().unwrap().resources().unwrap().is_empty());
}

#[test]
fn six_levels_are_scanned_and_the_seventh_is_reported() {
    let fixture = SkillFixture::new();
    fixture.write_skill("1/2/3/4/5/six");
    fixture.write_skill("1/2/3/4/5/6/seven");
    fixture.write_skill("a/b/c/d/e/f/seven-too");
    let catalog = fixture.scan();
    assert_eq!(names(&catalog), ["six"]);
    assert_diagnostics(&catalog, &fixture.root(), &[("depth_limit", "1/2/3/4/5/6")]);
    assert!(
        catalog.diagnostics()[0].message.contains("1 more"),
        "{:?}",
        catalog.diagnostics()
    );
}

#[test]
fn version_control_packages_and_caches_are_skipped() {
    let fixture = SkillFixture::new();
    for skipped in [".git", "node_modules", ".venv", "__pycache__"] {
        fixture.write_skill(&format!("{skipped}/inside"));
        fixture.write_skill(&format!("group/{skipped}/inside"));
    }
    fixture.write_skill(".hidden/found");
    let catalog = fixture.scan();
    assert_eq!(names(&catalog), ["found"]);
    assert_diagnostics(&catalog, &fixture.root(), &[]);
}

#[test]
fn the_order_does_not_depend_on_the_number_of_threads() {
    let fixture = SkillFixture::new();
    for index in 0..300 {
        fixture.write_skill(&format!("group-{}/skill-{index:03}", index % 7));
        fixture.write_skill(&format!("flat-{index:03}"));
    }
    fixture.write_skill("group");
    fixture.write_skill("group-0/a-b");
    fixture.write_skill("group-0/a/b");
    let scan = |threads| {
        let options = ScanOptions {
            threads: NonZeroUsize::new(threads).unwrap(),
            ..ScanOptions::default()
        };
        let catalog = Repository::open(vec![fixture.source()], options).catalog();
        catalog
            .skills()
            .map(|entry| entry.skill_md_path().to_owned())
            .collect::<Vec<_>>()
    };
    let one = scan(1);
    assert_eq!(one.len(), 603);
    // `Path` compares component by component.
    assert!(one.is_sorted());
    for threads in [2, 3, 8] {
        assert_eq!(scan(threads), one);
    }
}

#[test]
fn the_number_of_directories_is_limited_and_reported() {
    let fixture = SkillFixture::new();
    for index in 0..20 {
        fixture.write_skill(&format!("skill-{index:02}"));
    }
    for threads in [1, 4] {
        let options = ScanOptions {
            max_directories: 11,
            threads: NonZeroUsize::new(threads).unwrap(),
            ..ScanOptions::default()
        };
        let catalog = Repository::open(vec![fixture.source()], options).catalog();
        // The directory of the source is one of the eleven.
        assert_eq!(catalog.len(), 10);
        assert!(catalog.get("skill-09").is_some());
        assert_diagnostics(&catalog, &fixture.root(), &[("directory_limit", "")]);
    }
}

#[test]
fn linked_skills_and_groups_are_followed() {
    let fixture = SkillFixture::new();
    let elsewhere = fixture.outside().join("elsewhere");
    for name in ["one", "two"] {
        fs::create_dir_all(elsewhere.join("collection").join(name)).unwrap();
        let text = skill_md(name, "Linked.");
        fs::write(elsewhere.join("collection").join(name).join("SKILL.md"), text).unwrap();
    }
    symlink(elsewhere.join("collection/one"), fixture.path("one")).unwrap();
    symlink(elsewhere.join("collection"), fixture.path("pack")).unwrap();
    symlink("/etc/hostname", fixture.path("a-file")).unwrap();
    let catalog = fixture.scan();
    assert_eq!(names(&catalog), ["one", "two"]);
    assert_eq!(
        catalog.get("two").unwrap().skill_md_path(),
        fixture.path("pack/two/SKILL.md")
    );
    // One source has the same skill at two paths: the later path is used, and the other is reported.
    assert_eq!(
        catalog.get("one").unwrap().skill_md_path(),
        fixture.path("pack/one/SKILL.md")
    );
    assert_diagnostics(&catalog, &fixture.root(), &[("duplicate_name", "one/SKILL.md")]);
}

#[test]
fn a_linked_source_keeps_the_given_path() {
    let fixture = SkillFixture::new();
    fixture.write_skill("one");
    let link = fixture.outside().join("link");
    symlink(fixture.root(), &link).unwrap();
    let catalog = Repository::open(vec![directory_source(&link)], ScanOptions::default()).catalog();
    assert_eq!(catalog.get("one").unwrap().skill_md_path(), link.join("one/SKILL.md"));
}

#[test]
fn paths_that_are_not_utf8_are_supported() {
    let fixture = SkillFixture::new();
    let dir = fixture.root().join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir_all(dir.join("scripts")).unwrap();
    fs::write(dir.join("SKILL.md"), skill_md("cafe", "Odd path.")).unwrap();
    fs::write(dir.join("scripts").join(OsStr::from_bytes(b"\xff.py")), "").unwrap();
    let catalog = fixture.scan();
    let entry = catalog.get("cafe").unwrap();
    assert_eq!(entry.dir(), dir);
    let skill = entry.open().unwrap();
    assert!(skill.read_skill_md().is_ok());
    assert_eq!(skill.resources().unwrap()[0].path.as_bytes(), b"scripts/\xff.py");
    assert!(skill.digest().is_ok());
    // A diagnostic about such a path can be serialized.
    assert_eq!(
        catalog.diagnostics().len(),
        1,
        "the name differs from the directory name"
    );
    assert!(
        serde_json::to_string(catalog.diagnostics())
            .unwrap()
            .contains("caf\u{fffd}")
    );
}

#[test]
fn paths_in_a_relative_source_are_absolute() {
    let catalog = Repository::open(
        vec![directory_source("../../skills/csv-report")],
        ScanOptions::default(),
    )
    .catalog();
    let entry = catalog.get("csv-report").unwrap();
    assert!(
        entry.skill_md_path().is_absolute() && entry.open().is_ok(),
        "{:?}",
        entry.skill_md_path()
    );
    assert_eq!(entry.source_label(), "../../skills/csv-report");
}
