use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use proptest::prelude::*;
use sha2::{Digest as _, Sha256};
use skillbox_model::Digest;
use skillbox_repository::SkillDir;

use crate::workshop::Workshop;

fn digest(dir: &Path) -> Digest {
    SkillDir::open(dir).unwrap().digest().unwrap()
}

/// The documented format, by hand.
#[test]
fn the_format_is_the_documented_one() {
    let shop = Workshop::new();
    let hash = |bytes: &[u8]| Digest::from_sha256(Sha256::digest(bytes).into()).hex();
    let text = fs::read(shop.skill("s")).unwrap();
    shop.file("s/scripts/run.sh", "echo");
    fs::set_permissions(shop.path("s/scripts/run.sh"), Permissions::from_mode(0o755)).unwrap();
    shop.file("s/scripts.txt", "");
    symlink("scripts/run.sh", shop.path("s/go")).unwrap();
    fs::create_dir(shop.path("s/empty")).unwrap();
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
    assert_eq!(digest(&shop.path("s")), Digest::from_sha256(expected.finalize().into()));
}

#[test]
fn every_part_of_the_tree_counts() {
    let shop = Workshop::new();
    shop.skill("s");
    shop.file("s/a.txt", "one");
    symlink("a.txt", shop.path("s/link")).unwrap();
    let mut seen = vec![digest(&shop.path("s"))];
    let mut differs = |what: &str| {
        let now = digest(&shop.path("s"));
        assert!(!seen.contains(&now), "{what}");
        seen.push(now);
    };
    shop.file("s/a.txt", "two");
    differs("content");
    fs::set_permissions(shop.path("s/a.txt"), Permissions::from_mode(0o755)).unwrap();
    differs("executable bit");
    fs::rename(shop.path("s/a.txt"), shop.path("s/b.txt")).unwrap();
    differs("name, and a link that leads nowhere now");
    fs::remove_file(shop.path("s/link")).unwrap();
    symlink("b.txt", shop.path("s/link")).unwrap();
    differs("link");
    fs::remove_file(shop.path("s/link")).unwrap();
    fs::copy(shop.path("s/b.txt"), shop.path("s/link")).unwrap();
    differs("kind");
}

#[test]
fn what_differs_between_machines_does_not_count() {
    let shop = Workshop::new();
    shop.skill("s");
    let file = shop.file("s/a.txt", "one");
    let before = digest(&shop.path("s"));
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    fs::File::open(&file)
        .unwrap()
        .set_modified(std::time::UNIX_EPOCH)
        .unwrap();
    fs::create_dir_all(shop.path("s/empty/directory")).unwrap();
    shop.file("s/.git/HEAD", "ref");
    shop.file("s/__pycache__/a.pyc", "cache");
    symlink("/etc/passwd", shop.path("s/outside")).unwrap();
    fs::rename(shop.path("s"), shop.path("renamed")).unwrap();
    assert_eq!(digest(&shop.path("renamed")), before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_order_of_creation_does_not_count(
        files in proptest::collection::btree_map("[a-d]{1,2}/[a-d.-]{1,3}x", ("[a-z]{0,20}", any::<bool>()), 1..12),
        seed in any::<u64>(),
    ) {
        let shop = Workshop::new();
        let write = |dir: &str, files: &[(&String, &(String, bool))]| {
            for (path, (content, executable)) in files {
                let file = shop.file(&format!("{dir}/{path}"), content);
                fs::set_permissions(file, Permissions::from_mode(if *executable { 0o755 } else { 0o644 })).unwrap();
            }
            digest(&shop.path(dir))
        };
        let mut order: Vec<_> = files.iter().collect();
        let first = write("first", &order);
        let turn = usize::try_from(seed % order.len() as u64).unwrap();
        order.rotate_left(turn);
        order.reverse();
        prop_assert_eq!(write("second", &order), first);
    }
}
