//! The store of environments: equal wherever it is, built once, never half.

use serde_json::json;

use super::local_registry::LocalRegistry;
use crate::harness::{Fixture, need_root, ordinary_user};

const COMMAND: &str = "python3 scripts/a.py";

fn add_skill(fixture: &Fixture) {
    let files = [
        ("requirements.txt", "needs-good\n"),
        ("scripts/a.py", "import needs_good\nprint('ran')\n"),
    ];
    fixture.add_skill("py", &files);
}

#[test]
fn the_same_packages_have_the_same_digest_for_every_user_and_state_directory() {
    let fixture = Fixture::new();
    let Some(registry) = LocalRegistry::start(&fixture) else {
        return;
    };
    add_skill(&fixture);
    let digest_in = |state: &str, launcher: &[String]| {
        let directory = fixture.path_str(state);
        let request = json!({"skill": "py", "command": COMMAND});
        let invocation = fixture
            .request(request)
            .with_args(&["--state-dir", &directory])
            .with_launcher(launcher);
        let answer = registry.configure(invocation).run().expect_report();
        assert_eq!(answer.stdout().trim(), "ran", "{}", answer.describe());
        assert!(
            answer.json()["environment"]["built_ms"].is_u64(),
            "{}",
            answer.describe()
        );
        answer.json()["environment"]["digest"].clone()
    };
    let first = digest_in("scratch/first", &[]);
    assert_eq!(digest_in("scratch/second", &[]), first);
    if !need_root() {
        return;
    }
    let (id, launcher) = ordinary_user();
    std::fs::create_dir(fixture.path("scratch/third")).unwrap();
    fixture.chown_to(id);
    assert_eq!(digest_in("scratch/third", &launcher), first);
}

#[test]
fn concurrent_runs_build_once() {
    let fixture = Fixture::new();
    let Some(registry) = LocalRegistry::start(&fixture) else {
        return;
    };
    add_skill(&fixture);
    let builds = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| registry.run("py", COMMAND).expect_report()))
            .collect();
        let answers = runs.into_iter().map(|run| run.join().unwrap());
        answers
            .filter(|answer| {
                assert_eq!(answer.stdout(), "ran\n", "{}", answer.describe());
                answer.json()["environment"].get("built_ms").is_some()
            })
            .count()
    });
    assert_eq!(builds, 1);
    let wheels = registry
        .requests()
        .into_iter()
        .filter(|path| path.ends_with(".whl") && path.contains("needs"));
    assert_eq!(wheels.count(), 1);
}

#[test]
fn s44_h241_a_damaged_environment_is_built_again_and_unused_ones_are_removed() {
    let fixture = Fixture::new();
    let Some(registry) = LocalRegistry::start(&fixture) else {
        return;
    };
    add_skill(&fixture);
    let first = registry.run("py", COMMAND).expect_report();
    let list = || fixture.command(&["env", "list", "--json"]).run().json()["environments"].clone();
    assert_eq!(list().as_array().unwrap().len(), 1);
    assert_eq!(list()[0]["digest"], first.json()["environment"]["digest"]);

    // As after a crash of the host: another boot, and a file that lost its content.
    let store = fixture.path("state/environments");
    for entry in std::fs::read_dir(&store).unwrap().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "use") {
            std::fs::write(&path, "an earlier boot").unwrap();
        }
        let file = path.join("tree/lib");
        if file.exists() {
            let module = find_module(&file);
            std::fs::remove_file(&module).unwrap();
        }
    }
    let again = registry.run("py", COMMAND).expect_report();
    assert_eq!(again.stdout().trim(), "ran", "{}", again.describe());
    assert!(again.json()["environment"]["built_ms"].is_u64());
    assert_eq!(
        again.json()["environment"]["digest"],
        first.json()["environment"]["digest"]
    );

    let kept = fixture.command(&["env", "gc", "--json"]).run();
    assert_eq!(kept.json()["removed"], json!([]));
    let removed = fixture.command(&["env", "gc", "--unused", "0", "--json"]).run();
    assert_eq!(
        removed.json()["removed"].as_array().unwrap().len(),
        1,
        "{}",
        removed.describe()
    );
    assert_eq!(list(), json!([]));
}

/// The file of the module `needs_good` below a directory.
fn find_module(directory: &std::path::Path) -> std::path::PathBuf {
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            if entry.file_name() == "needs_good.py" {
                return entry.path();
            }
            if entry.file_type().unwrap().is_dir() {
                pending.push(entry.path());
            }
        }
    }
    panic!("the module is not installed");
}
