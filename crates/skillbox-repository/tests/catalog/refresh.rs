use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::SystemTime;

use proptest::prelude::*;
use skillbox_repository::{Catalog, CatalogChange, Repository, ScanOptions, Scope, Source};

use crate::skill_fixture::{SkillFixture, names, skill_md};

/// The added, changed and removed names of a change.
pub fn names_in(change: &CatalogChange) -> [Vec<&str>; 3] {
    [&change.added, &change.changed, &change.removed].map(|list| list.iter().map(|name| name.as_str()).collect())
}

#[test]
fn without_changes_a_refresh_is_empty() {
    let fixture = SkillFixture::new();
    fixture.write_skill("one");
    let repository = fixture.open();
    assert!(repository.refresh().is_empty());
    assert!(repository.refresh().is_empty());
}

#[test]
fn added_edited_and_removed_skills_are_distinguished() {
    let fixture = SkillFixture::new();
    for name in ["edited", "removed", "same"] {
        fixture.write_skill(name);
    }
    let repository = fixture.open();
    let before = repository.catalog();
    fixture.write_file("edited/SKILL.md", skill_md("edited", "New words."));
    fs::remove_dir_all(fixture.path("removed")).unwrap();
    fixture.write_skill("group/added");
    let change = repository.refresh();
    assert_eq!(names_in(&change), [vec!["added"], vec!["edited"], vec!["removed"]]);
    let after = repository.catalog();
    assert_eq!(names(&after), ["edited", "added", "same"]);
    assert_eq!(&*after.get("edited").unwrap().meta.description, "New words.");
    // Both catalogs share the entry of an unchanged skill, and the old catalog does not change.
    assert!(Arc::ptr_eq(
        before.get_shared("same").unwrap(),
        after.get_shared("same").unwrap()
    ));
    assert_eq!(&*before.get("edited").unwrap().meta.description, "About edited.");
    assert_eq!(
        names_in(&CatalogChange::between(&after, &before)),
        [vec!["removed"], vec!["edited"], vec!["added"]]
    );
}

#[test]
fn edits_with_unchanged_size_and_time_are_detected() {
    let fixture = SkillFixture::new();
    let file = fixture.write_file("one/SKILL.md", skill_md("one", "aaaa"));
    let repository = fixture.open();
    let mtime = fs::metadata(&file).unwrap().modified().unwrap();
    // The size is the same, and the modification time is set back.
    fixture.write_file("one/SKILL.md", skill_md("one", "bbbb"));
    fs::File::open(&file).unwrap().set_modified(mtime).unwrap();
    assert_eq!(names_in(&repository.refresh())[1], ["one"]);
    assert_eq!(&*repository.catalog().get("one").unwrap().meta.description, "bbbb");
    // Another file gets the same name.
    let other = fixture.write_file("other", skill_md("one", "cccc"));
    fs::File::open(&other)
        .unwrap()
        .set_modified(SystemTime::UNIX_EPOCH)
        .unwrap();
    fs::rename(&other, &file).unwrap();
    repository.refresh();
    assert_eq!(&*repository.catalog().get("one").unwrap().meta.description, "cccc");
}

#[test]
fn edits_within_one_clock_tick_are_detected() {
    let fixture = SkillFixture::new();
    fixture.write_file("one/SKILL.md", skill_md("one", "0000"));
    let repository = fixture.open();
    for round in 1..200 {
        let text = format!("{round:04}");
        fixture.write_file("one/SKILL.md", skill_md("one", &text));
        repository.refresh();
        assert_eq!(&*repository.catalog().get("one").unwrap().meta.description, &*text);
    }
}

#[test]
fn a_touched_file_counts_as_changed_only_once() {
    let fixture = SkillFixture::new();
    let file = fixture.write_skill("one");
    let repository = fixture.open();
    fs::File::open(&file).unwrap().set_modified(SystemTime::now()).unwrap();
    assert_eq!(names_in(&repository.refresh())[1], ["one"]);
    assert!(repository.refresh().is_empty());
}

#[test]
fn repaired_and_broken_skills_are_detected() {
    let fixture = SkillFixture::new();
    fixture.write_file("one/SKILL.md", "broken");
    fixture.write_skill("two");
    let repository = fixture.open();
    assert_eq!(names(&repository.catalog()), ["two"]);
    fixture.write_skill("one");
    fixture.write_file("two/SKILL.md", "broken");
    assert_eq!(names_in(&repository.refresh()), [vec!["one"], vec![], vec!["two"]]);
    let codes: Vec<_> = repository.catalog().diagnostics().iter().map(|it| it.code).collect();
    assert_eq!(codes, ["no_frontmatter"]);
}

