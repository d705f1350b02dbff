//! One list of checks for every kind of artifact store: a local directory, an S3 bucket, and an Azure container.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::time::Instant;

use skillbox_artifacts::{Artifact, ArtifactMetadata, ArtifactName, ArtifactRef, Scope, Store};
use skillbox_model::{ErrorCode, SessionId};

use crate::harness::{AzuriteServer, S3Server};

type Check = (&'static str, fn(&Store));

const CHECKS: &[Check] = &[
    ("versions count from zero and stay readable", versions_count_from_zero),
    (
        "names keep slashes and unusual characters",
        names_keep_unusual_characters,
    ),
    ("concurrent writers get a version each", concurrent_writers),
    ("a removed version number is never reused", removed_numbers),
    ("scopes and tenants are isolated", scopes_and_tenants),
    ("a scope is removed whole", scope_removed),
    ("empty content is content", empty_content),
    ("content of many parts is read back whole", large_content),
    ("a range has exactly its bytes", ranges),
    ("content is opened as a verified file", checked_file),
    ("content that fails midway stores nothing", failing_reader),
    ("a missing artifact has its own error code", missing),
];

#[test]
fn a_local_directory_passes_every_store_check() {
    run_every_check(|_, scratch| Store::new(scratch));
}

#[test]
fn an_s3_bucket_passes_every_store_check() {
    let Some(s3) = S3Server::start() else { return };
    run_every_check(|prefix, scratch| s3.store(prefix, scratch));
    assert_eq!(s3.control("uploads"), "0", "unfinished uploads");
}

#[test]
fn an_azure_container_passes_every_store_check() {
    let Some(azurite) = AzuriteServer::start() else { return };
    run_every_check(|prefix, scratch| azurite.store(prefix, scratch));
}

/// Runs each check on a new, empty store.
#[expect(clippy::print_stdout, reason = "the output of a failed test names the check")]
fn run_every_check(store: impl Fn(&str, &Path) -> Store) {
    for (at, (name, check)) in CHECKS.iter().enumerate() {
        let scratch = tempfile::tempdir().unwrap();
        let begin = Instant::now();
        println!("{name}");
        check(&store(&format!("deep/{at}"), scratch.path()));
        println!("    {} ms", begin.elapsed().as_millis());
        let temporary = fs::read_dir(scratch.path().join("tmp"));
        assert_eq!(temporary.map_or(0, Iterator::count), 0, "{name} left temporary files");
    }
}

#[test]
fn s24_damaged_content_on_disk_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    assert_damage_is_reported(&Store::new(directory.path()), |artifact| {
        let hex = artifact.sha256.hex();
        fs::write(directory.path().join("cas/sha256").join(&hex[..2]).join(hex), "wrong").unwrap();
    });
}

#[test]
fn s24_damaged_content_in_a_bucket_is_reported() {
    let Some(s3) = S3Server::start() else { return };
    let scratch = tempfile::tempdir().unwrap();
    assert_damage_is_reported(&s3.store("x", scratch.path()), |artifact| {
        let hex = artifact.sha256.hex();
        s3.control(&format!("damage?key=x/cas/sha256/{}/{hex}", &hex[..2]));
    });
}

fn name(text: &str) -> ArtifactName {
    ArtifactName::parse(text).unwrap()
}

fn reference(text: &str) -> ArtifactRef {
    ArtifactRef::parse(text).unwrap()
}

fn session(id: &str) -> Scope {
    Scope::Session(SessionId::parse(id).unwrap())
}

fn put(store: &Store, text: &str, content: &[u8]) -> Artifact {
    put_in(store, &Scope::User, text, content)
}

fn put_in(store: &Store, scope: &Scope, text: &str, mut content: &[u8]) -> Artifact {
    store
        .put(scope, &name(text), &mut content, ArtifactMetadata::default())
        .unwrap()
}

