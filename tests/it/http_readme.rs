//! The curl examples of the README, run as they are printed.

use std::fs;
use std::time::Duration;

use crate::lab::{HttpServer, need, program, run_to_end};
use crate::workspace::root;

#[test]
fn the_curl_examples_work_as_printed() {
    let has_curl = program("curl")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    if !need(has_curl, "curl") {
        return;
    }
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let section = readme.split("\n## Over HTTP\n").nth(1).expect("the section");
    let block = section
        .split("```console\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let (server, _) = HttpServer::start(&[], &[]);
    let mut commands = Vec::new();
    for line in block.lines() {
        match line.strip_prefix("$ ") {
            Some(command) => commands.push(command.to_owned()),
            None => {
                let last = commands.last_mut().expect("a block begins with a command");
                last.push('\n');
                last.push_str(line);
            }
        }
    }
    assert!(
        commands[0].starts_with("skillbox serve --listen 127.0.0.1:8484"),
        "{}",
        commands[0]
    );
    assert!(commands.len() > 6);
    let dir = tempfile::tempdir().unwrap();
    fs::write(
        dir.path().join("sales.csv"),
        "date,region,revenue\n2024-01-01,north,10\n2024-02-01,south,20\n",
    )
    .unwrap();
    // As one script, so that a later command has the variables of an earlier one; the address is the test's.
    let script = commands[1..].join("\n").replace("127.0.0.1:8484", &server.place);
    let mut command = program("bash");
    let words = format!("set -euo pipefail\ncurl() {{ command curl --silent --show-error --fail \"$@\"; }}\n{script}");
    command.args(["-c", &words]).current_dir(dir.path());
    let ended = run_to_end(&mut command, b"", Duration::from_secs(60));
    let (told, said) = (
        String::from_utf8_lossy(&ended.stdout).into_owned(),
        String::from_utf8_lossy(&ended.stderr).into_owned(),
    );
    assert!(ended.status.success(), "{told}\n{said}");
    for expected in [
        "csv-report",
        "# CSV report",
        "\"exit_code\":0",
        "event: done",
        "artifact://sales.csv@0",
    ] {
        assert!(told.contains(expected), "{expected} in\n{told}");
    }
    let chart = fs::read_to_string(dir.path().join("chart.svg")).unwrap();
    assert!(chart.starts_with("<svg"), "{chart}");
}
