use skillbox_repository::{BUILT_IN_SKILLS, Repository, ScanOptions, Scope, Source};

use crate::skill_fixture::{SkillFixture, assert_diagnostics, directory_source, names, skill_md};

#[test]
fn the_later_source_takes_precedence_and_the_other_is_listed() {
    let (user, project) = (SkillFixture::new(), SkillFixture::new());
    user.write_file("same/SKILL.md", skill_md("same", "The user's."));
    user.write_skill("only-user");
    project.write_file("same/SKILL.md", skill_md("same", "The project's."));
    project.write_skill("also-project");
    let sources = vec![
        Source::Directory {
            path: user.root(),
            scope: Scope::User,
        },
        project.source(),
    ];
    let catalog = Repository::open(sources, ScanOptions::default()).catalog();
    assert_eq!(names(&catalog), ["only-user", "also-project", "same"]);
    let same = catalog.get("same").unwrap();
    assert_eq!(
        (&*same.meta.description, same.scope()),
        ("The project's.", Scope::Project)
    );
    let [shadowed] = catalog.shadowed() else {
        panic!("{:?}", catalog.shadowed())
    };
    assert_eq!(shadowed.path, user.path("same/SKILL.md"));
    assert_eq!(&*shadowed.source, user.root().to_str().unwrap());
    assert_eq!(shadowed.scope, Scope::User);
    assert_eq!(shadowed.by_path, project.path("same/SKILL.md"));
    assert_eq!(&*shadowed.by_source, project.root().to_str().unwrap());
    // Overriding a skill of another source needs no diagnostic.
    assert!(catalog.diagnostics().is_empty());
}

#[test]
fn the_last_of_many_sources_takes_precedence() {
    let fixtures: Vec<SkillFixture> = (0..4).map(|_| SkillFixture::new()).collect();
    for (index, fixture) in fixtures.iter().enumerate() {
        fixture.write_file(
            "csv-report/SKILL.md",
            skill_md("csv-report", &format!("Number {index}.")),
        );
        fixture.write_skill(&format!("own-{index}"));
    }
    let mut sources = vec![Source::Embedded(&BUILT_IN_SKILLS)];
    sources.extend(fixtures.iter().map(SkillFixture::source));
    let catalog = Repository::open(sources, ScanOptions::default()).catalog();
    assert_eq!(&*catalog.get("csv-report").unwrap().meta.description, "Number 3.");
    assert_eq!(catalog.shadowed().len(), 4);
    assert_eq!(&*catalog.shadowed()[0].source, "built-in");
    assert_eq!(catalog.shadowed()[0].scope, Scope::BuiltIn);
    for shadowed in catalog.shadowed() {
        assert_eq!(shadowed.by_path, fixtures[3].path("csv-report/SKILL.md"));
    }
    for index in 0..4 {
        assert!(
            catalog.get(&format!("own-{index}")).is_some(),
            "own-{index} is not found after shadowed entries were removed"
        );
    }
    assert_eq!(names(&catalog).iter().filter(|name| **name == "csv-report").count(), 1);
}

#[test]
fn a_duplicate_name_in_one_source_is_reported() {
    let fixture = SkillFixture::new();
    fixture.write_file("a/SKILL.md", skill_md("twin", "First."));
    fixture.write_file("b/SKILL.md", skill_md("twin", "Second."));
    let catalog = fixture.scan();
    assert_eq!(&*catalog.get("twin").unwrap().meta.description, "Second.");
    let codes: Vec<_> = catalog.diagnostics().iter().map(|it| it.code).collect();
    assert_eq!(codes, ["name_mismatch", "name_mismatch", "duplicate_name"]);
    assert_eq!(catalog.shadowed().len(), 1);
    assert_eq!(catalog.shadowed()[0].path, fixture.path("a/SKILL.md"));
}

#[test]
fn a_missing_source_is_reported_unless_it_is_optional() {
    let fixture = SkillFixture::new();
    fixture.write_skill("good");
    let missing = fixture.outside().join("missing");
    let file = fixture.write_file("good/notes.txt", "");
    let sources = vec![
        directory_source(&missing),
        Source::OptionalDirectory {
            path: fixture.outside().join("optional"),
            scope: Scope::User,
        },
        directory_source(&file),
        fixture.source(),
    ];
    let catalog = Repository::open(sources, ScanOptions::default()).catalog();
    assert_eq!(names(&catalog), ["good"]);
    assert_diagnostics(
        &catalog,
        fixture.outside(),
        &[
            ("source_missing", "missing"),
            ("source_not_a_directory", "skills/good/notes.txt"),
        ],
    );
}
