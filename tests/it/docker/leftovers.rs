//! Whatever becomes of a run, the daemon holds nothing of it afterwards.

use std::fs;
use std::time::Duration;

use serde_json::json;

use super::{daemon, scene};
use crate::lab::{Docker, reap};

/// What a daemon holds: runs may add nothing to it.
#[derive(Debug, PartialEq, Eq)]
struct Held([String; 3]);

impl Held {
    fn now(docker: &Docker) -> Self {
        Self([
            docker.client(&["ps", "--all", "--quiet"]),
            docker.client(&["volume", "ls", "--quiet"]),
            docker.client(&["network", "ls", "--quiet"]),
        ])
    }
}

#[test]
fn nothing_is_left_of_killed_runs() {
    let Some(scene) = scene() else { return };
    let before = Held::now(daemon(&scene));
    let mut children: Vec<_> = (0..10)
        .map(|_| scene.ask(json!({"command": "sleep 60"})).begin())
        .collect();
    scene.wait_for("ten containers", Duration::from_secs(50), || {
        (daemon(&scene).containers().len() == 10).then_some(())
    });
    for child in &mut children {
        child.kill().unwrap();
    }
    children.iter_mut().for_each(reap);
    let told = scene.tell(&["session", "gc", "--json"]).go();
    assert_eq!(told.code, Some(0), "{}", told.told());
    assert_eq!(daemon(&scene).containers(), [] as [&str; 0], "{}", told.told());
    assert_eq!(Held::now(daemon(&scene)), before);
    let uid = rustix::process::geteuid().as_raw();
    let left = fs::read_dir(format!("/dev/shm/skillbox-{uid}"))
        .into_iter()
        .flatten()
        .count();
    assert_eq!(left, 0, "files of the killed runs are left");
}

#[test]
fn runs_of_every_end_leave_nothing() {
    let Some(scene) = scene() else { return };
    let before = Held::now(daemon(&scene));
    for request in [
        json!({"command": "true"}),
        json!({"command": "exit 3"}),
        json!({"command": "sleep 30", "timeout": 0.2}),
        json!({"command": "kill -9 -1; kill -9 $$"}),
        json!({"argv": ["no-such-program"]}),
        json!({"command": "python3 -c 'import os; os.fork() or os.setsid() or os.execvp(\"sleep\", [\"sleep\", \"60\"])' & sleep 0.2"}),
    ] {
        scene.ask(request).go().reported();
    }
    daemon(&scene).refuse_containers();
    assert_eq!(Held::now(daemon(&scene)), before);
}