fn read(store: &Store, text: &str) -> Vec<u8> {
    let artifact = store.resolve(&Scope::User, &reference(text)).unwrap();
    let mut content = Vec::new();
    store.open(&artifact).unwrap().read_to_end(&mut content).unwrap();
    content
}

fn names(store: &Store, scope: &Scope) -> Vec<String> {
    let listed = store.list(scope).unwrap();
    listed.iter().map(|artifact| artifact.name.to_string()).collect()
}

/// Bytes that compress badly and repeat after a long period.
fn noise(length: usize) -> Vec<u8> {
    let bytes = (0..length as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8);
    bytes.collect()
}

fn versions_count_from_zero(store: &Store) {
    assert_eq!(put(store, "a/b.txt", b"one").reference(), "artifact://a/b.txt@0");
    assert_eq!(put(store, "a/b.txt", b"two").version, 1);
    assert_eq!(put(store, "a", b"other").version, 0);
    // Storing the same content again creates a version.
    assert_eq!(put(store, "a/b.txt", b"one").version, 2);
    assert_eq!(read(store, "a/b.txt"), b"one");
    assert_eq!(read(store, "a/b.txt@1"), b"two");
    assert_eq!(names(store, &Scope::User), ["a", "a/b.txt"]);
    let versions = store.versions(&Scope::User, &name("a/b.txt")).unwrap();
    assert_eq!(
        versions.iter().map(|artifact| artifact.version).collect::<Vec<_>>(),
        [0, 1, 2]
    );
    assert_eq!(versions[1].size_bytes, 3);
}

fn names_keep_unusual_characters(store: &Store) {
    let mut unusual = vec![
        "100%/x=y&z?.txt",
        ".hidden",
        "=20",
        "a b/ü.txt",
        "a#b",
        "end.",
        "n-a/n-b",
        "plus+minus",
        "quote's \"<>|*",
        "user@host@x",
        "v000001.json",
        "v000001.json/below",
        "日本/語",
        "~",
    ];
    for text in &unusual {
        let artifact = put(store, text, text.as_bytes());
        assert_eq!((artifact.name.as_str(), artifact.version), (*text, 0));
    }
    unusual.sort_unstable();
    assert_eq!(names(store, &Scope::User), unusual);
    for text in unusual {
        assert_eq!(read(store, text), text.as_bytes());
    }
}

fn concurrent_writers(store: &Store) {
    let stored: BTreeSet<(u64, u8)> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..16_u8)
            .map(|i| scope.spawn(move || (put(store, "x", &[i]).version, i)))
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    let versions: Vec<u64> = stored.iter().map(|(version, _)| *version).collect();
    assert_eq!(versions, (0..16).collect::<Vec<_>>());
    // Each writer got the version number of its own content.
    for (version, content) in stored {
        assert_eq!(read(store, &format!("x@{version}")), [content]);
    }
}

fn removed_numbers(store: &Store) {
    put(store, "x", b"0");
    put(store, "x", b"1");
    put(store, "x/below", b"stays");
    let removed = store.remove(&Scope::User, &reference("x@1")).unwrap();
    assert_eq!(removed.iter().map(|artifact| artifact.version).collect::<Vec<_>>(), [1]);
    assert_eq!(read(store, "x"), b"0");
    assert!(store.resolve(&Scope::User, &reference("x@1")).is_err());
    assert_eq!(put(store, "x", b"2").version, 2);
    assert_eq!(store.remove(&Scope::User, &reference("x")).unwrap().len(), 2);
    assert_eq!(store.versions(&Scope::User, &name("x")).unwrap(), []);
    assert_eq!(names(store, &Scope::User), ["x/below"]);
    assert_eq!(put(store, "x", b"3").version, 3);
}

