//! The pool of idle containers of a server: filled ahead, bounded, used once.

use std::sync::Arc;
use std::time::Instant;

use skillbox_executor::{CancelToken, DockerExecutor, DockerOptions, EventSink, Executor};
use skillbox_model::{ExecutorKind, RunReport, RunRequest};
use skillbox_repository::{BUILT_IN_SKILLS, Repository, ScanOptions, Source};
use skillbox_runtime::{RunContext, Runtime, RuntimeSettings};
use skillbox_sandbox::{Profiles, UnconfinedPolicy};

use super::{daemon, docker_fixture, end_daemon, wait_for_daemon};
use crate::harness::Fixture;

/// The runtime of a server in this process, with a pool of containers.
pub(super) fn server(fixture: &Fixture, pool_size: usize) -> (Runtime, Arc<DockerExecutor>) {
    let docker = Arc::new(DockerExecutor::new(DockerOptions {
        host: daemon(fixture).host(),
        image: format!("skillbox-runner:{}", env!("CARGO_PKG_VERSION")),
        pool_size,
        scratch: fixture.path("state/scratch"),
        unconfined: UnconfinedPolicy::Refuse,
        skills_roots: Vec::new(),
    }));
    let settings = RuntimeSettings {
        default_executor: ExecutorKind::Docker,
        watch_skills: true,
        ..RuntimeSettings::with_state_dir(fixture.path("state"))
    };
    let repository = Repository::open(vec![Source::Embedded(&BUILT_IN_SKILLS)], ScanOptions::default());
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
        cancel: CancelToken::new().unwrap(),
        export: None,
        origin: Default::default(),
        keep_files: false,
    };
    runtime.run(&request, context).unwrap()
}

pub(super) fn wait_for_full_pool(fixture: &Fixture, docker: &DockerExecutor, size: usize) {
    fixture.wait_for("a full pool", || (docker.idle_containers() == size).then_some(()));
}

#[test]
fn a_pool_is_bounded_uses_containers_once_and_survives_a_daemon_restart() {
    let Some(fixture) = docker_fixture() else { return };
    let (runtime, docker) = server(&fixture, 2);
    let profiles = Profiles::shipped();
    docker.fill_pool(profiles.get("default").unwrap()).unwrap();
    wait_for_full_pool(&fixture, &docker, 2);
    let idle = daemon(&fixture).containers();
    assert_eq!(idle.len(), 2, "the pool is bounded");
    let begin = Instant::now();
    let first = run(&runtime, "echo mark > /tmp/mark; echo mark > work/mark; echo first");
    let took = begin.elapsed();
    let second = run(&runtime, "ls /tmp work; echo second");
    assert_eq!((first.stdout.as_str(), first.exit_code), ("first\n", Some(0)));
    assert_eq!(
        second.stdout, "/tmp:\n\nwork:\ninputs\nsecond\n",
        "each run has its own container"
    );
    println!("a run in an idle container took {took:?}");
    wait_for_full_pool(&fixture, &docker, 2);
    let refilled = daemon(&fixture).containers();
    assert!(
        refilled.iter().all(|id| !idle.contains(id)),
        "each container is used once"
    );
    if end_daemon(daemon(&fixture)) {
        wait_for_daemon(&fixture);
        assert_eq!(run(&runtime, "echo after").stdout, "after\n");
        wait_for_full_pool(&fixture, &docker, 2);
        assert_eq!(run(&runtime, "echo warm again").stdout, "warm again\n");
    }
    drop(runtime);
    drop(docker);
    daemon(&fixture).wait_for_no_containers();
}
