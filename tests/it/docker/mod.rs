//! The Docker executor, beyond the lists of checks for every executor.

mod cleanup;
mod commands;
mod containers;
mod daemon_errors;
mod pool;
mod unresponsive_runner;

use std::fs;
use std::time::Duration;

use crate::harness::{Docker, Fixture, need, need_docker, with_docker};

/// A fixture whose runs take place in containers, without other tests on the daemon.
fn docker_fixture() -> Option<Fixture> {
    need_docker().then(|| with_docker(Fixture::exclusive))
}

fn daemon(fixture: &Fixture) -> &Docker {
    fixture.docker().unwrap()
}

/// Ends the daemon as an update does; `tests/run` starts it again. Returns whether the daemon is one of `tests/run`.
fn end_daemon(docker: &Docker) -> bool {
    let Some(directory) = docker.directory().filter(|directory| directory.join("keep").exists()) else {
        return need(false, "a Docker daemon that `tests/run` started");
    };
    let pid: i32 = fs::read_to_string(directory.join("dockerd.pid"))
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    // The daemon still answers while it shuts down.
    while rustix::process::test_kill_process(pid).is_ok() {
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

fn wait_for_daemon(fixture: &Fixture) {
    fixture.wait_for("the daemon answers again", || {
        let version = daemon(fixture).run_client(&["version", "--format", "{{.Server.Version}}"]);
        (!version.is_empty()).then_some(())
    });
}
