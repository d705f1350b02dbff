//! Launches with every layer on.

mod support;

use skillbox_sandbox::ScriptEnd;
use support::{Run, spawner};

#[test]
fn true_is_true() {
    let spawner = spawner();
    let done =
        Run::bash("echo hello; id; ls / /workspace; cat /proc/self/status | grep -i cap; exit 3").launch(&spawner);
    println!("{}", done.stdout);
    println!("{}", done.stderr);
    println!("{:?}", done.ended);
    assert_eq!(done.ended.end, ScriptEnd::Exited(3));
}
