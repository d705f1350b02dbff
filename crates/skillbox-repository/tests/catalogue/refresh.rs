use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::SystemTime;

use proptest::prelude::*;
use skillbox_repository::{Catalog, CatalogChange, Repository, ScanOptions, Scope, Source};

use crate::workshop::{Workshop, names, skill_md};

/// The three lists of a change, as text.
pub fn told(change: &CatalogChange) -> [Vec<&str>; 3] {
    [&change.added, &change.changed, &change.removed].map(|list| list.iter().map(|name| name.as_str()).collect())
}

#[test]
fn nothing_changed_means_nothing_told() {
    let shop = Workshop::new();
    shop.skill("one");
    let repository = shop.open();
    assert!(repository.refresh().is_empty());
    assert!(repository.refresh().is_empty());
}

#[test]
fn added_edited_and_removed_skills_are_told_apart() {
    let shop = Workshop::new();
    for name in ["edited", "removed", "same"] {
        shop.skill(name);
    }
    let repository = shop.open();
    let before = repository.catalog();
    shop.file("edited/SKILL.md", skill_md("edited", "New words."));
    fs::remove_dir_all(shop.path("removed")).unwrap();
    shop.skill("group/added");
    let change = repository.refresh();
    assert_eq!(told(&change), [vec!["added"], vec!["edited"], vec!["removed"]]);
    let after = repository.catalog();
    assert_eq!(names(&after), ["edited", "added", "same"]);
    assert_eq!(&*after.get("edited").unwrap().meta.description, "New words.");
    // An unchanged skill is the very same entry, and an old catalogue stays what it was.
    assert!(Arc::ptr_eq(
        before.shared("same").unwrap(),
        after.shared("same").unwrap()
    ));
    assert_eq!(&*before.get("edited").unwrap().meta.description, "About edited.");
    assert_eq!(
        told(&CatalogChange::between(&after, &before)),
        [vec!["removed"], vec!["edited"], vec!["added"]]
    );
}

#[test]
fn edits_that_try_to_hide_are_seen() {
    let shop = Workshop::new();
    let file = shop.file("one/SKILL.md", skill_md("one", "aaaa"));
    let repository = shop.open();
    let mtime = fs::metadata(&file).unwrap().modified().unwrap();
    // Same size, and the modification time set back.
    shop.file("one/SKILL.md", skill_md("one", "bbbb"));
    fs::File::open(&file).unwrap().set_modified(mtime).unwrap();
    assert_eq!(told(&repository.refresh())[1], ["one"]);
    assert_eq!(&*repository.catalog().get("one").unwrap().meta.description, "bbbb");
    // Another file under the same name.
    let other = shop.file("other", skill_md("one", "cccc"));
    fs::File::open(&other)
        .unwrap()
        .set_modified(SystemTime::UNIX_EPOCH)
        .unwrap();
    fs::rename(&other, &file).unwrap();
    repository.refresh();
    assert_eq!(&*repository.catalog().get("one").unwrap().meta.description, "cccc");
}

#[test]
fn many_edits_within_one_tick_of_the_clock_are_seen() {
    let shop = Workshop::new();
    shop.file("one/SKILL.md", skill_md("one", "0000"));
    let repository = shop.open();
    for turn in 1..200 {
        let text = format!("{turn:04}");
        shop.file("one/SKILL.md", skill_md("one", &text));
        repository.refresh();
        assert_eq!(&*repository.catalog().get("one").unwrap().meta.description, &*text);
    }
}

#[test]
fn a_touched_file_is_changed_and_an_untouched_one_is_not_read_for_ever() {
    let shop = Workshop::new();
    let file = shop.skill("one");
    let repository = shop.open();
    fs::File::open(&file).unwrap().set_modified(SystemTime::now()).unwrap();
    assert_eq!(told(&repository.refresh())[1], ["one"]);
    assert!(repository.refresh().is_empty());
}

#[test]
fn broken_skills_heal_and_good_ones_break() {
    let shop = Workshop::new();
    shop.file("one/SKILL.md", "broken");
    shop.skill("two");
    let repository = shop.open();
    assert_eq!(names(&repository.catalog()), ["two"]);
    shop.skill("one");
    shop.file("two/SKILL.md", "broken");
    assert_eq!(told(&repository.refresh()), [vec!["one"], vec![], vec!["two"]]);
    let codes: Vec<_> = repository.catalog().diagnostics().iter().map(|it| it.code).collect();
    assert_eq!(codes, ["no_frontmatter"]);
}

