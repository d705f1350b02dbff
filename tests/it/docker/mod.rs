//! What the Docker executor has to show beyond the lists that every executor goes through.

mod commands;
mod containers;
mod leftovers;
mod pool;
mod trouble;

use std::fs;
use std::time::Duration;

use crate::lab::{Docker, Scene, need, need_docker, on_docker};

/// A world whose runs take place in containers, alone on its daemon.
fn scene() -> Option<Scene> {
    need_docker().then(|| on_docker(Scene::alone))
}

fn daemon(scene: &Scene) -> &Docker {
    scene.docker().unwrap()
}

/// The daemon that `tests/run` keeps, ended as an update ends it, and back again.
fn end_daemon(docker: &Docker) -> bool {
    let Some(home) = docker.home().filter(|home| home.join("keep").exists()) else {
        return need(false, "a Docker daemon that `tests/run` keeps");
    };
    let pid: i32 = fs::read_to_string(home.join("dockerd.pid"))
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    // While it ends it still answers.
    while rustix::process::test_kill_process(pid).is_ok() {
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

fn wait_for_daemon(scene: &Scene) {
    scene.wait_for("the daemon to be back", Duration::from_secs(40), || {
        let version = daemon(scene).client(&["version", "--format", "{{.Server.Version}}"]);
        (!version.is_empty()).then_some(())
    });
}
