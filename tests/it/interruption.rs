//! Signals to skillbox: the first cancels the run, which is reported; the second ends the program.

use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Fixture, kill_and_reap};

/// Waits until the process with the token is the script, and not a process that is about to execute it.
fn wait_for_script(fixture: &Fixture, token: &str) {
    fixture.wait_for("the script", || {
        let is_script =
            |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "bash");
        fixture.host_pids_with(token).iter().any(is_script).then_some(())
    });
}

#[test]
fn a_signal_cancels_the_run_and_the_report_says_so() {
    let fixture = Fixture::new();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let token = format!("{}-cancelled-{}", fixture.canary(), signal.as_raw());
        let mut child = fixture
            .request(json!({
                "argv": ["bash", "-c", "echo kept > out/kept; sleep 300; true", token],
                "outputs": {"globs": ["out/*"]},
            }))
            .spawn();
        wait_for_script(&fixture, &token);
        // The script has written its file when its sleep is there.
        fixture.wait_for("the sleep of the script", || {
            let script = fixture.host_pids_with(&token).into_iter().next_back()?;
            let path = format!("/proc/{script}/task/{script}/children");
            fs::read_to_string(path).ok().filter(|list| !list.is_empty())
        });
        kill_process(Pid::from_child(&child), signal).unwrap();
        let status = fixture.wait_for("the end of skillbox", || child.try_wait().unwrap());
        let mut stdout = String::new();
        child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        kill_and_reap(&mut child);
        let report: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(
            (
                status.code(),
                &report["ended_by"],
                &report["output_files"][0]["content"]
            ),
            (Some(137), &json!("cancelled"), &json!("kept\n")),
            "{signal:?}: {report}"
        );
        assert!(
            fixture.host_pids_with(&token).is_empty(),
            "{signal:?}: the script is still running"
        );
    }
}

/// A process that is blocked on a full pipe cannot cancel its run; a second signal ends it.
#[test]
fn a_second_signal_ends_a_blocked_process() {
    let fixture = Fixture::new();
    let token = format!("{}-twice", fixture.canary());
    let flood = format!("head -c 1000000 /dev/zero; exec -a {token} sleep 300");
    let mut child = fixture.command(&["run", "probe", "--", &flood]).spawn();
    let pid = Pid::from_child(&child);
    let unread = child.stdout.take().unwrap();
    let capacity = rustix::pipe::fcntl_getpipe_size(&unread).unwrap();
    fixture.wait_for("a full pipe", || {
        let filled = usize::try_from(rustix::io::ioctl_fionread(&unread).unwrap()).unwrap();
        (filled == capacity).then_some(())
    });
    kill_process(pid, Signal::INT).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(
        child.try_wait().unwrap(),
        None,
        "the first signal only requests the end"
    );
    kill_process(pid, Signal::INT).unwrap();
    let status = fixture.wait_for("the end of skillbox", || child.try_wait().unwrap());
    kill_and_reap(&mut child);
    assert_eq!(status.signal(), Some(Signal::INT.as_raw()), "{status}");
    fixture.wait_for_no_process_with(&token);
}