#[test]
fn a_changed_finding_is_told_anew() {
    let shop = Workshop::new();
    shop.file("one/SKILL.md", "broken");
    let repository = shop.open();
    shop.file("one/SKILL.md", "---\nname: one\n---\n");
    assert!(repository.refresh().is_empty(), "no skill came or went");
    assert_eq!(repository.catalog().diagnostics()[0].code, "missing_description");
}

#[test]
fn directories_that_change_places_are_followed() {
    let shop = Workshop::new();
    shop.file("group/one/SKILL.md", skill_md("one", "Old."));
    shop.file("spare/one/SKILL.md", skill_md("one", "New."));
    fs::rename(shop.path("spare"), shop.outside().join("spare")).unwrap();
    let repository = shop.open();
    fs::rename(shop.path("group"), shop.outside().join("old")).unwrap();
    fs::rename(shop.outside().join("spare"), shop.path("group")).unwrap();
    assert_eq!(told(&repository.refresh())[1], ["one"]);
    assert_eq!(&*repository.catalog().get("one").unwrap().meta.description, "New.");
}

#[test]
fn a_group_becomes_a_skill_and_a_skill_a_group() {
    let shop = Workshop::new();
    shop.skill("x/inner");
    let repository = shop.open();
    shop.skill("x");
    assert_eq!(told(&repository.refresh()), [vec!["x"], vec![], vec!["inner"]]);
    assert_eq!(repository.catalog().diagnostics()[0].code, "nested_skill");
    fs::remove_file(shop.path("x/SKILL.md")).unwrap();
    assert_eq!(told(&repository.refresh()), [vec!["inner"], vec![], vec!["x"]]);
    assert!(repository.catalog().diagnostics().is_empty());
}

#[test]
fn the_better_spelling_takes_over_when_it_comes() {
    let shop = Workshop::new();
    shop.file("one/skill.md", skill_md("one", "Lower."));
    let repository = shop.open();
    shop.file("one/SKILL.md", skill_md("one", "Upper."));
    assert_eq!(told(&repository.refresh())[1], ["one"]);
    assert_eq!(
        repository.catalog().get("one").unwrap().path(),
        shop.path("one/SKILL.md")
    );
    fs::remove_file(shop.path("one/SKILL.md")).unwrap();
    repository.refresh();
    assert_eq!(&*repository.catalog().get("one").unwrap().meta.description, "Lower.");
}

#[test]
fn links_that_turn_elsewhere_are_followed() {
    let shop = Workshop::new();
    for version in ["v1", "v2"] {
        let dir = shop.outside().join(version);
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("SKILL.md"), skill_md("linked", version)).unwrap();
    }
    shop.file("inside/texts/a.md", skill_md("inside", "a"));
    shop.file("inside/texts/b.md", skill_md("inside", "b"));
    symlink("texts/a.md", shop.path("inside/SKILL.md")).unwrap();
    symlink(shop.outside().join("v1"), shop.path("linked")).unwrap();
    let repository = shop.open();
    fs::remove_file(shop.path("linked")).unwrap();
    symlink(shop.outside().join("v2"), shop.path("linked")).unwrap();
    fs::remove_file(shop.path("inside/SKILL.md")).unwrap();
    symlink("texts/b.md", shop.path("inside/SKILL.md")).unwrap();
    assert_eq!(told(&repository.refresh())[1], ["inside", "linked"]);
    let catalog = repository.catalog();
    assert_eq!(&*catalog.get("linked").unwrap().meta.description, "v2");
    assert_eq!(&*catalog.get("inside").unwrap().meta.description, "b");
    // A link that comes to lead out takes the skill with it.
    fs::remove_file(shop.path("inside/SKILL.md")).unwrap();
    symlink("/etc/hostname", shop.path("inside/SKILL.md")).unwrap();
    assert_eq!(told(&repository.refresh())[2], ["inside"]);
}

#[test]
fn sources_come_and_go() {
    let shop = Workshop::new();
    let late = shop.outside().join("late");
    let source = Source::OptionalDirectory {
        path: late.clone(),
        scope: Scope::User,
    };
    let repository = Repository::open(vec![source], ScanOptions::default());
    assert!(repository.catalog().diagnostics().is_empty());
    shop.skill("one");
    fs::rename(shop.root(), &late).unwrap();
    assert_eq!(told(&repository.refresh())[0], ["one"]);
    fs::rename(&late, shop.root()).unwrap();
    assert_eq!(told(&repository.refresh())[2], ["one"]);
    assert!(repository.catalog().is_empty());
    fs::rename(shop.root(), &late).unwrap();
    assert_eq!(told(&repository.refresh())[0], ["one"]);
}

