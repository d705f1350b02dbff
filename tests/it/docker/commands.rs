//! What the command line says about Docker.

use std::fs;
use std::path::Path;

use super::scene;
use crate::lab::Scene;
use crate::workspace::root;

#[test]
fn doctor_tells_about_the_daemon() {
    let Some(scene) = scene() else { return };
    let answer = scene.tell(&["doctor", "--json"]).go();
    let docker = &answer["docker"];
    assert!(
        docker["image"]["id"]
            .as_str()
            .is_some_and(|id| id.starts_with("sha256:")),
        "{docker}"
    );
    for fact in ["version", "api", "cgroup_version"] {
        assert!(docker[fact].as_str().is_some_and(|text| !text.is_empty()), "{docker}");
    }
    for fact in [
        "seccomp",
        "rootless",
        "memory_limit",
        "pids_limit",
        "swap_limit",
        "maps_ids",
    ] {
        assert!(docker[fact].is_boolean(), "{docker}");
    }
    let text = scene.tell(&["doctor"]).go();
    assert!(
        text.mentions("control groups") && text.mentions("skillbox-runner:"),
        "{}",
        text.told()
    );
}

#[test]
fn the_recipe_is_the_one_of_the_repository() {
    let scene = Scene::new();
    let told = scene.tell(&["docker", "dockerfile"]).go();
    let recipe = fs::read(Path::new(root()).join("Dockerfile.runner")).unwrap();
    assert_eq!((told.code, &told.finished.stdout), (Some(0), &recipe));
}
