//! Random kills of workers, servers and the submitter. `tests/run batch-faults` does the same at full size, with a partition.

use std::time::Duration;

use crate::harness::{Fixture, NatsVersion, program, run_to_completion};
use crate::workspace::root;

/// Longer than the script waits itself.
const DEADLINE: Duration = Duration::from_secs(200);

#[test]
fn no_job_is_lost_or_done_twice_when_anything_is_killed() {
    let fixture = Fixture::new();
    let Some(nats) = NatsVersion::New.program() else { return };
    let mut command = program("python3");
    command.arg(root().join("tests/batch_faults/run.py"));
    command.arg("--skillbox").arg(fixture.binary()).arg("--nats").arg(nats);
    command.args(["--jobs", "300", "--workers", "2", "--kills", "5", "--ack-wait", "6"]);
    command.args(["--downtime", "2", "--deadline", "180"]);
    command.env("TMPDIR", fixture.path("tmp"));
    let output = run_to_completion(&mut command, b"", DEADLINE);
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
}
