use std::fs;
use std::os::unix::fs::symlink;

use skillbox_repository::{Repository, ScanOptions, Severity};

use crate::refresh::names_in;
use crate::skill_fixture::{SkillFixture, assert_diagnostics, names, skill_md};

#[test]
fn a_nested_skill_is_a_skill_of_its_own() {
    let fixture = SkillFixture::new();
    fixture.write_skill("outer");
    fixture.write_skill("outer/inner");
    fixture.write_skill("outer/templates/deep/second");
    fixture.write_file("outer/other/skill.md", "whatever");
    fixture.write_skill("outer/node_modules/package");
    fixture.write_file("outer/scripts/run.py", "");
    fixture.write_file("outer/inner/SKILL.md", skill_md("Inner", "Breaks a rule."));
    fixture.write_skill("beside");
    let catalog = fixture.scan();
    assert_eq!(names(&catalog), ["beside", "outer", "Inner", "second"]);
    assert_diagnostics(
        &catalog,
        &fixture.root(),
        &[
            ("nested_skill", "outer/inner/SKILL.md"),
            ("name_breaks_rules", "outer/inner/SKILL.md"),
            ("name_mismatch", "outer/inner/SKILL.md"),
            ("nested_skill", "outer/other/skill.md"),
            ("no_frontmatter", "outer/other/skill.md"),
            ("nested_skill", "outer/templates/deep/second/SKILL.md"),
        ],
    );
    let nested = catalog.diagnostics().iter().filter(|it| it.code == "nested_skill");
    for diagnostic in nested {
        assert_eq!(diagnostic.severity, Severity::Info);
        let outer = fixture.path("outer");
        assert!(diagnostic.message.contains(outer.to_str().unwrap()), "{diagnostic:?}");
    }
    let codes = |name: &str| {
        let entry = catalog.get(name).unwrap();
        catalog.diagnostics_of(entry).map(|it| it.code).collect::<Vec<_>>()
    };
    // The outer skill lists which skills it contains, but not their other diagnostics.
    assert_eq!(
        codes("outer"),
        ["nested_skill", "nested_skill", "no_frontmatter", "nested_skill"]
    );
    assert_eq!(codes("second"), ["nested_skill"]);
    assert!(codes("beside").is_empty());
}

#[test]
fn the_outer_skill_contains_the_files_of_the_nested_one() {
    let fixture = SkillFixture::new();
    fixture.write_skill("outer");
    fixture.write_skill("outer/parts/inner");
    fixture.write_file("outer/parts/inner/notes.md", "Notes.");
    let catalog = fixture.scan();
    let outer = catalog.get("outer").unwrap().open().unwrap();
    let paths: Vec<String> = outer.docs().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(paths, ["parts/inner/SKILL.md", "parts/inner/notes.md"]);
    let before = outer.digest().unwrap();
    fixture.write_file("outer/parts/inner/notes.md", "Changed.");
    assert_ne!(outer.digest().unwrap(), before);
    let inner = catalog.get("inner").unwrap();
    assert_eq!(inner.dir_in_source(), "outer/parts/inner");
    assert_eq!(inner.open().unwrap().docs().unwrap().len(), 1);
}

#[test]
fn skills_below_a_broken_skill_are_loaded() {
    let fixture = SkillFixture::new();
    fixture.write_file("SKILL.md", "no frontmatter");
    fixture.write_skill("below");
    let catalog = fixture.scan();
    assert_eq!(names(&catalog), ["below"]);
    assert_diagnostics(
        &catalog,
        &fixture.root(),
        &[("no_frontmatter", "SKILL.md"), ("nested_skill", "below/SKILL.md")],
    );
}

