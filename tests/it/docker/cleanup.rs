//! However a run ends, the daemon keeps nothing of it.

use std::fs;

use serde_json::json;

use super::{daemon, docker_fixture};
use crate::harness::{Docker, kill_and_reap};

/// The containers, volumes and networks of a daemon. Runs may add nothing to them.
#[derive(Debug, PartialEq, Eq)]
struct DaemonInventory([String; 3]);

impl DaemonInventory {
    fn take(docker: &Docker) -> Self {
        Self([
            docker.run_client(&["ps", "--all", "--quiet"]),
            docker.run_client(&["volume", "ls", "--quiet"]),
            docker.run_client(&["network", "ls", "--quiet"]),
        ])
    }
}

#[test]
fn killed_runs_leave_no_containers_or_files() {
    let Some(fixture) = docker_fixture() else { return };
    let before = DaemonInventory::take(daemon(&fixture));
    let mut children: Vec<_> = (0..10)
        .map(|_| fixture.request(json!({"command": "sleep 300", "timeout": 300})).spawn())
        .collect();
    fixture.wait_for("ten containers", || {
        (daemon(&fixture).containers().len() == 10).then_some(())
    });
    for child in &mut children {
        child.kill().unwrap();
    }
    children.iter_mut().for_each(kill_and_reap);
    let collected = fixture.command(&["session", "gc", "--json"]).run();
    assert_eq!(collected.code, Some(0), "{}", collected.describe());
    assert_eq!(
        daemon(&fixture).containers(),
        [] as [&str; 0],
        "{}",
        collected.describe()
    );
    assert_eq!(DaemonInventory::take(daemon(&fixture)), before);
    let uid = rustix::process::geteuid().as_raw();
    let file_count = fs::read_dir(format!("/dev/shm/skillbox-{uid}"))
        .into_iter()
        .flatten()
        .count();
    assert_eq!(file_count, 0, "files of the killed runs are left");
}

#[test]
fn runs_leave_no_containers_however_they_end() {
    let Some(fixture) = docker_fixture() else { return };
    let before = DaemonInventory::take(daemon(&fixture));
    for request in [
        json!({"command": "true"}),
        json!({"command": "exit 3"}),
        json!({"command": "sleep 300", "timeout": 0.2}),
        json!({"command": "kill -9 -1; kill -9 $$"}),
        json!({"argv": ["no-such-program"]}),
        json!({"command": "python3 -c 'import os; os.fork() or os.setsid() or os.execvp(\"sleep\", [\"sleep\", \"60\"])' & sleep 0.2"}),
    ] {
        fixture.request(request).run().expect_report();
    }
    daemon(&fixture).wait_for_no_containers();
    assert_eq!(DaemonInventory::take(daemon(&fixture)), before);
}
