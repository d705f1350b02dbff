//! A runner that does not answer: no process of its run outlives the result.

use std::sync::mpsc::channel;

use skillbox_executor::{CancelToken, EventSink};
use skillbox_model::{EndedBy, RunEvent, RunRequest};
use skillbox_runtime::RunContext;
use skillbox_sandbox::Profiles;

use super::pool::{server, wait_for_full_pool};
use super::{daemon, docker_fixture};

#[test]
fn s13_a_container_that_does_not_answer_is_dead_before_the_result() {
    let Some(fixture) = docker_fixture() else { return };
    let others = daemon(&fixture).containers();
    let (runtime, docker) = server(&fixture, 1);
    docker.fill_pool(Profiles::shipped().get("default").unwrap()).unwrap();
    wait_for_full_pool(&fixture, &docker, 1);
    let mut idle = daemon(&fixture).containers();
    idle.retain(|id| !others.contains(id));
    let [id] = idle.as_slice() else {
        panic!("not one idle container: {idle:?}");
    };
    let status = || daemon(&fixture).run_client(&["inspect", "--format", "{{.State.Status}}", id]);
    let cancel = CancelToken::new().unwrap();
    let (started, is_started) = channel();
    let run = || {
        let mut listener = |event| {
            if matches!(event, RunEvent::Output { .. }) {
                let _ = started.send(());
            }
        };
        let request = RunRequest {
            skill: "python-math".to_owned(),
            command: Some("echo started; exec sleep 300".to_owned()),
            ..RunRequest::default()
        };
        let context = RunContext {
            session: None,
            events: EventSink::with_listener(&mut listener),
            cancel: cancel.clone(),
            export: None,
            origin: Default::default(),
            keep_files: false,
        };
        let report = runtime.run(&request, context).unwrap();
        (report, status())
    };
    let (report, status_at_result) = std::thread::scope(|scope| {
        let run = scope.spawn(run);
        is_started.recv().unwrap();
        assert_eq!(status(), "running", "the run uses the idle container");
        daemon(&fixture).run_client(&["pause", id]);
        assert_eq!(
            status(),
            "paused",
            "the control: its processes exist and its runner cannot answer"
        );
        cancel.cancel();
        run.join().unwrap()
    });
    assert_eq!(report.ended_by, EndedBy::Cancelled);
    assert_eq!(report.stdout, "started\n");
    assert!(
        report.warnings.iter().any(|text| text.contains("did not answer")),
        "{:?}",
        report.warnings
    );
    assert_eq!(status_at_result, "", "the container exists after the result");
}
