//! Failures of object stores: each has its error code, is reported in time, and leaves nothing half written.

use std::io::{self, Read};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use skillbox_artifacts::{ArtifactMetadata, ArtifactName, ArtifactRef, Scope, Store, StoreError};
use skillbox_model::ErrorCode;

use crate::harness::{S3Server, assert_within, store_at};

fn name(text: &str) -> ArtifactName {
    ArtifactName::parse(text).unwrap()
}

fn put(store: &Store, content: &mut dyn Read) -> Result<u64, StoreError> {
    let put = store.put(&Scope::User, &name("x"), content, ArtifactMetadata::default());
    put.map(|artifact| artifact.version)
}

/// Checks that every operation fails with this code.
#[track_caller]
fn assert_every_operation_fails(store: &Store, code: ErrorCode) {
    let reference = ArtifactRef::parse("x@0").unwrap();
    let errors = [
        store.list(&Scope::User).unwrap_err(),
        store.versions(&Scope::User, &name("x")).unwrap_err(),
        store.resolve(&Scope::User, &reference).unwrap_err(),
        store.remove(&Scope::User, &reference).unwrap_err(),
        store.remove_scope(&Scope::User).unwrap_err(),
        put(store, &mut &b"x"[..]).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.code(), code, "{error}: {:?}", std::error::Error::source(&error));
    }
}

fn keys_for(endpoint: String) -> Vec<(&'static str, String)> {
    vec![
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_ACCESS_KEY_ID", "key".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
    ]
}

#[test]
fn a_refused_connection_is_reported_as_unreachable() {
    let scratch = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let store = store_at(
        "s3://bucket/x",
        &keys_for(format!("http://127.0.0.1:{port}")),
        scratch.path(),
    );
    let begin = Instant::now();
    let error = store.list(&Scope::User).unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnreachable);
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("refused"), "{source}");
    assert_within(begin.elapsed(), Duration::from_secs(10), "a refused connection");
}

#[test]
fn a_silent_server_times_out() {
    let scratch = tempfile::tempdir().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let mut options = skillbox_artifacts::BucketOptions::new(scratch.path());
    options.variables = keys_for(endpoint)
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
    options.request_timeout = Duration::from_secs(1);
    let location = skillbox_artifacts::Location::parse("s3://bucket/x", scratch.path()).unwrap();
    let begin = Instant::now();
    let error = put(&Store::at(location, options), &mut &b"x"[..]).unwrap_err();
    assert!(matches!(error, StoreError::Timeout { .. }), "{error}");
    assert_eq!(error.code(), ErrorCode::StoreUnreachable);
    assert_within(begin.elapsed(), Duration::from_secs(5), "a timeout of 1 s");
}

#[test]
fn denied_keys_and_missing_buckets_have_different_codes() {
    let Some(s3) = S3Server::start() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let endpoint = || s3.field("endpoint").to_owned();

    let unknown_key = store_at(&s3.url("x"), &keys_for(endpoint()), scratch.path());
    assert_every_operation_fails(&unknown_key, ErrorCode::StoreDenied);
    let mut wrong = s3.variables();
    wrong[2].1 = "wrong".to_owned();
    let wrong_secret = store_at(&s3.url("x"), &wrong, scratch.path());
    assert_every_operation_fails(&wrong_secret, ErrorCode::StoreDenied);
    let error = wrong_secret.list(&Scope::User).unwrap_err();
    assert!(error.hint().unwrap().contains("AWS_SECRET_ACCESS_KEY"));
    assert!(!format!("{error:?} {wrong_secret:?}").contains(s3.field("secret_access_key")));

    let no_bucket = store_at("s3://nowhere/x", &s3.variables(), scratch.path());
    assert_every_operation_fails(&no_bucket, ErrorCode::BucketMissing);

    // The control: the right keys and bucket work.
    let store = s3.store("x", scratch.path());
    assert_eq!(put(&store, &mut &b"x"[..]).unwrap(), 0);
}

#[test]
fn an_upload_that_fails_midway_leaves_nothing() {
    let Some(s3) = S3Server::start() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let store = s3.store("x", scratch.path());
    s3.control("fail_parts?from=2");
    let error = put(&store, &mut io::repeat(7).take(20 << 20)).unwrap_err();
    assert!(
        error.to_string().starts_with("cannot upload a part of s3://"),
        "{error}"
    );
    assert_eq!(s3.control("uploads"), "0", "unfinished uploads are left");
    assert_eq!(store.list(&Scope::User).unwrap(), []);
    s3.control("fail_parts?from=10000");
    assert_eq!(put(&store, &mut io::repeat(7).take(20 << 20)).unwrap(), 0);
}

#[test]
fn a_version_claim_whose_response_was_lost_is_recognised() {
    let Some(s3) = S3Server::start() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let store = s3.store("x", scratch.path());
    s3.control("lose_answers?count=1");
    assert_eq!(put(&store, &mut &b"once"[..]).unwrap(), 0);
    assert_eq!(store.versions(&Scope::User, &name("x")).unwrap().len(), 1);
    assert_eq!(put(&store, &mut &b"again"[..]).unwrap(), 1);
}

#[test]
fn memory_does_not_grow_with_content() {
    let Some(s3) = S3Server::start() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let store = s3.store("x", scratch.path());
    put(&store, &mut &b"warm"[..]).unwrap();
    let before = peak_memory();
    let size = 96 << 20;
    assert_eq!(put(&store, &mut io::repeat(7).take(size)).unwrap(), 1);
    let artifact = store.resolve(&Scope::User, &ArtifactRef::parse("x").unwrap()).unwrap();
    let read = io::copy(&mut store.open(&artifact).unwrap(), &mut io::sink()).unwrap();
    assert_eq!(read, size);
    let grown = peak_memory() - before;
    assert!(grown < 56 << 20, "{} MiB more", grown >> 20);
}

/// The peak memory of this process.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes << 10
}