#[test]
fn a_changed_diagnostic_is_updated() {
    let fixture = SkillFixture::new();
    fixture.write_file("one/SKILL.md", "broken");
    let repository = fixture.open();
    fixture.write_file("one/SKILL.md", "---\nname: one\n---\n");
    assert!(repository.refresh().is_empty(), "no skill was added or removed");
    assert_eq!(repository.catalog().diagnostics()[0].code, "missing_description");
}

#[test]
fn a_directory_replaced_by_another_is_detected() {
    let fixture = SkillFixture::new();
    fixture.write_file("group/one/SKILL.md", skill_md("one", "Old."));
    fixture.write_file("spare/one/SKILL.md", skill_md("one", "New."));
    fs::rename(fixture.path("spare"), fixture.outside().join("spare")).unwrap();
    let repository = fixture.open();
    fs::rename(fixture.path("group"), fixture.outside().join("old")).unwrap();
    fs::rename(fixture.outside().join("spare"), fixture.path("group")).unwrap();
    assert_eq!(names_in(&repository.refresh())[1], ["one"]);
    assert_eq!(&*repository.catalog().get("one").unwrap().meta.description, "New.");
}

#[test]
fn a_group_can_become_a_skill_and_a_skill_a_group() {
    let fixture = SkillFixture::new();
    fixture.write_skill("x/inner");
    let repository = fixture.open();
    fixture.write_skill("x");
    // The inner skill is scanned again, because links inside a skill are not followed.
    assert_eq!(names_in(&repository.refresh()), [vec!["x"], vec!["inner"], vec![]]);
    assert_eq!(repository.catalog().diagnostics()[0].code, "nested_skill");
    fs::remove_file(fixture.path("x/SKILL.md")).unwrap();
    assert_eq!(names_in(&repository.refresh()), [vec![], vec!["inner"], vec!["x"]]);
    assert!(repository.catalog().diagnostics().is_empty());
}

#[test]
fn the_preferred_file_name_is_used_when_it_appears() {
    let fixture = SkillFixture::new();
    fixture.write_file("one/skill.md", skill_md("one", "Lower."));
    let repository = fixture.open();
    fixture.write_file("one/SKILL.md", skill_md("one", "Upper."));
    assert_eq!(names_in(&repository.refresh())[1], ["one"]);
    assert_eq!(
        repository.catalog().get("one").unwrap().skill_md_path(),
        fixture.path("one/SKILL.md")
    );
    fs::remove_file(fixture.path("one/SKILL.md")).unwrap();
    repository.refresh();
    assert_eq!(&*repository.catalog().get("one").unwrap().meta.description, "Lower.");
}

#[test]
fn links_with_new_targets_are_detected() {
    let fixture = SkillFixture::new();
    for version in ["v1", "v2"] {
        let dir = fixture.outside().join(version);
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("SKILL.md"), skill_md("linked", version)).unwrap();
    }
    fixture.write_file("inside/texts/a.md", skill_md("inside", "a"));
    fixture.write_file("inside/texts/b.md", skill_md("inside", "b"));
    symlink("texts/a.md", fixture.path("inside/SKILL.md")).unwrap();
    symlink(fixture.outside().join("v1"), fixture.path("linked")).unwrap();
    let repository = fixture.open();
    fs::remove_file(fixture.path("linked")).unwrap();
    symlink(fixture.outside().join("v2"), fixture.path("linked")).unwrap();
    fs::remove_file(fixture.path("inside/SKILL.md")).unwrap();
    symlink("texts/b.md", fixture.path("inside/SKILL.md")).unwrap();
    assert_eq!(names_in(&repository.refresh())[1], ["inside", "linked"]);
    let catalog = repository.catalog();
    assert_eq!(&*catalog.get("linked").unwrap().meta.description, "v2");
    assert_eq!(&*catalog.get("inside").unwrap().meta.description, "b");
    // A link that now points outside removes the skill.
    fs::remove_file(fixture.path("inside/SKILL.md")).unwrap();
    symlink("/etc/hostname", fixture.path("inside/SKILL.md")).unwrap();
    assert_eq!(names_in(&repository.refresh())[2], ["inside"]);
}

#[test]
fn sources_can_appear_and_disappear() {
    let fixture = SkillFixture::new();
    let late = fixture.outside().join("late");
    let source = Source::OptionalDirectory {
        path: late.clone(),
        scope: Scope::User,
    };
    let repository = Repository::open(vec![source], ScanOptions::default());
    assert!(repository.catalog().diagnostics().is_empty());
    fixture.write_skill("one");
    fs::rename(fixture.root(), &late).unwrap();
    assert_eq!(names_in(&repository.refresh())[0], ["one"]);
    fs::rename(&late, fixture.root()).unwrap();
    assert_eq!(names_in(&repository.refresh())[2], ["one"]);
    assert!(repository.catalog().is_empty());
    fs::rename(fixture.root(), &late).unwrap();
    assert_eq!(names_in(&repository.refresh())[0], ["one"]);
}

