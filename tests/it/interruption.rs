//! Ctrl-C and its kin: the first ends the run and its end is told, the second ends the program.

use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::lab::{Scene, reap};

/// Waits until the command that bears the token is the script, and not somebody on the way to it.
fn wait_for_script(scene: &Scene, token: &str) {
    scene.wait_for("the script", Duration::from_secs(10), || {
        let inside =
            |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "bash");
        scene.host_pids_with(token).iter().any(inside).then_some(())
    });
}

#[test]
fn a_signal_cancels_the_run_and_its_end_is_told() {
    let scene = Scene::new();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let token = format!("{}-cancelled-{}", scene.canary(), signal.as_raw());
        let mut child = scene
            .ask(json!({
                "argv": ["bash", "-c", "echo kept > out/kept; sleep 30; true", token],
                "outputs": {"globs": ["out/*"]},
            }))
            .begin();
        wait_for_script(&scene, &token);
        // The file is written before there is a sleep to wait for.
        scene.wait_for("its sleep", Duration::from_secs(10), || {
            let script = scene.host_pids_with(&token).into_iter().next_back()?;
            let path = format!("/proc/{script}/task/{script}/children");
            fs::read_to_string(path).ok().filter(|list| !list.is_empty())
        });
        kill_process(Pid::from_child(&child), signal).unwrap();
        let status = scene.wait_for("skillbox's end", Duration::from_secs(3), || child.try_wait().unwrap());
        let mut told = String::new();
        child.stdout.take().unwrap().read_to_string(&mut told).unwrap();
        reap(&mut child);
        let report: Value = serde_json::from_str(&told).unwrap();
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
            scene.host_pids_with(&token).is_empty(),
            "{signal:?}: the script lives on"
        );
    }
}

/// Whoever writes to a reader that does not read cannot be cancelled, only ended.
#[test]
fn a_second_signal_ends_what_the_first_could_not() {
    let scene = Scene::new();
    let token = format!("{}-twice", scene.canary());
    let flood = format!("head -c 1000000 /dev/zero; exec -a {token} sleep 30");
    let mut child = scene.tell(&["run", "probe", "--", &flood]).begin();
    let pid = Pid::from_child(&child);
    let unread = child.stdout.take().unwrap();
    let capacity = rustix::pipe::fcntl_getpipe_size(&unread).unwrap();
    scene.wait_for("a full pipe", Duration::from_secs(10), || {
        let filled = usize::try_from(rustix::io::ioctl_fionread(&unread).unwrap()).unwrap();
        (filled == capacity).then_some(())
    });
    kill_process(pid, Signal::INT).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(child.try_wait().unwrap(), None, "the first signal is only a wish");
    kill_process(pid, Signal::INT).unwrap();
    let status = scene.wait_for("skillbox's end", Duration::from_secs(3), || child.try_wait().unwrap());
    reap(&mut child);
    assert_eq!(status.signal(), Some(Signal::INT.as_raw()), "{status}");
    scene.wait_for("the script's end", Duration::from_secs(3), || {
        scene.host_pids_with(&token).is_empty().then_some(())
    });
}
