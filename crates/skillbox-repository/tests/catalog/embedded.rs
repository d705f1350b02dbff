use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use skillbox_repository::{
    BUILT_IN_SKILLS, EmbeddedFile, EmbeddedSkills, Repository, ScanOptions, Scope, SkillDir, Source, TreeEntryKind,
    strict,
};

use crate::skill_fixture::{SkillFixture, directory_source, names};

static TEST_SKILLS: EmbeddedSkills = EmbeddedSkills::new(
    "test",
    &[
        EmbeddedFile {
            path: "broken/SKILL.md",
            bytes: b"nothing",
            is_executable: false,
        },
        EmbeddedFile {
            path: "one/SKILL.md",
            bytes: b"---\nname: one\ndescription: First.\n---\nBody\n",
            is_executable: false,
        },
        EmbeddedFile {
            path: "one/references/deep/r.md",
            bytes: b"deep",
            is_executable: false,
        },
        EmbeddedFile {
            path: "one/scripts/run.sh",
            bytes: b"echo",
            is_executable: true,
        },
    ],
);

#[test]
fn embedded_skills_are_read_like_skills_on_disk() {
    let repository = Repository::open(vec![Source::Embedded(&TEST_SKILLS)], ScanOptions::default());
    let catalog = repository.catalog();
    assert_eq!(names(&catalog), ["one"]);
    assert_eq!(catalog.diagnostics()[0].code, "no_frontmatter");
    let entry = catalog.get("one").unwrap();
    assert_eq!((entry.scope(), entry.source_label()), (Scope::BuiltIn, "test"));
    assert_eq!(entry.skill_md_path(), "test:one/SKILL.md");
    assert_eq!(entry.dir_in_source(), "one");
    let skill = entry.open().unwrap();
    assert_eq!(skill.read_skill_md().unwrap().body, "Body\n");
    assert_eq!(skill.docs().unwrap()[0].to_str(), Some("references/deep/r.md"));
    let resources: Vec<_> = skill
        .resources()
        .unwrap()
        .iter()
        .map(|it| it.path.to_string())
        .collect();
    assert_eq!(resources, ["scripts/run.sh"]);
    assert!(repository.refresh().is_empty());
}

/// Writes a skill to a directory.
fn write_to_disk(skill: &SkillDir, to: &Path) {
    for entry in skill.tree_entries().unwrap() {
        let path = to.join(entry.path.as_path());
        match entry.kind {
            TreeEntryKind::Dir => fs::create_dir_all(&path).unwrap(),
            TreeEntryKind::File { is_executable, size } => {
                let mut bytes = Vec::new();
                skill.open_file(&entry.path).unwrap().read_to_end(&mut bytes).unwrap();
                assert_eq!(bytes.len() as u64, size);
                fs::write(&path, bytes).unwrap();
                let mode = if is_executable { 0o755 } else { 0o644 };
                fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            }
            TreeEntryKind::Link { .. } => panic!("embedded skills have no links"),
        }
    }
}

#[test]
fn an_embedded_skill_written_to_disk_has_the_same_digest() {
    let fixture = SkillFixture::new();
    for source in [&TEST_SKILLS, &BUILT_IN_SKILLS] {
        let catalog = Repository::open(vec![Source::Embedded(source)], ScanOptions::default()).catalog();
        for entry in catalog.skills() {
            let skill = entry.open().unwrap();
            let dir = fixture.path(entry.name().as_str());
            fs::create_dir_all(&dir).unwrap();
            write_to_disk(&skill, &dir);
            let on_disk = SkillDir::open(&dir).unwrap();
            assert_eq!(on_disk.digest().unwrap(), skill.digest().unwrap(), "{}", entry.name());
            assert_eq!(on_disk.tree_entries().unwrap(), skill.tree_entries().unwrap());
            assert_eq!(on_disk.docs().unwrap(), skill.docs().unwrap());
            assert_eq!(on_disk.resources().unwrap(), skill.resources().unwrap());
        }
    }
}

#[test]
fn the_built_in_skills_are_those_in_the_skills_directory() {
    let embedded = Repository::open(vec![Source::Embedded(&BUILT_IN_SKILLS)], ScanOptions::default()).catalog();
    let on_disk = Repository::open(vec![directory_source("../../skills")], ScanOptions::default()).catalog();
    assert!(
        embedded.diagnostics().is_empty() && embedded.len() >= 3,
        "{:?}",
        embedded.diagnostics()
    );
    assert_eq!(names(&embedded), names(&on_disk));
    for entry in on_disk.skills() {
        let built_in = embedded.get(entry.name().as_str()).unwrap();
        assert_eq!(built_in.meta, entry.meta);
        assert_eq!(
            built_in.open().unwrap().digest().unwrap(),
            entry.open().unwrap().digest().unwrap()
        );
        assert_eq!(strict::validate(entry.dir()), Vec::<String>::new());
        assert!(built_in.open().unwrap().check().unwrap().is_empty(), "{}", entry.name());
    }
}
