use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::lock::LockedPackage;

const LIMITS: TreeLimits = TreeLimits {
    entries: 1000,
    bytes: 1 << 20,
};

fn declaration(byte: u8) -> Digest {
    Digest::from_sha256([byte; 32])
}

fn identity(name: &str) -> Identity {
    Identity {
        python: vec![LockedPackage {
            name: name.to_owned(),
            version: "1".to_owned(),
            hash: "sha256:0".to_owned(),
        }],
        ..Identity::default()
    }
}

fn built() -> tempfile::TempDir {
    let built = tempfile::tempdir().unwrap();
    fs::create_dir_all(built.path().join("lib")).unwrap();
    fs::write(built.path().join("lib/a.py"), "a = 1\n").unwrap();
    built
}

fn seal(store: &EnvironmentStore, byte: u8, name: &str) -> SealedEnvironment {
    let built = built();
    let open = File::open(built.path()).unwrap();
    store.seal(&declaration(byte), identity(name), open.as_fd()).unwrap()
}

fn forget_verification(store: &EnvironmentStore, digest: &Digest) {
    fs::write(store.use_path(digest), "an earlier boot").unwrap();
}

#[test]
fn an_environment_is_found_by_its_declaration_on_every_host() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = EnvironmentStore::new(first.path(), LIMITS);
    assert!(store.find(&declaration(1)).unwrap().is_none());
    let sealed = seal(&store, 1, "a");
    let other = seal(&EnvironmentStore::new(second.path(), LIMITS), 1, "a");
    assert_eq!(sealed.digest, other.digest);
    assert_eq!(store.find(&declaration(1)).unwrap().unwrap().digest, sealed.digest);
    assert_eq!(seal(&store, 2, "a").digest, sealed.digest, "two declarations share it");
    assert_eq!(store.list().unwrap().len(), 1);
    assert_ne!(seal(&store, 3, "b").digest, sealed.digest);
}

#[test]
fn a_damaged_environment_is_never_opened() {
    let directory = tempfile::tempdir().unwrap();
    let store = EnvironmentStore::new(directory.path(), LIMITS);
    let digest = seal(&store, 1, "a").digest;
    forget_verification(&store, &digest);
    assert!(
        store.open(&digest).unwrap().is_some(),
        "the control: an undamaged one is"
    );
    let damages: [&dyn Fn(&Path); 4] = [
        &|tree| fs::write(tree.join("lib/a.py"), "a = 2\n").unwrap(),
        &|tree| fs::write(tree.join("lib/b.py"), "").unwrap(),
        &|tree| fs::remove_file(tree.join("lib/a.py")).unwrap(),
        &|tree| fs::set_permissions(tree.join("lib/a.py"), PermissionsExt::from_mode(0o755)).unwrap(),
    ];
    for damage in damages {
        let digest = seal(&store, 1, "a").digest;
        let tree = store.environment_path(&digest).join(TREE);
        for path in ["", "lib", "lib/a.py"] {
            fs::set_permissions(tree.join(path), PermissionsExt::from_mode(0o755)).unwrap();
        }
        fs::set_permissions(tree.join("lib/a.py"), PermissionsExt::from_mode(0o644)).unwrap();
        damage(&tree);
        forget_verification(&store, &digest);
        assert!(store.open(&digest).unwrap().is_none());
        assert!(store.find(&declaration(1)).unwrap().is_none());
        assert!(store.list().unwrap().is_empty(), "it is removed");
    }
}

#[test]
fn a_failed_copy_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = EnvironmentStore::new(directory.path(), TreeLimits { bytes: 3, ..LIMITS });
    let built = built();
    let open = File::open(built.path()).unwrap();
    let error = store.seal(&declaration(1), identity("a"), open.as_fd()).unwrap_err();
    assert!(
        matches!(error, EnvironmentStoreError::Tree(TreeError::TooLarge { .. })),
        "{error}"
    );
    assert!(store.find(&declaration(1)).unwrap().is_none());
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn collection_keeps_what_runs_use() {
    let directory = tempfile::tempdir().unwrap();
    let store = EnvironmentStore::new(directory.path(), LIMITS);
    let used = seal(&store, 1, "a");
    let unused = seal(&store, 2, "b").digest;
    let removed = store.collect(Duration::ZERO, u64::MAX).unwrap();
    assert_eq!(
        removed.iter().map(|removed| removed.digest).collect::<Vec<_>>(),
        [unused]
    );
    assert!(store.find(&declaration(2)).unwrap().is_none());
    assert!(!store.declaration_path(&declaration(2)).exists());
    drop(used);
    assert!(store.collect(Duration::from_secs(60), u64::MAX).unwrap().is_empty());
    assert_eq!(store.collect(Duration::from_secs(60), 0).unwrap().len(), 1);
}

#[test]
fn one_process_builds_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let store = EnvironmentStore::new(directory.path(), LIMITS);
    let cancel = CancelToken::new().unwrap();
    let later = || Instant::now() + Duration::from_secs(60);
    let held = store.lock_build(&declaration(1), later(), &cancel).unwrap();
    let _other = store.lock_build(&declaration(2), later(), &cancel).unwrap();
    assert!(matches!(
        store.lock_build(&declaration(1), Instant::now(), &cancel),
        Err(EnvironmentStoreError::Busy)
    ));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| store.lock_build(&declaration(1), later(), &cancel).map(drop));
        drop(held);
        waiting.join().unwrap().unwrap();
    });
    let _held = store.lock_build(&declaration(1), later(), &cancel).unwrap();
    cancel.cancel();
    assert!(matches!(
        store.lock_build(&declaration(1), later(), &cancel),
        Err(EnvironmentStoreError::Cancelled)
    ));
}
