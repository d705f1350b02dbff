use skillbox_model::RelPath;
use skillbox_repository::{ResourceKind, SkillDir, SkillReadError};

use crate::workshop::{Workshop, skill_md};

fn rel(path: &str) -> RelPath {
    RelPath::parse(path).unwrap()
}

#[test]
fn resources_are_the_first_level_by_kind() {
    let shop = Workshop::new();
    shop.skill("full");
    for file in [
        "full/scripts/run.py",
        "full/scripts/b/deep.py",
        "full/references/guide.md",
        "full/assets/logo.svg",
        "full/temp/ignored.txt",
        "full/template.md",
        "full/LICENSE.txt",
    ] {
        shop.file(file, "x");
    }
    let skill = shop.scan().get("full").unwrap().open().unwrap();
    let found: Vec<_> = skill.resources().unwrap();
    let found: Vec<_> = found.iter().map(|it| (it.kind, it.path.to_str().unwrap())).collect();
    assert_eq!(
        found,
        [
            (ResourceKind::Script, "scripts/run.py"),
            (ResourceKind::Reference, "references/guide.md"),
            (ResourceKind::Asset, "assets/logo.svg"),
            (ResourceKind::Other, "LICENSE.txt"),
            (ResourceKind::Other, "template.md"),
        ]
    );
}

#[test]
fn a_skill_with_nothing_else_has_no_resources() {
    let shop = Workshop::new();
    shop.skill("bare");
    let skill = shop.scan().get("bare").unwrap().open().unwrap();
    assert!(skill.resources().unwrap().is_empty());
    assert!(skill.docs().unwrap().is_empty());
    assert!(skill.advice().unwrap().is_empty());
}

#[test]
fn docs_are_texts_at_any_depth_but_the_skill_md() {
    let shop = Workshop::new();
    shop.skill("docs");
    for file in [
        "docs/b.txt",
        "docs/a/deep/down/GUIDE.MD",
        "docs/references/r.md",
        "docs/references/SKILL.md.bak",
        "docs/script.py",
        "docs/zz/SKILL.md",
    ] {
        shop.file(file, "x");
    }
    let skill = shop.scan().get("docs").unwrap().open().unwrap();
    let docs: Vec<_> = skill.docs().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(
        docs,
        ["a/deep/down/GUIDE.MD", "b.txt", "references/r.md", "zz/SKILL.md"]
    );
}

#[test]
fn instructions_come_whole_and_as_body() {
    let shop = Workshop::new();
    let text = skill_md("one", "Text.");
    shop.file("one/SKILL.md", &text);
    let skill = SkillDir::open(&shop.path("one")).unwrap();
    let instructions = skill.instructions().unwrap();
    assert_eq!(instructions.whole, text);
    assert_eq!(instructions.body, "\n# one\n\nDo it.\n");
}

#[test]
fn reading_obeys_the_limit_and_says_what_is_wrong() {
    let shop = Workshop::new();
    shop.skill("one");
    shop.file("one/ten.bin", [7; 10]);
    let late = [skill_md("late", "x").as_bytes(), &b"y".repeat(100_000), b"\xff"].concat();
    shop.file("late/SKILL.md", late);
    let catalog = shop.scan();
    let skill = catalog.get("one").unwrap().open().unwrap();
    assert_eq!(skill.read(&rel("ten.bin"), 10).unwrap(), [7; 10]);
    let error = skill.read(&rel("ten.bin"), 9).unwrap_err();
    assert!(
        matches!(error, SkillReadError::TooLarge { size: 10, limit: 9, .. }),
        "{error}"
    );
    let file = skill.open_file(&rel("ten.bin")).unwrap();
    let mut piece = [0; 4];
    assert_eq!((file.size(), file.read_at(&mut piece, 8).unwrap()), (10, 2));
    // The scan reads only the head, so a body that is not text shows when it is loaded.
    let error = catalog.get("late").unwrap().open().unwrap().instructions().unwrap_err();
    assert!(matches!(error, SkillReadError::NotUtf8 { .. }), "{error}");
    assert!(matches!(
        SkillDir::open(&shop.path("none")).unwrap_err(),
        SkillReadError::Io { .. }
    ));
}

#[test]
fn a_handle_stays_on_the_directory_that_was_opened() {
    let shop = Workshop::new();
    shop.skill("one");
    shop.file("one/doc.md", "old");
    let skill = SkillDir::open(&shop.path("one")).unwrap();
    std::fs::rename(shop.path("one"), shop.path("moved")).unwrap();
    shop.skill("one");
    shop.file("one/doc.md", "new");
    assert_eq!(skill.read(&rel("doc.md"), 9).unwrap(), b"old");
}

#[test]
fn advice_is_given_about_the_body_and_the_names() {
    let shop = Workshop::new();
    let lines = "A line of the instructions that goes on for a while.\n".repeat(501);
    shop.file("long/SKILL.md", skill_md("long", "Long.") + &lines);
    shop.file("long/out/x.txt", "");
    shop.file("long/inputs", "");
    shop.file("long/references/a/deep.md", "");
    shop.file("long/references/fine.md", "");
    let catalog = shop.scan();
    assert!(catalog.diagnostics().is_empty(), "the scan does not read bodies");
    let advice = catalog.get("long").unwrap().open().unwrap().advice().unwrap();
    let told: Vec<_> = advice
        .iter()
        .map(|it| {
            (
                it.code,
                it.path.strip_prefix(shop.path("long")).unwrap().to_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("long_body", "SKILL.md"),
            ("hidden_by_workspace", "inputs"),
            ("hidden_by_workspace", "out"),
            ("deep_reference", "references/a/deep.md"),
        ]
    );
}