fn scopes_and_tenants(store: &Store) {
    put(store, "x", b"the user's");
    put_in(store, &session("s1"), "x", b"the session's");
    let tenant = store.for_tenant("acme");
    assert!(tenant.resolve(&Scope::User, &reference("x")).is_err());
    put(&tenant, "theirs", b"the tenant's");
    assert_eq!(names(store, &Scope::User), ["x"]);
    assert_eq!(names(store, &session("s1")), ["x"]);
    assert_eq!(names(store, &session("s2")), [""; 0]);
    assert_eq!(names(&tenant, &Scope::User), ["theirs"]);
    assert_eq!(names(&store.for_tenant("acme2"), &Scope::User), [""; 0]);
    assert_eq!(read(store, "x"), b"the user's");
}

fn scope_removed(store: &Store) {
    put(store, "mine", b"0");
    for at in 0..3 {
        put_in(store, &session("s1"), &format!("{at}/x"), b"0");
    }
    store.remove_scope(&session("s1")).unwrap();
    assert_eq!(names(store, &session("s1")), [""; 0]);
    assert_eq!(names(store, &Scope::User), ["mine"]);
    store.remove_scope(&session("never")).unwrap();
}

fn empty_content(store: &Store) {
    assert_eq!(put(store, "empty", b"").size_bytes, 0);
    assert_eq!(read(store, "empty"), b"");
}

fn large_content(store: &Store) {
    let content = noise((20 << 20) + 7);
    let artifact = put(store, "big.bin", &content);
    assert_eq!(artifact.size_bytes, content.len() as u64);
    assert!(read(store, "big.bin") == content, "the content differs");
}

fn ranges(store: &Store) {
    let content = noise(300_000);
    let artifact = put(store, "x", &content);
    let part = |from: u64, to: u64| {
        let mut part = Vec::new();
        store
            .open_range(&artifact, from..to)
            .unwrap()
            .read_to_end(&mut part)
            .unwrap();
        part
    };
    assert!(part(0, 300_000) == content);
    assert_eq!(part(10, 20), content[10..20]);
    assert_eq!(part(299_999, 300_000), content[299_999..]);
    assert_eq!(part(7, 7), b"");
    assert_eq!(part(300_000, 300_000), b"");
    for (from, to) in [(0, 300_001), (300_001, 300_001), (20, 10)] {
        let error = store.open_range(&artifact, from..to).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidRequest, "{from}..{to}");
    }
}

fn checked_file(store: &Store) {
    let artifact = put(store, "x", b"right");
    for _ in 0..2 {
        let mut text = String::new();
        let mut file = store.open_checked_file(&artifact).unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "right");
    }
}

/// Returns this number of bytes and then fails.
struct FailingReader(u64);

impl Read for FailingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(self.0 as usize);
        self.0 -= count as u64;
        if count > 0 {
            Ok(count)
        } else {
            Err(io::Error::other("gone"))
        }
    }
}

fn failing_reader(store: &Store) {
    // Within the first buffer, and within the second part of an upload.
    for length in [100, 9 << 20] {
        let put = store.put(
            &Scope::User,
            &name("x"),
            &mut FailingReader(length),
            ArtifactMetadata::default(),
        );
        let error = put.unwrap_err();
        assert!(error.to_string().contains("to store as x"), "{error}");
        assert_eq!(names(store, &Scope::User), [""; 0]);
    }
    assert_eq!(put(store, "x", b"0").version, 0);
}

fn missing(store: &Store) {
    put(store, "x", b"0");
    for text in ["y", "x@1", "x/y", "X"] {
        let error = store.resolve(&Scope::User, &reference(text)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ArtifactMissing, "{text}");
        let error = store.remove(&Scope::User, &reference(text)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ArtifactMissing, "{text}");
    }
}

fn assert_damage_is_reported(store: &Store, damage: impl Fn(&Artifact)) {
    let artifact = put(store, "x", b"right");
    damage(&artifact);
    let error = store.open(&artifact).unwrap().read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    let error = store.open_checked_file(&artifact).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Storage);
}
