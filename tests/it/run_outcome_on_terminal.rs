//! What `skillbox run` says about a run that lost outputs, reached a limit or had less isolation, and its lines on a
//! terminal.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::cli::Cli;
use crate::harness::{Fixture, degraded_hosts, program, run_to_completion};
use crate::workspace::root;

const MANY_FILES: &str = "mkdir -p out && seq 130 | xargs -I{} touch out/{}.txt";

#[test]
fn too_many_files_name_the_option_that_raises_the_limit() {
    let cli = Cli::new();
    let run = |words: &[&str]| {
        let line = [&["run", "python-math"], words, &["--", MANY_FILES]].concat();
        cli.run_args(&line)
    };
    let refused = run(&["--out-dir", "results"]).expect_code(125);
    for text in [
        "--max-files",
        "limit of 100",
        "max_output_files",
        "30 outputs were not collected",
    ] {
        assert!(refused.stderr.contains(text), "{text} in {}", refused.stderr);
    }
    assert_eq!(fs::read_dir(cli.work_dir().join("results/out")).unwrap().count(), 100);
    let json = run(&["--out-dir", "again", "--json"]).expect_code(125).json();
    assert!(json["warnings"].to_string().contains("--max-files"), "{json}");
    run(&["--out-dir", "all", "--max-files", "200"]).expect_code(0);
    assert_eq!(fs::read_dir(cli.work_dir().join("all/out")).unwrap().count(), 130);
    // A run that asks for no files loses none.
    run(&[]).expect_code(0);
}

#[test]
fn too_many_bytes_name_the_option_that_raises_the_limit() {
    let cli = Cli::new();
    let line = |limit: &'static str| {
        [
            "run",
            "python-math",
            "--output",
            "out/*",
            "--max-total-bytes",
            limit,
            "--",
        ]
    };
    let refused = cli.run_args(&[&line("10")[..], &["echo more than ten bytes > out/x"]].concat());
    let refused = refused.expect_code(125);
    assert!(refused.stderr.contains("--max-total-bytes"), "{}", refused.stderr);
    cli.run_args(&[&line("1000")[..], &["echo more than ten bytes > out/x"]].concat())
        .expect_code(0);
}

#[test]
fn a_refused_output_fails_a_run_that_succeeded() {
    let cli = Cli::new();
    let run = |words: &[&str], end: &str| {
        let command = format!("ln -s /etc out/link; {end}");
        cli.run_args(&[&["run", "python-math"], words, &["--", &command]].concat())
    };
    let refused = run(&["--output", "out/*"], "true").expect_code(125);
    assert!(
        refused.stderr.contains("out/link: a symbolic link"),
        "{}",
        refused.stderr
    );
    let quiet = run(&["--output", "out/*", "-q"], "true").expect_code(125);
    assert!(quiet.stderr.contains("error:"), "{}", quiet.stderr);
    // The script's own failure is the better exit code, and without a request for files nothing is missing.
    run(&["--output", "out/*"], "exit 3").expect_code(3);
    run(&[], "true").expect_code(0);
}

#[test]
fn a_run_with_less_isolation_says_so_in_one_line() {
    let fixture = Fixture::new();
    for host in degraded_hosts(&fixture) {
        let run = |words: &[&str]| {
            let line = [&["run", "probe"], words, &["--", "true"]].concat();
            fixture.command(&line).with_launcher(&host.launcher).run()
        };
        let json = run(&["--json"]);
        let Some(tier) = json["enforcement"]["tier"].as_str() else {
            continue;
        };
        let warning = json["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .find_map(|warning| warning.as_str().filter(|text| text.starts_with("isolation is of tier")));
        let plain = run(&[]);
        let stderr = String::from_utf8_lossy(&plain.process.stderr).into_owned();
        let lines: Vec<&str> = stderr
            .lines()
            .filter(|line| line.contains("isolation is of tier"))
            .collect();
        match warning {
            // What is only partial is not in the warnings.
            None => {
                assert_eq!(tier, "T0", "{stderr}");
                assert!(!stderr.contains(" absent ("), "{stderr}");
            }
            Some(warning) => {
                assert!(warning.contains(tier), "{warning}");
                assert_eq!(lines, [format!("WARNING: {warning}")], "{stderr}");
                for layer in json.missing_layers() {
                    assert!(warning.contains(layer), "{layer} in {warning}");
                }
            }
        }
    }
}

/// What a command shows on a terminal.
fn on_terminal(cli: &Cli, words: &[&str]) -> String {
    let mut command = program("python3");
    command
        .arg(root().join("tests/launchers/in_terminal.py"))
        .arg(env!("CARGO_BIN_EXE_skillbox"))
        .args(words)
        .env("HOME", cli.home_dir())
        .env("NO_COLOR", "1")
        .env("TERM", "xterm")
        .current_dir(cli.work_dir());
    let ended = run_to_completion(&mut command, b"", Duration::from_secs(110));
    let shown: Value = serde_json::from_slice(&ended.stdout).unwrap();
    shown["output"].as_str().unwrap().to_owned()
}

#[test]
fn on_a_terminal_a_run_ends_with_a_summary() {
    let cli = Cli::new();
    let command = "echo 12345 > out/a; exit 3";
    let shown = on_terminal(&cli, &["run", "python-math", "--output", "out/*", "--", command]);
    let last = shown.trim_end().lines().last().unwrap();
    assert!(
        last.starts_with("exit 3 · ") && last.contains("1 file, 6 B") && last.contains("tier T"),
        "{shown}"
    );
    assert!(!on_terminal(&cli, &["run", "python-math", "-q", "--", "true"]).contains("exit 0"));
    // Elsewhere, standard error is for messages only.
    assert!(!cli.run("run python-math -- true").stderr.contains("exit 0"));
}

#[test]
fn on_a_terminal_a_silent_run_shows_the_elapsed_time() {
    let cli = Cli::new();
    let shown = on_terminal(&cli, &["run", "python-math", "--", "sleep 1.6; echo the end"]);
    assert!(shown.contains("running 1s") && shown.contains("the end"), "{shown:?}");
    // After an incomplete line, a spinner would overwrite what the script has written.
    let shown = on_terminal(&cli, &["run", "python-math", "--", "printf wait; sleep 1.6; echo"]);
    assert!(!shown.contains("running"), "{shown:?}");
    assert!(shown.contains("wait\r\n"), "{shown:?}");
}
