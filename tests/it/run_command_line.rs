//! The command line of `skillbox run`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::time::Duration;

use serde_json::json;

use crate::harness::{Fixture, kill_and_reap};

#[test]
fn one_argument_is_a_shell_line_and_several_are_an_argv() {
    let fixture = Fixture::new();
    let run = |words: &[&str]| {
        fixture
            .command(&[&["run", "probe", "--json", "--"], words].concat())
            .run()
            .expect_report()
            .stdout()
            .to_owned()
    };
    assert_eq!(run(&["echo a | tr a b; echo $SKILL_NAME"]), "b\nprobe\n");
    assert_eq!(run(&["echo", "a | tr a b", "$SKILL_NAME"]), "a | tr a b $SKILL_NAME\n");
}

#[test]
fn every_option_has_its_effect() {
    let fixture = Fixture::new();
    let input = fixture.add_host_file("in.txt", "from the host\n");
    let text = fixture.add_host_file("stdin.txt", "from a file\n");
    let kept = fixture.path("kept");
    let from = format!("host://{}=work/here.txt", input.display());
    let linked = format!("host://{}=work/linked.txt,link", input.display());
    let line = "cat; cat work/here.txt work/linked.txt; echo $A $B; pwd; cat work/here.txt > out/copy.txt";
    let answer = fixture
        .command(&[
            "run",
            "probe",
            "--json",
            "--env",
            "A=1",
            "--env",
            "B=two words",
            "--stdin",
            text.to_str().unwrap(),
            "--input",
            &from,
            "--input",
            &linked,
        ])
        .with_args(&[
            "--output",
            "out/*.txt",
            "--output",
            "out/*.md",
            "--timeout",
            "100",
            "--cwd",
            ".",
            "--out-dir",
            kept.to_str().unwrap(),
            "--save",
            "kept/",
            "--session",
            "cli",
        ])
        .with_args(&["--profile", "default", "--executor", "local"])
        .allow_host_inputs()
        .with_args(&["--", line])
        .run()
        .expect_report();
    assert_eq!(
        answer.stdout(),
        "from a file\nfrom the host\nfrom the host\n1 two words\n/workspace/skills/probe\n",
        "{}",
        answer.describe()
    );
    assert_eq!(answer.output_names(), ["out/copy.txt"]);
    assert_eq!(
        fs::read_to_string(kept.join("out/copy.txt")).unwrap(),
        "from the host\n"
    );
    assert_eq!(
        answer["artifact_files"][0]["name"],
        "kept/out/copy.txt",
        "{}",
        answer.describe()
    );
    assert_eq!(
        (&answer["profile"], &answer["executor"]),
        (&json!("default"), &json!("local"))
    );
}

#[test]
fn standard_input_is_passed_on_request_only() {
    let fixture = Fixture::new();
    let answer = fixture
        .command(&["run", "probe", "--json", "--stdin", "-", "--", "cat"])
        .stdin("through a pipe\n")
        .run()
        .expect_report();
    assert_eq!(answer.stdout(), "through a pipe\n");
    // Without `--stdin -` the script does not get the standard input of skillbox.
    let answer = fixture
        .command(&["run", "probe", "--json", "--", "cat"])
        .stdin("not for the script\n")
        .run()
        .expect_report();
    assert_eq!(answer.stdout(), "");
}

#[test]
fn a_request_can_be_read_from_a_file() {
    let fixture = Fixture::new();
    let file = fixture.path("request.json");
    fs::write(
        &file,
        json!({"skill": "probe", "command": "echo from a file"}).to_string(),
    )
    .unwrap();
    let answer = fixture
        .command(&["run", "--json", "--request", file.to_str().unwrap()])
        .run()
        .expect_report();
    assert_eq!(answer.stdout(), "from a file\n");

    // The command line may name the same skill as the request.
    let named = |skill| {
        fixture
            .command(&["run", skill, "--json", "--request", file.to_str().unwrap()])
            .run()
    };
    assert_eq!(named("probe").expect_report().stdout(), "from a file\n");
    let other = named("python-math");
    assert_eq!(
        (other.expect_refusal().0, other.code),
        ("invalid_request", Some(125)),
        "{}",
        other.describe()
    );
}

#[test]
fn without_json_the_streams_are_passed_through() {
    let fixture = Fixture::new();
    let answer = fixture
        .command(&[
            "run",
            "probe",
            "--",
            "echo data; echo talk >&2; printf 'no newline'; exit 7",
        ])
        .run();
    assert_eq!(answer.code, Some(7));
    assert_eq!(
        answer.process.stdout,
        b"data\nno newline",
        "stdout is data: {}",
        answer.describe()
    );
    assert!(answer.mentions("talk\n"));
    let bytes = fixture
        .command(&["run", "probe", "--", "printf '\\xff\\x00\\x1b'"])
        .run();
    assert_eq!(bytes.process.stdout, b"\xff\0\x1b", "every byte is unchanged");
}

#[test]
fn without_json_output_is_passed_on_as_it_is_written() {
    let fixture = Fixture::new();
    let token = format!("{}-streaming", fixture.canary());
    let command = format!("echo first; exec -a {token} sleep 300");
    let mut child = fixture
        .command(&["run", "probe", "--timeout", "300", "--", &command])
        .spawn();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "first");
    // The line is there during the run: only a script that has printed it sleeps.
    fixture.wait_for("the sleep of the script", || fixture.host_pids_with(&token).pop());
    kill_and_reap(&mut child);
    fixture.wait_for_no_process_with(&token);
}

