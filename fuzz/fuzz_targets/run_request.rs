//! Reads any bytes as a run request, and parses it into a job. Every path of an accepted job stays below the workspace.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use skillbox_executor::job::{JobSpec, ProfileBounds, RequestCaps};
use skillbox_model::{RunId, RunRequest};
use skillbox_sandbox::Profiles;

static SHIPPED: LazyLock<Profiles> = LazyLock::new(Profiles::shipped);

fuzz_target!(|bytes: &[u8]| {
    let Ok(request) = serde_json::from_slice::<RunRequest>(bytes) else { return };
    let profile = SHIPPED.get("default").expect("a shipped profile");
    let bounds = ProfileBounds {
        limits: profile.limits.default.clone(),
        max_wall: profile.limits.wall_max,
        caps: RequestCaps::default(),
    };
    let run_id = RunId::parse("0190a").expect("an id");
    let Ok(spec) = JobSpec::parse(&request, run_id, &bounds) else { return };
    assert!(spec.limits.wall <= profile.limits.wall_max);
    assert!(spec.inputs.len() <= bounds.caps.inputs);
    for input in &spec.inputs {
        assert!(!input.to.to_string().split('/').any(|part| part == ".." || part.is_empty()));
    }
});
