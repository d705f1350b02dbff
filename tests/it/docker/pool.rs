//! Containers that wait for a server: warm, bounded, used once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use skillbox_executor::{Cancel, DockerExecutor, DockerOptions, EventSink, Executor};
use skillbox_model::{ExecutorKind, RunReport, RunRequest};
use skillbox_repository::{BUILT_IN, Repository, ScanOptions, Source};
use skillbox_runtime::{RunContext, Runtime, RuntimeSettings};
use skillbox_sandbox::{Profiles, Unconfined};

use super::{daemon, end_daemon, scene, wait_for_daemon};
use crate::lab::Scene;

/// A runtime in this process, as a server has it, with containers that wait.
fn server(scene: &Scene, pool: usize) -> (Runtime, Arc<DockerExecutor>) {
    let docker = Arc::new(DockerExecutor::new(DockerOptions {
        host: daemon(scene).host(),
        image: format!("skillbox-runner:{}", env!("CARGO_PKG_VERSION")),
        pool,
        scratch: scene.path("state/scratch"),
        unconfined: Unconfined::Refuse,
    }));
    let settings = RuntimeSettings {
        default_executor: ExecutorKind::Docker,
        watch_skills: true,
        ..RuntimeSettings::at(scene.path("state"))
    };
    let repository = Repository::open(vec![Source::Embedded(&BUILT_IN)], ScanOptions::default());
    let executors = vec![Executor::Docker(docker.clone())];
    (
        Runtime::new(Arc::new(repository), Profiles::shipped(), executors, settings),
        docker,
    )
}

fn run(runtime: &Runtime, command: &str) -> RunReport {
    let request = RunRequest {
        skill: "python-math".to_owned(),
        command: Some(command.to_owned()),
        ..RunRequest::default()
    };
    let context = RunContext {
        session: None,
        events: EventSink::silent(),
        cancel: Cancel::new().unwrap(),
        export: None,
    };
    runtime.run(&request, context).unwrap()
}

fn full(scene: &Scene, docker: &DockerExecutor, size: usize) {
    scene.wait_for("a full pool", Duration::from_secs(30), || {
        (docker.waiting() == size).then_some(())
    });
}

#[test]
fn a_pool_is_warm_bounded_single_use_and_survives_the_daemon() {
    let Some(scene) = scene() else { return };
    let (runtime, docker) = server(&scene, 2);
    let profiles = Profiles::shipped();
    docker.warm(profiles.get("default").unwrap()).unwrap();
    full(&scene, &docker, 2);
    let waiting = daemon(&scene).containers();
    assert_eq!(waiting.len(), 2, "bounded");
    let begin = Instant::now();
    let first = run(&runtime, "echo mark > /tmp/mark; echo mark > work/mark; echo first");
    let warm = begin.elapsed();
    let second = run(&runtime, "ls /tmp work; echo second");
    assert_eq!((first.stdout.as_str(), first.exit_code), ("first\n", Some(0)));
    assert_eq!(
        second.stdout, "/tmp:\n\nwork:\ninputs\nsecond\n",
        "a container of its own"
    );
    println!("warm: {warm:?}");
    full(&scene, &docker, 2);
    let refilled = daemon(&scene).containers();
    assert!(refilled.iter().all(|id| !waiting.contains(id)), "each is used once");
    if end_daemon(daemon(&scene)) {
        wait_for_daemon(&scene);
        assert_eq!(run(&runtime, "echo after").stdout, "after\n");
        full(&scene, &docker, 2);
        assert_eq!(run(&runtime, "echo warm again").stdout, "warm again\n");
    }
    drop(runtime);
    drop(docker);
    daemon(&scene).refuse_containers();
}
