//! The commands with artifacts on the disk: what is removed is gone, and what somebody still has stays.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::lab::Scene;

/// The files that hold content.
fn contents(scene: &Scene) -> Vec<PathBuf> {
    let below = |path: PathBuf| {
        fs::read_dir(path)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
    };
    let fans = below(scene.path("state/artifacts/cas/sha256"));
    fans.flat_map(below).collect()
}

#[test]
fn what_is_removed_is_gone_from_the_disk() {
    let scene = Scene::new();
    fs::write(scene.path("scratch/data.csv"), "a,b\n1,2\n").unwrap();
    let told = |words: &[&str]| {
        let answer = scene.tell(words).with(&["--json"]).go();
        assert_eq!(answer.code, Some(0), "{words:?}: {}", answer.told());
        answer
    };
    let put = told(&["artifacts", "put", "data.csv", "--name", "in/data.csv"]);
    assert_eq!(put["artifacts"][0]["mime_type"], "text/csv", "{}", put.told());
    told(&["artifacts", "put", "data.csv", "--name", "copy.csv"]);
    assert_eq!(contents(&scene).len(), 1, "the same content is stored once");
    told(&["artifacts", "rm", "in/data.csv"]);
    assert_eq!(contents(&scene).len(), 1, "somebody still has it");
    assert_eq!(
        scene.tell(&["artifacts", "get", "copy.csv"]).go().finished.stdout,
        b"a,b\n1,2\n"
    );
    told(&["artifacts", "rm", "copy.csv@0"]);
    assert_eq!(contents(&scene), [] as [PathBuf; 0]);
}

#[test]
fn what_a_session_stored_goes_with_it() {
    let scene = Scene::new();
    for session in ["removed", "idle"] {
        let saved = scene
            .ask(json!({
                "command": format!("echo of {session} > out/file"),
                "outputs": {"globs": ["out/*"], "save": true},
            }))
            .session(session)
            .go()
            .reported();
        assert_eq!(saved["artifact_files"][0]["version"], 0, "{}", saved.told());
    }
    assert_eq!(contents(&scene).len(), 2);
    let removed = scene.tell(&["session", "rm", "removed", "--json"]).go();
    assert_eq!(
        removed["freed"],
        json!({"contents": 1, "bytes": 11}),
        "{}",
        removed.told()
    );
    assert_eq!(contents(&scene).len(), 1);
    let collected = scene.tell(&["session", "gc", "--idle", "0"]).go();
    assert!(
        collected.mentions("removed idle") && collected.mentions("freed 1 stored file, 8 B"),
        "{}",
        collected.told()
    );
    assert_eq!(contents(&scene), [] as [PathBuf; 0]);
    assert!(scene.tell(&["session", "gc"]).go().mentions("nothing to remove"));
}
