use skillbox_model::RelPath;
use skillbox_repository::{ResourceKind, SkillDir, SkillReadError};

use crate::skill_fixture::{SkillFixture, skill_md};

fn rel(path: &str) -> RelPath {
    RelPath::parse(path).unwrap()
}

#[test]
fn resources_are_first_level_files_by_kind() {
    let fixture = SkillFixture::new();
    fixture.write_skill("full");
    for file in [
        "full/scripts/run.py",
        "full/scripts/b/deep.py",
        "full/references/guide.md",
        "full/assets/logo.svg",
        "full/temp/ignored.txt",
        "full/template.md",
        "full/LICENSE.txt",
    ] {
        fixture.write_file(file, "x");
    }
    let skill = fixture.scan().get("full").unwrap().open().unwrap();
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
fn a_skill_without_other_files_has_no_resources() {
    let fixture = SkillFixture::new();
    fixture.write_skill("bare");
    let skill = fixture.scan().get("bare").unwrap().open().unwrap();
    assert!(skill.resources().unwrap().is_empty());
    assert!(skill.docs().unwrap().is_empty());
    assert!(skill.check().unwrap().is_empty());
}

#[test]
fn docs_are_text_files_at_any_depth_except_skill_md() {
    let fixture = SkillFixture::new();
    fixture.write_skill("docs");
    for file in [
        "docs/b.txt",
        "docs/a/deep/down/GUIDE.MD",
        "docs/references/r.md",
        "docs/references/SKILL.md.bak",
        "docs/script.py",
        "docs/zz/SKILL.md",
    ] {
        fixture.write_file(file, "x");
    }
    let skill = fixture.scan().get("docs").unwrap().open().unwrap();
    let docs: Vec<_> = skill.docs().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(
        docs,
        ["a/deep/down/GUIDE.MD", "b.txt", "references/r.md", "zz/SKILL.md"]
    );
}

#[test]
fn instructions_have_the_whole_text_and_the_body() {
    let fixture = SkillFixture::new();
    let text = skill_md("one", "Text.");
    fixture.write_file("one/SKILL.md", &text);
    let skill = SkillDir::open(&fixture.path("one")).unwrap();
    let instructions = skill.read_skill_md().unwrap();
    assert_eq!(instructions.whole, text);
    assert_eq!(instructions.body, "\n# one\n\nDo it.\n");
}

#[test]
fn reads_are_limited_and_report_errors() {
    let fixture = SkillFixture::new();
    fixture.write_skill("one");
    fixture.write_file("one/ten.bin", [7; 10]);
    let late = [skill_md("late", "x").as_bytes(), &b"y".repeat(100_000), b"\xff"].concat();
    fixture.write_file("late/SKILL.md", late);
    let catalog = fixture.scan();
    let skill = catalog.get("one").unwrap().open().unwrap();
    assert_eq!(skill.read_file(&rel("ten.bin"), 10).unwrap(), [7; 10]);
    let error = skill.read_file(&rel("ten.bin"), 9).unwrap_err();
    assert!(
        matches!(error, SkillReadError::TooLarge { size: 10, limit: 9, .. }),
        "{error}"
    );
    let file = skill.open_file(&rel("ten.bin")).unwrap();
    let mut buffer = [0; 4];
    assert_eq!((file.size(), file.read_at(&mut buffer, 8).unwrap()), (10, 2));
    // The scan reads only the frontmatter, so an invalid body is an error when it is read.
    let error = catalog
        .get("late")
        .unwrap()
        .open()
        .unwrap()
        .read_skill_md()
        .unwrap_err();
    assert!(matches!(error, SkillReadError::NotUtf8 { .. }), "{error}");
    assert!(matches!(
        SkillDir::open(&fixture.path("none")).unwrap_err(),
        SkillReadError::Io { .. }
    ));
}

#[test]
fn a_handle_refers_to_the_directory_that_was_opened() {
    let fixture = SkillFixture::new();
    fixture.write_skill("one");
    fixture.write_file("one/doc.md", "old");
    let skill = SkillDir::open(&fixture.path("one")).unwrap();
    std::fs::rename(fixture.path("one"), fixture.path("moved")).unwrap();
    fixture.write_skill("one");
    fixture.write_file("one/doc.md", "new");
    assert_eq!(skill.read_file(&rel("doc.md"), 9).unwrap(), b"old");
}

#[test]
fn checks_cover_the_body_and_the_names() {
    let fixture = SkillFixture::new();
    let lines = "A line of the instructions that goes on for a while.\n".repeat(501);
    fixture.write_file("long/SKILL.md", skill_md("long", "Long.") + &lines);
    fixture.write_file("long/out/x.txt", "");
    fixture.write_file("long/inputs", "");
    fixture.write_file("long/references/a/deep.md", "");
    fixture.write_file("long/references/fine.md", "");
    let catalog = fixture.scan();
    assert!(catalog.diagnostics().is_empty(), "a scan must not read bodies");
    let diagnostics = catalog.get("long").unwrap().open().unwrap().check().unwrap();
    let codes: Vec<_> = diagnostics
        .iter()
        .map(|it| {
            (
                it.code,
                it.path.strip_prefix(fixture.path("long")).unwrap().to_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        codes,
        [
            ("long_body", "SKILL.md"),
            ("hidden_by_workspace", "inputs"),
            ("hidden_by_workspace", "out"),
            ("deep_reference", "references/a/deep.md"),
        ]
    );
}