#[test]
fn a_closed_stdout_does_not_hang_the_run() {
    let fixture = Fixture::new();
    let mut child = fixture
        .command(&["run", "probe", "--timeout", "1", "--", "yes"])
        .spawn();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    assert_eq!(first, "y\n");
    // The reader closed the pipe, as `| head -n 1` does. The run goes on to its end, since its files may be wanted.
    fixture.wait_for("the end", || child.try_wait().unwrap());
    kill_and_reap(&mut child);
}

/// Exit codes below 125 belong to the script.
#[test]
fn usage_errors_of_run_exit_with_125() {
    let fixture = Fixture::new();
    for words in [
        &["run"][..],
        &["run", "probe"],
        &["run", "probe", "--no-such-option", "--", "true"],
        &["run", "probe", "--executor", "cloud", "--", "true"],
        &["run", "probe", "--timeout=5s", "--", "true"],
        &["--profiles", "/nonexistent", "run", "probe", "--", "true"],
        &["--config", "/nonexistent", "run", "probe", "--", "true"],
    ] {
        let answer = fixture.command(words).run();
        assert_eq!(answer.code, Some(125), "{words:?}: {}", answer.describe());
        assert!(!answer.process.stderr.is_empty());
    }
    // Other commands have the usual code, even with `run` among their arguments.
    assert_eq!(
        fixture
            .command(&["session", "show", "run", "--no-such-option"])
            .run()
            .code,
        Some(2)
    );
    let refused = fixture.command(&["run", "--json"]).run();
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("<SKILL>"), "{message}");
}

/// The codes 124 and above belong to commands that run a script.
#[test]
fn other_commands_exit_with_0_1_or_2() {
    let fixture = Fixture::new();
    let code = |words: &[&str]| {
        let answer = fixture.command(words).env("SKILLBOX_ALLOW_HOST", "/nonexistent").run();
        assert!(answer.mentions("/nonexistent"), "{words:?}: {}", answer.describe());
        answer.code
    };
    for words in [
        &["artifacts", "list"][..],
        &["tools"],
        &["mcp"],
        &["call", "skill_list"],
        &["prompt"],
        &["session", "gc"],
    ] {
        assert_eq!(code(words), Some(1), "{words:?}");
    }
    // Control: the same failure of `run` has a code that no script can have.
    assert_eq!(code(&["run", "probe", "--", "true"]), Some(125));
}

#[test]
fn output_files_are_written_to_the_out_dir() {
    let fixture = Fixture::new();
    let run = |words: &[&str]| {
        let line = ["run", "probe", "--", "echo made > out/file; echo it ran"];
        fixture.command(&line).with_args(words).run()
    };
    // Without globs, all of `out/` is written.
    let answer = run(&["--out-dir", "here"]);
    assert_eq!(answer.code, Some(0), "{}", answer.describe());
    assert_eq!(
        fs::read_to_string(fixture.path("scratch/here/out/file")).unwrap(),
        "made\n"
    );
    // Where nothing can be written, the script does not run.
    fs::write(fixture.path("scratch/taken"), "").unwrap();
    for unwritable in ["taken", "/proc/nowhere"] {
        let answer = run(&["--out-dir", unwritable, "--json"]);
        assert_eq!(
            answer.expect_refusal(),
            ("storage", Some("out_dir")),
            "{}",
            answer.describe()
        );
        assert_eq!(answer.code, Some(125));
        assert!(!answer.mentions("it ran"));
    }
    // A failure after the run does not suppress the report.
    fs::create_dir(fixture.path("scratch/linked")).unwrap();
    std::os::unix::fs::symlink(fixture.path("home"), fixture.path("scratch/linked/out")).unwrap();
    let answer = run(&["--out-dir", "linked", "--json"]).expect_report();
    assert_eq!(
        (answer.code, answer.stdout()),
        (Some(125), "it ran\n"),
        "{}",
        answer.describe()
    );
    let warning = answer["warnings"][0].as_str().unwrap();
    assert!(warning.starts_with("out/file is not written to linked"), "{warning}");
    assert!(!fixture.path("home/file").exists());
}

#[test]
fn an_input_path_may_contain_parent_components() {
    let fixture = Fixture::new();
    fixture.add_host_file("in.txt", "from above");
    let answer = fixture
        .command(&[
            "run",
            "probe",
            "--input",
            "../host/../host/in.txt",
            "--json",
            "--",
            "cat inputs/in.txt",
        ])
        .run()
        .expect_report();
    assert_eq!(answer.stdout(), "from above");
}

#[test]
fn lost_output_is_an_error() {
    let fixture = Fixture::new();
    let run_to_full_device = |words: &[&str]| {
        let mut all = vec![fixture.binary().to_str().unwrap().to_owned()];
        all.extend(words.iter().map(|word| (*word).to_owned()));
        let line = format!("exec {} > /dev/full", all.join(" "));
        let mut command = crate::harness::program("bash");
        command.args(["-c", &line]).env("HOME", fixture.path("home"));
        crate::harness::run_to_completion(&mut command, b"", Duration::from_secs(120))
    };
    for words in [
        &["run", "python-math", "--", "echo", "hi"][..],
        &["run", "python-math", "--json", "--", "echo", "hi"],
    ] {
        let output = run_to_full_device(words);
        assert_eq!(output.status.code(), Some(125), "{words:?}: {output:?}");
    }
}

#[test]
fn oversized_outputs_are_listed_as_refused() {
    let fixture = Fixture::new();
    let answer = fixture.run_shell("head -c 70M /dev/zero > out/big; echo x > out/small");
    assert_eq!(answer.output_names(), ["out/small"], "{}", answer.describe());
    assert_eq!(answer.refused_output_names(), ["out/big"], "{}", answer.describe());
}
