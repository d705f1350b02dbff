//! `skillbox run` as people type it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::lab::{Scene, reap};

#[test]
fn one_word_is_a_shell_line_and_several_are_an_argv() {
    let scene = Scene::new();
    let run = |words: &[&str]| {
        scene
            .tell(&[&["run", "probe", "--json", "--"], words].concat())
            .go()
            .reported()
            .stdout()
            .to_owned()
    };
    assert_eq!(run(&["echo a | tr a b; echo $SKILL_NAME"]), "b\nprobe\n");
    assert_eq!(run(&["echo", "a | tr a b", "$SKILL_NAME"]), "a | tr a b $SKILL_NAME\n");
}

#[test]
fn every_option_has_its_effect() {
    let scene = Scene::new();
    let input = scene.host_file("in.txt", "from the host\n");
    let text = scene.host_file("stdin.txt", "from a file\n");
    let kept = scene.path("kept");
    let from = format!("host://{}=work/here.txt", input.display());
    let linked = format!("host://{}=work/linked.txt,link", input.display());
    let line = "cat; cat work/here.txt work/linked.txt; echo $A $B; pwd; cat work/here.txt > out/copy.txt";
    let answer = scene
        .tell(&[
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
        .with(&[
            "--output",
            "out/*.txt",
            "--output",
            "out/*.md",
            "--timeout",
            "20",
            "--cwd",
            ".",
            "--out-dir",
            kept.to_str().unwrap(),
            "--save",
            "kept/",
            "--session",
            "cli",
        ])
        .with(&["--profile", "default", "--executor", "local"])
        .host_allowed()
        .with(&["--", line])
        .go()
        .reported();
    assert_eq!(
        answer.stdout(),
        "from a file\nfrom the host\nfrom the host\n1 two words\n/workspace/skills/probe\n",
        "{}",
        answer.told()
    );
    assert_eq!(answer.outputs(), ["out/copy.txt"]);
    assert_eq!(
        fs::read_to_string(kept.join("out/copy.txt")).unwrap(),
        "from the host\n"
    );
    assert_eq!(
        answer["artifact_files"][0]["name"],
        "kept/out/copy.txt",
        "{}",
        answer.told()
    );
    assert_eq!(
        (&answer["profile"], &answer["executor"]),
        (&json!("default"), &json!("local"))
    );
}

#[test]
fn standard_input_can_be_ours() {
    let scene = Scene::new();
    let answer = scene
        .tell(&["run", "probe", "--json", "--stdin", "-", "--", "cat"])
        .stdin("through a pipe\n")
        .go()
        .reported();
    assert_eq!(answer.stdout(), "through a pipe\n");
    // Unless it is asked for, what stands on our standard input is not the script's.
    let answer = scene
        .tell(&["run", "probe", "--json", "--", "cat"])
        .stdin("not for the script\n")
        .go()
        .reported();
    assert_eq!(answer.stdout(), "");
}

#[test]
fn a_request_can_come_from_a_file() {
    let scene = Scene::new();
    let file = scene.path("request.json");
    fs::write(
        &file,
        json!({"skill": "probe", "command": "echo from a file"}).to_string(),
    )
    .unwrap();
    let answer = scene
        .tell(&["run", "--json", "--request", file.to_str().unwrap()])
        .go()
        .reported();
    assert_eq!(answer.stdout(), "from a file\n");

    // The skill may stand on the command line as well, if it is the same.
    let named = |skill| {
        scene
            .tell(&["run", skill, "--json", "--request", file.to_str().unwrap()])
            .go()
    };
    assert_eq!(named("probe").reported().stdout(), "from a file\n");
    let other = named("python-math");
    assert_eq!(
        (other.refused().0, other.code),
        ("invalid_request", Some(125)),
        "{}",
        other.told()
    );
}

#[test]
fn for_people_the_streams_pass_through() {
    let scene = Scene::new();
    let answer = scene
        .tell(&[
            "run",
            "probe",
            "--",
            "echo data; echo talk >&2; printf 'no newline'; exit 7",
        ])
        .go();
    assert_eq!(answer.code, Some(7));
    assert_eq!(
        answer.finished.stdout,
        b"data\nno newline",
        "stdout is data: {}",
        answer.told()
    );
    assert!(answer.mentions("talk\n"));
    let bytes = scene.tell(&["run", "probe", "--", "printf '\\xff\\x00\\x1b'"]).go();
    assert_eq!(bytes.finished.stdout, b"\xff\0\x1b", "every byte as it came");
}

#[test]
fn for_people_output_comes_as_it_is_written() {
    let scene = Scene::new();
    let mut child = scene
        .tell(&["run", "probe", "--", "echo first; sleep 1.5; echo second"])
        .begin();
    let begin = Instant::now();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "first");
    let first = begin.elapsed();
    assert_eq!(lines.next().unwrap().unwrap(), "second");
    assert!(
        begin.elapsed() - first > Duration::from_millis(1000),
        "both lines came together"
    );
    assert!(child.wait().unwrap().success());
    reap(&mut child);
}

#[test]
fn a_closed_output_does_not_hang() {
    let scene = Scene::new();
    let mut child = scene.tell(&["run", "probe", "--timeout", "1", "--", "yes"]).begin();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    assert_eq!(first, "y\n");
    // The reader is gone now, as with `| head -n 1`: the run goes on to its end, for its files may be wanted.
    scene.wait_for("the end", Duration::from_secs(5), || child.try_wait().unwrap());
    reap(&mut child);
}

/// The lower exit codes of a run are its script's own.
#[test]
fn usage_errors_are_told_with_the_code_of_a_refusal() {
    let scene = Scene::new();
    for words in [
        &["run"][..],
        &["run", "probe"],
        &["run", "probe", "--no-such-option", "--", "true"],
        &["run", "probe", "--executor", "cloud", "--", "true"],
        &["run", "probe", "--timeout=5s", "--", "true"],
        &["--profiles", "/nonexistent", "run", "probe", "--", "true"],
        &["--config", "/nonexistent", "run", "probe", "--", "true"],
    ] {
        let answer = scene.tell(words).go();
        assert_eq!(answer.code, Some(125), "{words:?}: {}", answer.told());
        assert!(!answer.finished.stderr.is_empty());
    }
    // Other commands have codes of their own, whatever their words are.
    assert_eq!(
        scene.tell(&["session", "show", "run", "--no-such-option"]).go().code,
        Some(2)
    );
    let told = scene.tell(&["run", "--json"]).go();
    let message = told["error"]["message"].as_str().unwrap();
    assert!(message.contains("<SKILL>"), "{message}");
}

#[test]
fn files_go_where_they_are_wanted() {
    let scene = Scene::new();
    let run = |words: &[&str]| {
        let line = ["run", "probe", "--", "echo made > out/file; echo it ran"];
        scene.tell(&line).with(words).go()
    };
    // Without globs it is everything in `out/`.
    let answer = run(&["--out-dir", "here"]);
    assert_eq!(answer.code, Some(0), "{}", answer.told());
    assert_eq!(
        fs::read_to_string(scene.path("scratch/here/out/file")).unwrap(),
        "made\n"
    );
    // Where nothing can be written, nothing is run.
    fs::write(scene.path("scratch/taken"), "").unwrap();
    for nowhere in ["taken", "/proc/nowhere"] {
        let answer = run(&["--out-dir", nowhere, "--json"]);
        assert_eq!(answer.refused(), ("storage", Some("out_dir")), "{}", answer.told());
        assert_eq!(answer.code, Some(125));
        assert!(!answer.mentions("it ran"));
    }
    // What fails after the run does not take its report along.
    fs::create_dir(scene.path("scratch/linked")).unwrap();
    std::os::unix::fs::symlink(scene.path("home"), scene.path("scratch/linked/out")).unwrap();
    let answer = run(&["--out-dir", "linked", "--json"]).reported();
    assert_eq!(
        (answer.code, answer.stdout()),
        (Some(125), "it ran\n"),
        "{}",
        answer.told()
    );
    let warning = answer["warnings"][0].as_str().unwrap();
    assert!(warning.starts_with("out/file is not written to linked"), "{warning}");
    assert!(!scene.path("home/file").exists());
}

#[test]
fn a_file_above_is_named_as_anybody_would() {
    let scene = Scene::new();
    scene.host_file("in.txt", "from above");
    let answer = scene
        .tell(&[
            "run",
            "probe",
            "--input",
            "../host/../host/in.txt",
            "--json",
            "--",
            "cat inputs/in.txt",
        ])
        .go()
        .reported();
    assert_eq!(answer.stdout(), "from above");
}

#[test]
fn output_that_is_lost_is_told() {
    let scene = Scene::new();
    let full = |words: &[&str]| {
        let mut all = vec![scene.binary().to_str().unwrap().to_owned()];
        all.extend(words.iter().map(|word| (*word).to_owned()));
        let line = format!("exec {} > /dev/full", all.join(" "));
        let mut command = crate::lab::program("bash");
        command.args(["-c", &line]).env("HOME", scene.path("home"));
        crate::lab::run_to_end(&mut command, b"", Duration::from_secs(20))
    };
    for words in [
        &["run", "python-math", "--", "echo", "hi"][..],
        &["run", "python-math", "--json", "--", "echo", "hi"],
    ] {
        let finished = full(words);
        assert_eq!(finished.status.code(), Some(125), "{words:?}: {finished:?}");
    }
}

#[test]
fn a_listing_names_what_is_too_large_for_it() {
    let scene = Scene::new();
    let answer = scene.sh("head -c 70M /dev/zero > out/big; echo x > out/small");
    assert_eq!(answer.outputs(), ["out/small"], "{}", answer.told());
    assert_eq!(answer.refused_outputs(), ["out/big"], "{}", answer.told());
}