#[test]
fn links_inside_a_skill_are_not_followed() {
    let fixture = SkillFixture::new();
    fixture.write_skill("outer/inner");
    fixture.write_skill("outer");
    let elsewhere = fixture.outside().join("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    fs::write(elsewhere.join("SKILL.md"), skill_md("elsewhere", "Outside.")).unwrap();
    symlink(&elsewhere, fixture.path("outer/linked")).unwrap();
    symlink("..", fixture.path("outer/inner/up")).unwrap();
    symlink(&elsewhere, fixture.path("outer/inner/linked")).unwrap();
    let catalog = fixture.scan();
    assert_eq!(names(&catalog), ["outer", "inner"]);
    assert_diagnostics(&catalog, &fixture.root(), &[("nested_skill", "outer/inner/SKILL.md")]);
    // The control: beside the skill, the same link is followed.
    symlink(&elsewhere, fixture.path("linked")).unwrap();
    assert_eq!(names(&fixture.scan()), ["elsewhere", "outer", "inner"]);
}

#[test]
fn the_depth_limit_applies_inside_skills_without_a_diagnostic() {
    let fixture = SkillFixture::new();
    fixture.write_skill("outer");
    fixture.write_skill("outer/2/3/4/5/six");
    fixture.write_skill("outer/2/3/4/5/6/seven");
    let catalog = fixture.scan();
    assert_eq!(names(&catalog), ["outer", "six"]);
    assert_diagnostics(
        &catalog,
        &fixture.root(),
        &[("nested_skill", "outer/2/3/4/5/six/SKILL.md")],
    );
}

#[test]
fn a_refresh_finds_nested_skills_that_are_added_and_removed() {
    let fixture = SkillFixture::new();
    fixture.write_skill("outer");
    fixture.write_file("outer/scripts/run.py", "");
    let repository = fixture.open();
    fixture.write_skill("outer/inner");
    assert_eq!(names_in(&repository.refresh())[0], ["inner"]);
    fixture.write_skill("outer/scripts/second");
    assert_eq!(names_in(&repository.refresh())[0], ["second"]);
    let codes: Vec<_> = repository.catalog().diagnostics().iter().map(|it| it.code).collect();
    assert_eq!(codes, ["nested_skill", "nested_skill"]);
    // Without the outer SKILL.md, the inner skills are no longer nested.
    fs::remove_file(fixture.path("outer/SKILL.md")).unwrap();
    assert_eq!(names_in(&repository.refresh())[2], ["outer"]);
    assert!(repository.catalog().diagnostics().is_empty());
    fs::remove_dir_all(fixture.path("outer/inner")).unwrap();
    assert_eq!(names_in(&repository.refresh())[2], ["inner"]);
    assert_eq!(names(&repository.catalog()), ["second"]);
}

#[test]
fn a_skill_that_did_not_load_has_a_reason() {
    let fixture = SkillFixture::new();
    fixture.write_file("broken/SKILL.md", "---\nname: other-name\ndescription: [\n---\n");
    fixture.write_file("plain/SKILL.md", "# Plain\n\nDoes things\nwell.\n\nMore.\n");
    fixture.write_file("nameless/SKILL.md", "---\ndescription: Has one.\n---\n");
    fixture.write_file("empty/SKILL.md", "");
    fixture.write_skill("good");
    let catalog = fixture.scan();
    assert_eq!(names(&catalog), ["good"]);
    for (name, code, line) in [
        ("broken", "invalid_yaml", 3),
        ("other-name", "invalid_yaml", 3),
        ("plain", "no_frontmatter", 1),
        ("nameless", "missing_name", 2),
    ] {
        let reason = catalog.why_not_loaded(name).unwrap();
        assert_eq!((reason.code, reason.line), (code, Some(line)), "{name}: {reason:?}");
        assert!(reason.path.ends_with("SKILL.md"), "{reason:?}");
    }
    assert!(catalog.why_not_loaded("good").is_none());
    assert!(catalog.why_not_loaded("absent").is_none());
    assert_eq!(catalog.loadable_with_fallback(), 2);
}

#[test]
fn the_metadata_fallback_uses_the_directory_and_the_body() {
    let fixture = SkillFixture::new();
    fixture.write_file("plain/SKILL.md", "# Plain\n\nDoes things\nwell.\n\nMore.\n");
    fixture.write_file("nameless/SKILL.md", "---\ndescription: Has one.\n---\n");
    fixture.write_file(
        "undescribed/SKILL.md",
        "---\nname: undescribed\nlicense: MIT\n---\n\nThe body.\n",
    );
    fixture.write_file("empty/SKILL.md", "");
    fixture.write_file("broken/SKILL.md", "---\nname: [\n---\nText.\n");
    let options = ScanOptions {
        metadata_fallback: true,
        ..ScanOptions::default()
    };
    let repository = Repository::open(vec![fixture.source()], options);
    let catalog = repository.catalog();
    assert_eq!(names(&catalog), ["nameless", "plain", "undescribed"]);
    assert_eq!(&*catalog.get("plain").unwrap().meta.description, "Does things well.");
    assert_eq!(&*catalog.get("nameless").unwrap().meta.description, "Has one.");
    let undescribed = &catalog.get("undescribed").unwrap().meta;
    assert_eq!(
        (&*undescribed.description, undescribed.license.as_deref()),
        ("The body.", Some("MIT"))
    );
    assert_eq!(catalog.loadable_with_fallback(), 0);
    let fallbacks = catalog.diagnostics().iter().filter(|it| it.code == "metadata_fallback");
    assert_eq!(fallbacks.count(), 4);
    assert!(catalog.why_not_loaded("empty").is_some() && catalog.why_not_loaded("broken").is_some());
    // An edit of the body changes the description.
    fixture.write_file("undescribed/SKILL.md", "---\nname: undescribed\n---\n\nAnother body.\n");
    assert_eq!(names_in(&repository.refresh())[1], ["undescribed"]);
}
