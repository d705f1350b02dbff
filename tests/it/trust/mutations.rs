//! Random changes of an approved skill while runs start: what runs is always the approved content.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::support::{RandomNumbers, repetitions, seed};
use crate::harness::{Fixture, HttpServer};

const SCRIPT: &str = "echo approved\nexit 0\n";
/// Prints every file of the skill, so that the output shows what is mounted.
const COMMAND: &str = "bash scripts/run.sh; find . -mindepth 1 ! -name out ! -name work ! -name inputs \
                       -printf '%P %y %m %l\\n' | sort; find . -type f | sort | xargs sha256sum";

fn write_skill(dir: &Path) {
    let _ = fs::remove_dir_all(dir);
    fs::create_dir_all(dir.join("scripts")).unwrap();
    fs::write(
        dir.join("SKILL.md"),
        "---\nname: target\ndescription: A skill of the tests.\n---\n",
    )
    .unwrap();
    fs::write(dir.join("scripts/run.sh"), SCRIPT).unwrap();
    fs::write(dir.join("data.txt"), "data\n").unwrap();
    for file in ["SKILL.md", "scripts/run.sh", "data.txt"] {
        fs::set_permissions(dir.join(file), fs::Permissions::from_mode(0o644)).unwrap();
    }
}

/// Changes one thing.
fn mutate(dir: &Path, numbers: &mut RandomNumbers) -> &'static str {
    let script = dir.join("scripts/run.sh");
    match numbers.below(8) {
        0 => {
            let mut bytes = SCRIPT.as_bytes().to_vec();
            let at = 5 + numbers.below(8);
            bytes[at] = b'a' + u8::try_from(numbers.below(26)).unwrap();
            if bytes == SCRIPT.as_bytes() {
                bytes.push(b'#');
            }
            fs::write(script, bytes).unwrap();
            "byte"
        }
        1 => {
            fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
            "mode"
        }
        2 => {
            fs::rename(dir.join("data.txt"), dir.join("data2.txt")).unwrap();
            "name"
        }
        3 => {
            fs::write(dir.join(format!("added-{}", numbers.below(9))), "x").unwrap();
            "added file"
        }
        4 => {
            fs::remove_file(dir.join("data.txt")).unwrap();
            "removed file"
        }
        5 => {
            fs::remove_file(dir.join("data.txt")).unwrap();
            symlink("SKILL.md", dir.join("data.txt")).unwrap();
            "linked file"
        }
        6 => {
            fs::write(dir.join("scripts/run.sh.new"), "echo replaced\n").unwrap();
            fs::rename(dir.join("scripts/run.sh.new"), script).unwrap();
            "replaced file"
        }
        _ => {
            fs::write(script, format!("{SCRIPT}echo appended\n")).unwrap();
            "appended line"
        }
    }
}

/// The output of a run, or the code of its refusal.
fn outcome(report: &Value) -> Result<String, String> {
    match report["error"]["code"].as_str() {
        Some(code) => Err(code.to_owned()),
        None => Ok(report["stdout"]
            .as_str()
            .unwrap_or_else(|| panic!("{report}"))
            .to_owned()),
    }
}

#[test]
fn no_changed_skill_ever_runs() {
    let fixture = Fixture::new();
    let dir = fixture.path("skills/target");
    write_skill(&dir);
    let approved = fixture.command(&["approve", "target", "--yes"]).run();
    assert_eq!(approved.code, Some(0), "{}", approved.describe());
    let trust_dir = fixture.path_str("state/trust");
    let skills = fixture.path_str("skills");
    let (server, _) = HttpServer::start(
        &["--skills", &skills, "--trust", "approved", "--trust-dir", &trust_dir],
        &[],
    );
    let request = json!({"skill": "target", "command": COMMAND});
    let by_server = || {
        outcome(
            &server
                .request_json("", "POST", "/v1/runs?wait=60", Some(&request))
                .json(),
        )
    };
    let by_command = || {
        outcome(
            fixture
                .request(request.clone())
                .with_args(&["--trust", "approved"])
                .run()
                .json(),
        )
    };
    let control = by_command().unwrap();
    assert!(control.starts_with("approved\n"), "{control}");
    assert_eq!(by_server().unwrap(), control);

    let mut numbers = RandomNumbers::new(seed());
    let count = repetitions("SKILLBOX_TRUST_MUTATIONS", 40);
    for round in 0..count {
        let what = mutate(&dir, &mut numbers);
        std::thread::scope(|scope| {
            let others = [scope.spawn(by_server), scope.spawn(by_server)];
            let mut outcomes: Vec<_> = others.map(|other| other.join().unwrap()).into();
            if round % 4 == 0 {
                outcomes.push(by_command());
            }
            for outcome in outcomes {
                assert_eq!(outcome, Err("not_approved".to_owned()), "round {round}: {what}");
            }
        });
        write_skill(&dir);
        if round % 8 == 0 {
            assert_eq!(by_server().unwrap(), control, "the control after round {round}");
        }
    }
    assert_eq!(by_command().unwrap(), control);

    // The content changes while runs start: each run is refused, or runs exactly the approved content.
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut numbers = RandomNumbers::new(seed() + 1);
            while !is_over.load(Ordering::Relaxed) {
                let script = dir.join("scripts/run.sh");
                let text = if numbers.below(2) == 0 {
                    SCRIPT
                } else {
                    "echo swapped\n"
                };
                fs::write(dir.join("new"), text).unwrap();
                fs::rename(dir.join("new"), script).unwrap();
                if numbers.below(4) == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
            }
        });
        let clients: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..count {
                        match by_server() {
                            Ok(output) => assert_eq!(output, control),
                            Err(code) => {
                                assert!(["not_approved", "skill_unreadable"].contains(&code.as_str()), "{code}")
                            }
                        }
                    }
                })
            })
            .collect();
        let results: Vec<_> = clients.into_iter().map(|client| client.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(results.into_iter().all(|result| result.is_ok()));
    });
    write_skill(&dir);
    assert_eq!(by_server().unwrap(), control, "the control at the end");
}
