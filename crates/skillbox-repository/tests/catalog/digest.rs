use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use proptest::prelude::*;
use sha2::{Digest as _, Sha256};
use skillbox_model::Digest;
use skillbox_repository::{Repository, ScanOptions, SkillDir, SkillLimits, SkillReadError};

use crate::skill_fixture::SkillFixture;

fn digest(dir: &Path) -> Digest {
    SkillDir::open(dir).unwrap().digest().unwrap()
}

/// Computes the digest by hand, in the documented format.
#[test]
fn the_format_matches_the_documentation() {
    let fixture = SkillFixture::new();
    let hash = |bytes: &[u8]| Digest::from_sha256(Sha256::digest(bytes).into()).hex();
    let text = fs::read(fixture.write_skill("s")).unwrap();
    fixture.write_file("s/scripts/run.sh", "echo");
    fs::set_permissions(fixture.path("s/scripts/run.sh"), Permissions::from_mode(0o755)).unwrap();
    fixture.write_file("s/scripts.txt", "");
    symlink("scripts/run.sh", fixture.path("s/go")).unwrap();
    fs::create_dir(fixture.path("s/empty")).unwrap();
    let mut expected = Sha256::new();
    expected.update("skillbox-tree/1\0");
    for record in [
        format!("f {} SKILL.md\0", hash(&text)),
        format!("l {} go\0", hash(b"scripts/run.sh")),
        format!("f {} scripts.txt\0", hash(b"")),
        format!("x {} scripts/run.sh\0", hash(b"echo")),
    ] {
        expected.update(record);
    }
    assert_eq!(
        digest(&fixture.path("s")),
        Digest::from_sha256(expected.finalize().into())
    );
}

#[test]
fn every_part_of_the_tree_changes_the_digest() {
    let fixture = SkillFixture::new();
    fixture.write_skill("s");
    fixture.write_file("s/a.txt", "one");
    symlink("a.txt", fixture.path("s/link")).unwrap();
    let mut seen = vec![digest(&fixture.path("s"))];
    let mut assert_differs = |what: &str| {
        let now = digest(&fixture.path("s"));
        assert!(!seen.contains(&now), "{what}");
        seen.push(now);
    };
    fixture.write_file("s/a.txt", "two");
    assert_differs("content");
    fs::set_permissions(fixture.path("s/a.txt"), Permissions::from_mode(0o755)).unwrap();
    assert_differs("executable bit");
    fs::rename(fixture.path("s/a.txt"), fixture.path("s/b.txt")).unwrap();
    assert_differs("name, and a link without a target");
    fs::remove_file(fixture.path("s/link")).unwrap();
    symlink("b.txt", fixture.path("s/link")).unwrap();
    assert_differs("link");
    fs::remove_file(fixture.path("s/link")).unwrap();
    fs::copy(fixture.path("s/b.txt"), fixture.path("s/link")).unwrap();
    assert_differs("kind");
}

#[test]
fn differences_between_machines_do_not_change_the_digest() {
    let fixture = SkillFixture::new();
    fixture.write_skill("s");
    let file = fixture.write_file("s/a.txt", "one");
    let before = digest(&fixture.path("s"));
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    fs::File::open(&file)
        .unwrap()
        .set_modified(std::time::UNIX_EPOCH)
        .unwrap();
    fs::create_dir_all(fixture.path("s/empty/directory")).unwrap();
    fixture.write_file("s/.git/HEAD", "ref");
    fixture.write_file("s/__pycache__/a.pyc", "cache");
    symlink("/etc/passwd", fixture.path("s/outside")).unwrap();
    fs::rename(fixture.path("s"), fixture.path("renamed")).unwrap();
    assert_eq!(digest(&fixture.path("renamed")), before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_order_of_creation_does_not_change_the_digest(
        files in proptest::collection::btree_map("[a-d]{1,2}/[a-d.-]{1,3}x", ("[a-z]{0,20}", any::<bool>()), 1..12),
        seed in any::<u64>(),
    ) {
        let fixture = SkillFixture::new();
        let write = |dir: &str, files: &[(&String, &(String, bool))]| {
            for (path, (content, is_executable)) in files {
                let file = fixture.write_file(&format!("{dir}/{path}"), content);
                fs::set_permissions(file, Permissions::from_mode(if *is_executable { 0o755 } else { 0o644 })).unwrap();
            }
            digest(&fixture.path(dir))
        };
        let mut order: Vec<_> = files.iter().collect();
        let first = write("first", &order);
        let rotation = usize::try_from(seed % order.len() as u64).unwrap();
        order.rotate_left(rotation);
        order.reverse();
        prop_assert_eq!(write("second", &order), first);
    }
}

#[test]
fn a_skill_over_a_limit_is_an_error_that_names_the_setting() {
    let fixture = SkillFixture::new();
    fixture.write_skill("one");
    fixture.write_file("one/a", [0; 1000]);
    fixture.write_file("one/b", [0; 1000]);
    let digest = |limits: SkillLimits| {
        let options = ScanOptions {
            skill_limits: limits,
            ..ScanOptions::default()
        };
        let catalog = Repository::open(vec![fixture.source()], options).catalog();
        catalog.get("one").unwrap().open().unwrap().digest()
    };
    let limits = SkillLimits {
        files: 3,
        bytes: 2500,
        file_bytes: 1000,
    };
    digest(limits).expect("exactly at the limits");
    for (limits, setting) in [
        (SkillLimits { files: 2, ..limits }, "max_skill_files"),
        (SkillLimits { bytes: 1999, ..limits }, "max_skill_bytes"),
        (
            SkillLimits {
                file_bytes: 999,
                ..limits
            },
            "max_skill_file_bytes",
        ),
    ] {
        let error = digest(limits).unwrap_err().to_string();
        assert!(error.contains(setting), "{error}");
    }
    // A sparse file is refused by its size, without reading it.
    let sparse = fs::File::create(fixture.path("one/sparse")).unwrap();
    sparse.set_len(200 << 30).unwrap();
    let error = digest(SkillLimits::default()).unwrap_err().to_string();
    assert!(
        error.contains("sparse") && error.contains("max_skill_file_bytes"),
        "{error}"
    );
}

#[test]
fn a_cancelled_digest_stops_reading() {
    let fixture = SkillFixture::new();
    fixture.write_skill("one");
    let sparse = fs::File::create(fixture.path("one/sparse")).unwrap();
    sparse.set_len(200 << 20).unwrap();
    let catalog = fixture.scan();
    let dir = catalog.get("one").unwrap().open().unwrap();
    let reads = std::cell::Cell::new(0);
    let cancel_after_ten = || {
        reads.set(reads.get() + 1);
        reads.get() > 10
    };
    let stopped = dir.digest_unless(&cancel_after_ten);
    assert!(matches!(stopped, Err(SkillReadError::Cancelled(_))), "{stopped:?}");
    assert_eq!(reads.get(), 11);
}