#[test]
fn a_shadowed_skill_is_used_after_the_other_is_removed() {
    let (low, high) = (SkillFixture::new(), SkillFixture::new());
    low.write_file("same/SKILL.md", skill_md("same", "Low."));
    high.write_file("same/SKILL.md", skill_md("same", "High."));
    let repository = Repository::open(vec![low.source(), high.source()], ScanOptions::default());
    low.write_file("same/SKILL.md", skill_md("same", "Low, edited."));
    assert!(
        repository.refresh().is_empty(),
        "a shadowed skill is not part of the catalog"
    );
    fs::remove_dir_all(high.path("same")).unwrap();
    assert_eq!(names_in(&repository.refresh())[1], ["same"]);
    assert_eq!(
        &*repository.catalog().get("same").unwrap().meta.description,
        "Low, edited."
    );
    assert!(repository.catalog().shadowed().is_empty());
}

#[test]
fn skills_beyond_the_limit_are_found_after_others_are_removed() {
    let fixture = SkillFixture::new();
    for index in 0..20 {
        fixture.write_skill(&format!("skill-{index:02}"));
    }
    let options = ScanOptions {
        max_directories: 11,
        ..ScanOptions::default()
    };
    let repository = Repository::open(vec![fixture.source()], options);
    assert_eq!(repository.catalog().len(), 10);
    for index in 0..12 {
        fs::remove_dir_all(fixture.path(&format!("skill-{index:02}"))).unwrap();
    }
    repository.refresh();
    assert_eq!(repository.catalog().len(), 8);
    assert!(repository.catalog().diagnostics().is_empty());
}

/// A change of a tree of skills.
#[derive(Clone, Debug)]
pub enum TreeChange {
    Write(String, u8),
    WriteLower(String),
    Break(String),
    RemoveFile(String),
    RemoveTree(String),
    Rename(String, String),
    Link(String, String),
}

impl TreeChange {
    /// Applies the change; errors are ignored.
    pub fn apply(&self, fixture: &SkillFixture) {
        let write = |path: &str, file: &str, text: String| {
            let dir = fixture.path(path);
            let _ = fs::create_dir_all(&dir).and_then(|()| fs::write(dir.join(file), text));
        };
        match self {
            Self::Write(path, version) => {
                let name = path.replace('/', "-");
                write(path, "SKILL.md", skill_md(&name, &format!("Version {version}.")));
            }
            Self::WriteLower(path) => write(path, "skill.md", skill_md("lower", path)),
            Self::Break(path) => write(path, "SKILL.md", "broken".to_owned()),
            Self::RemoveFile(path) => drop(fs::remove_file(fixture.path(path).join("SKILL.md"))),
            Self::RemoveTree(path) => {
                let path = fixture.path(path);
                let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
            }
            Self::Rename(from, to) => drop(fs::rename(fixture.path(from), fixture.path(to))),
            Self::Link(target, path) => drop(symlink(fixture.path(target), fixture.path(path))),
        }
    }
}

pub fn tree_changes() -> impl Strategy<Value = Vec<TreeChange>> {
    let path = || "[abc](/[abc]){0,2}";
    proptest::collection::vec(
        prop_oneof![
            4 => (path(), any::<u8>()).prop_map(|(path, version)| TreeChange::Write(path, version)),
            1 => path().prop_map(TreeChange::WriteLower),
            1 => path().prop_map(TreeChange::Break),
            2 => path().prop_map(TreeChange::RemoveFile),
            2 => path().prop_map(TreeChange::RemoveTree),
            2 => (path(), path()).prop_map(|(from, to)| TreeChange::Rename(from, to)),
            1 => (path(), path()).prop_map(|(target, path)| TreeChange::Link(target, path)),
        ],
        1..16,
    )
}

/// Formats a catalog.
pub fn format_catalog(catalog: &Catalog) -> String {
    let mut text = String::new();
    for entry in catalog.skills() {
        text += &format!("{:?} {:?}\n", entry.skill_md_path(), entry.meta);
        assert!(std::ptr::eq(catalog.get(entry.name().as_str()).unwrap(), entry));
    }
    text += &format!("{:?}\n", catalog.shadowed());
    for diagnostic in catalog.diagnostics() {
        text += &format!("{diagnostic:?}\n");
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// After any changes, a refreshed catalog equals that of a new scan.
    #[test]
    fn a_refresh_equals_a_scan(steps in proptest::collection::vec(tree_changes(), 1..5)) {
        let fixture = SkillFixture::new();
        let repository = fixture.open();
        for step in steps {
            let before = repository.catalog();
            for tree_change in &step {
                tree_change.apply(&fixture);
            }
            let change = repository.refresh();
            let after = repository.catalog();
            prop_assert_eq!(format_catalog(&after), format_catalog(&fixture.scan()), "after {:?}", step);
            prop_assert_eq!(change, CatalogChange::between(&before, &after));
        }
    }
}
