//! Commands that concern Docker.

use std::fs;
use std::path::Path;

use super::docker_fixture;
use crate::harness::Fixture;
use crate::workspace::root;

#[test]
fn doctor_describes_the_daemon() {
    let Some(fixture) = docker_fixture() else { return };
    let answer = fixture.command(&["doctor", "--json"]).run();
    let docker = &answer["docker"];
    assert!(
        docker["image"]["id"]
            .as_str()
            .is_some_and(|id| id.starts_with("sha256:")),
        "{docker}"
    );
    for field in ["version", "api", "cgroup_version"] {
        assert!(docker[field].as_str().is_some_and(|text| !text.is_empty()), "{docker}");
    }
    for field in [
        "seccomp",
        "rootless",
        "memory_limit",
        "pids_limit",
        "swap_limit",
        "maps_ids",
    ] {
        assert!(docker[field].is_boolean(), "{docker}");
    }
    let text = fixture.command(&["doctor"]).run();
    assert!(
        text.mentions("control groups") && text.mentions("skillbox-runner:"),
        "{}",
        text.describe()
    );
}

#[test]
fn the_printed_dockerfile_is_the_one_in_the_repository() {
    let fixture = Fixture::new();
    let printed = fixture.command(&["docker", "dockerfile"]).run();
    let dockerfile = fs::read(Path::new(root()).join("Dockerfile.runner")).unwrap();
    assert_eq!((printed.code, &printed.process.stdout), (Some(0), &dockerfile));
}