#[test]
fn a_hidden_skill_comes_back_when_what_hid_it_goes() {
    let (low, high) = (Workshop::new(), Workshop::new());
    low.file("same/SKILL.md", skill_md("same", "Low."));
    high.file("same/SKILL.md", skill_md("same", "High."));
    let repository = Repository::open(vec![low.source(), high.source()], ScanOptions::default());
    low.file("same/SKILL.md", skill_md("same", "Low, edited."));
    assert!(repository.refresh().is_empty(), "a hidden skill is nobody's business");
    fs::remove_dir_all(high.path("same")).unwrap();
    assert_eq!(told(&repository.refresh())[1], ["same"]);
    assert_eq!(
        &*repository.catalog().get("same").unwrap().meta.description,
        "Low, edited."
    );
    assert!(repository.catalog().shadowed().is_empty());
}

#[test]
fn skills_beyond_the_limit_come_in_when_there_is_room() {
    let shop = Workshop::new();
    for index in 0..20 {
        shop.skill(&format!("skill-{index:02}"));
    }
    let options = ScanOptions {
        max_directories: 11,
        ..ScanOptions::default()
    };
    let repository = Repository::open(vec![shop.source()], options);
    assert_eq!(repository.catalog().len(), 10);
    for index in 0..12 {
        fs::remove_dir_all(shop.path(&format!("skill-{index:02}"))).unwrap();
    }
    repository.refresh();
    assert_eq!(repository.catalog().len(), 8);
    assert!(repository.catalog().diagnostics().is_empty());
}

/// Something that happens to a tree of skills.
#[derive(Clone, Debug)]
pub enum Event {
    Write(String, u8),
    WriteLower(String),
    Break(String),
    RemoveFile(String),
    RemoveTree(String),
    Rename(String, String),
    Link(String, String),
}

impl Event {
    /// Makes it happen; what cannot happen does not.
    pub fn happen(&self, shop: &Workshop) {
        let write = |path: &str, file: &str, text: String| {
            let dir = shop.path(path);
            let _ = fs::create_dir_all(&dir).and_then(|()| fs::write(dir.join(file), text));
        };
        match self {
            Self::Write(path, version) => {
                let name = path.replace('/', "-");
                write(path, "SKILL.md", skill_md(&name, &format!("Version {version}.")));
            }
            Self::WriteLower(path) => write(path, "skill.md", skill_md("lower", path)),
            Self::Break(path) => write(path, "SKILL.md", "broken".to_owned()),
            Self::RemoveFile(path) => drop(fs::remove_file(shop.path(path).join("SKILL.md"))),
            Self::RemoveTree(path) => {
                let path = shop.path(path);
                let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
            }
            Self::Rename(from, to) => drop(fs::rename(shop.path(from), shop.path(to))),
            Self::Link(target, path) => drop(symlink(shop.path(target), shop.path(path))),
        }
    }
}

pub fn events() -> impl Strategy<Value = Vec<Event>> {
    let path = || "[abc](/[abc]){0,2}";
    proptest::collection::vec(
        prop_oneof![
            4 => (path(), any::<u8>()).prop_map(|(path, version)| Event::Write(path, version)),
            1 => path().prop_map(Event::WriteLower),
            1 => path().prop_map(Event::Break),
            2 => path().prop_map(Event::RemoveFile),
            2 => path().prop_map(Event::RemoveTree),
            2 => (path(), path()).prop_map(|(from, to)| Event::Rename(from, to)),
            1 => (path(), path()).prop_map(|(target, path)| Event::Link(target, path)),
        ],
        1..16,
    )
}

/// All that a catalogue says, but for skills deep inside others, which only a full scan looks for.
pub fn said(catalog: &Catalog) -> String {
    let mut text = String::new();
    for entry in catalog.skills() {
        text += &format!("{:?} {:?}\n", entry.path(), entry.meta);
        assert!(std::ptr::eq(catalog.get(entry.name().as_str()).unwrap(), entry));
    }
    text += &format!("{:?}\n", catalog.shadowed());
    for finding in catalog.diagnostics().iter().filter(|it| it.code != "nested_skill") {
        text += &format!("{finding:?}\n");
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Whatever happens, a refreshed catalogue says what a fresh scan says.
    #[test]
    fn a_refresh_is_as_good_as_a_scan(steps in proptest::collection::vec(events(), 1..5)) {
        let shop = Workshop::new();
        let repository = shop.open();
        for step in steps {
            let before = repository.catalog();
            for event in &step {
                event.happen(&shop);
            }
            let change = repository.refresh();
            let after = repository.catalog();
            prop_assert_eq!(said(&after), said(&shop.scan()), "after {:?}", step);
            prop_assert_eq!(change, CatalogChange::between(&before, &after));
        }
    }
}
