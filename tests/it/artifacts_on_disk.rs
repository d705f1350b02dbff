//! The commands with artifacts on the disk: content is removed with its last artifact.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::harness::Fixture;

/// The files with the content of artifacts.
fn content_files(fixture: &Fixture) -> Vec<PathBuf> {
    let below = |path: PathBuf| {
        fs::read_dir(path)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
    };
    let subdirectories = below(fixture.path("state/artifacts/cas/sha256"));
    subdirectories.flat_map(below).collect()
}

#[test]
fn removed_artifacts_free_their_content_on_disk() {
    let fixture = Fixture::new();
    fs::write(fixture.path("scratch/data.csv"), "a,b\n1,2\n").unwrap();
    let run = |args: &[&str]| {
        let answer = fixture.command(args).with_args(&["--json"]).run();
        assert_eq!(answer.code, Some(0), "{args:?}: {}", answer.describe());
        answer
    };
    let put = run(&["artifacts", "put", "data.csv", "--name", "in/data.csv"]);
    assert_eq!(put["artifacts"][0]["mime_type"], "text/csv", "{}", put.describe());
    run(&["artifacts", "put", "data.csv", "--name", "copy.csv"]);
    assert_eq!(content_files(&fixture).len(), 1, "the same content is stored once");
    run(&["artifacts", "rm", "in/data.csv"]);
    assert_eq!(
        content_files(&fixture).len(),
        1,
        "another artifact has the same content"
    );
    assert_eq!(
        fixture.command(&["artifacts", "get", "copy.csv"]).run().process.stdout,
        b"a,b\n1,2\n"
    );
    run(&["artifacts", "rm", "copy.csv@0"]);
    assert_eq!(content_files(&fixture), [] as [PathBuf; 0]);
}

#[test]
fn removing_a_session_removes_its_artifacts() {
    let fixture = Fixture::new();
    for session in ["removed", "idle"] {
        let saved = fixture
            .request(json!({
                "command": format!("echo of {session} > out/file"),
                "outputs": {"globs": ["out/*"], "save": true},
            }))
            .in_session(session)
            .run()
            .expect_report();
        assert_eq!(saved["artifact_files"][0]["version"], 0, "{}", saved.describe());
    }
    assert_eq!(content_files(&fixture).len(), 2);
    let removed = fixture.command(&["session", "rm", "removed", "--json"]).run();
    assert_eq!(
        removed["freed"],
        json!({"contents": 1, "bytes": 11}),
        "{}",
        removed.describe()
    );
    assert_eq!(content_files(&fixture).len(), 1);
    let collected = fixture.command(&["session", "gc", "--idle", "0"]).run();
    assert!(
        collected.mentions("removed idle") && collected.mentions("freed 1 stored file, 8 B"),
        "{}",
        collected.describe()
    );
    assert_eq!(content_files(&fixture), [] as [PathBuf; 0]);
    assert!(fixture.command(&["session", "gc"]).run().mentions("nothing to remove"));
}
