use skillbox_repository::{BUILT_IN, Repository, ScanOptions, Scope, Source};

use crate::workshop::{Workshop, assert_findings, directory, names, skill_md};

#[test]
fn the_later_source_wins_and_the_earlier_stays_visible() {
    let (user, project) = (Workshop::new(), Workshop::new());
    user.file("same/SKILL.md", skill_md("same", "The user's."));
    user.skill("only-user");
    project.file("same/SKILL.md", skill_md("same", "The project's."));
    project.skill("also-project");
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
    // Overriding on purpose is nothing odd.
    assert!(catalog.diagnostics().is_empty());
}

#[test]
fn of_many_sources_the_last_wins_over_all() {
    let shops: Vec<Workshop> = (0..4).map(|_| Workshop::new()).collect();
    for (index, shop) in shops.iter().enumerate() {
        shop.file(
            "csv-report/SKILL.md",
            skill_md("csv-report", &format!("Number {index}.")),
        );
        shop.skill(&format!("own-{index}"));
    }
    let mut sources = vec![Source::Embedded(&BUILT_IN)];
    sources.extend(shops.iter().map(Workshop::source));
    let catalog = Repository::open(sources, ScanOptions::default()).catalog();
    assert_eq!(&*catalog.get("csv-report").unwrap().meta.description, "Number 3.");
    assert_eq!(catalog.shadowed().len(), 4);
    assert_eq!(&*catalog.shadowed()[0].source, "built-in");
    assert_eq!(catalog.shadowed()[0].scope, Scope::BuiltIn);
    for shadowed in catalog.shadowed() {
        assert_eq!(shadowed.by_path, shops[3].path("csv-report/SKILL.md"));
    }
    for index in 0..4 {
        assert!(
            catalog.get(&format!("own-{index}")).is_some(),
            "positions moved with the gaps"
        );
    }
    assert_eq!(names(&catalog).iter().filter(|name| **name == "csv-report").count(), 1);
}

#[test]
fn the_same_name_twice_in_one_source_is_odd() {
    let shop = Workshop::new();
    shop.file("a/SKILL.md", skill_md("twin", "First."));
    shop.file("b/SKILL.md", skill_md("twin", "Second."));
    let catalog = shop.scan();
    assert_eq!(&*catalog.get("twin").unwrap().meta.description, "Second.");
    let codes: Vec<_> = catalog.diagnostics().iter().map(|it| it.code).collect();
    assert_eq!(codes, ["name_mismatch", "name_mismatch", "duplicate_name"]);
    assert_eq!(catalog.shadowed().len(), 1);
    assert_eq!(catalog.shadowed()[0].path, shop.path("a/SKILL.md"));
}

#[test]
fn a_missing_source_is_told_unless_it_need_not_exist() {
    let shop = Workshop::new();
    shop.skill("good");
    let missing = shop.outside().join("missing");
    let file = shop.file("good/notes.txt", "");
    let sources = vec![
        directory(&missing),
        Source::OptionalDirectory {
            path: shop.outside().join("optional"),
            scope: Scope::User,
        },
        directory(&file),
        shop.source(),
    ];
    let catalog = Repository::open(sources, ScanOptions::default()).catalog();
    assert_eq!(names(&catalog), ["good"]);
    assert_findings(
        &catalog,
        shop.outside(),
        &[
            ("source_missing", "missing"),
            ("source_not_a_directory", "skills/good/notes.txt"),
        ],
    );
}
