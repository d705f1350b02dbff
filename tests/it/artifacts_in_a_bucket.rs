//! The commands with artifacts in a bucket: put, list, versions, get, rm, saved outputs, inputs, sessions.

use std::fs;

use crate::cli::{Cli, CommandOutput};
use crate::harness::S3Server;

/// A command line whose settings name a bucket.
fn cli_with_bucket(s3: &S3Server, url: &str) -> Cli {
    let mut cli = Cli::new();
    for (name, value) in s3.variables() {
        cli.set_variable(name, &value);
    }
    cli.write_file("skillbox.toml", format!("artifacts = {url:?}\nskills = []\n"));
    cli.run("config trust").expect_code(0);
    cli
}

fn names(output: CommandOutput) -> Vec<String> {
    let listed = output.expect_code(0).json();
    let artifacts = listed["artifacts"].as_array().unwrap().iter();
    artifacts
        .map(|artifact| format!("{}@{}", artifact["name"].as_str().unwrap(), artifact["version"]))
        .collect()
}

#[test]
fn every_artifacts_command_works_on_a_bucket() {
    let Some(s3) = S3Server::start() else { return };
    let cli = cli_with_bucket(&s3, &s3.url("verbs"));
    cli.write_file("data.csv", "a,b\n1,2\n");
    assert_eq!(
        names(cli.run("artifacts put data.csv --name in/data.csv --json")),
        ["in/data.csv@0"]
    );
    assert_eq!(
        names(cli.run("artifacts put data.csv --name in/data.csv --json")),
        ["in/data.csv@1"]
    );
    assert_eq!(names(cli.run("artifacts list --json")), ["in/data.csv@1"]);
    assert_eq!(
        names(cli.run("artifacts versions in/data.csv --json")),
        ["in/data.csv@0", "in/data.csv@1"]
    );
    assert_eq!(
        cli.run("artifacts get in/data.csv@0").expect_code(0).stdout,
        "a,b\n1,2\n"
    );
    assert_eq!(names(cli.run("artifacts rm in/data.csv@1 --json")), ["in/data.csv@1"]);
    assert_eq!(names(cli.run("artifacts list --json")), ["in/data.csv@0"]);
    // The state directory contains nothing of it.
    let state = cli.home_dir().join(".local/state/skillbox/artifacts");
    assert!(!state.join("artifacts").exists() && !state.join("cas").exists());
    // The flag overrides the file, and another prefix is another store.
    let elsewhere = format!("artifacts list --json --artifacts {}", s3.url("elsewhere"));
    assert_eq!(names(cli.run(&elsewhere)), [""; 0]);
}

#[test]
fn runs_save_to_a_bucket_and_take_inputs_from_it() {
    let Some(s3) = S3Server::start() else { return };
    let cli = cli_with_bucket(&s3, &s3.url("runs"));
    let run = |words: &[&str]| {
        let mut line = vec!["run", "python-math", "--json", "--skills"];
        let skills = crate::workspace::root().join("skills");
        line.push(skills.to_str().unwrap());
        line.extend(words);
        cli.run_args(&line).expect_code(0).json()
    };
    let saved = run(&["--output", "out/*", "--save=kept/", "--", "echo 42 > out/answer.txt"]);
    assert_eq!(
        saved["artifact_files"][0]["ref"], "artifact://kept/out/answer.txt@0",
        "{saved}"
    );
    for mode in ["", ",link"] {
        let input = format!("artifact://kept/out/answer.txt=work/inputs/a.txt{mode}");
        let read = run(&["--input", &input, "--", "cat $WORK_DIR/inputs/a.txt"]);
        assert_eq!(read["stdout"], "42\n", "{input}: {read}");
    }
    // The artifacts of a session are its own, and are removed with it.
    run(&[
        "--session",
        "s1",
        "--output",
        "out/*",
        "--save",
        "--",
        "echo 1 > out/mine.txt",
    ]);
    assert_eq!(names(cli.run("artifacts list --session s1 --json")), ["out/mine.txt@0"]);
    assert_eq!(names(cli.run("artifacts list --json")), ["kept/out/answer.txt@0"]);
    cli.run("session rm s1").expect_code(0);
    assert_eq!(names(cli.run("artifacts list --session s1 --json")), [""; 0]);
}

#[test]
fn s30_damaged_inputs_are_refused_before_the_script_starts() {
    let Some(s3) = S3Server::start() else { return };
    let cli = cli_with_bucket(&s3, &s3.url("damage"));
    cli.write_file("x.txt", "right");
    let put = cli.run("artifacts put x.txt --json").expect_code(0).json();
    let digest = put["artifacts"][0]["sha256"].as_str().unwrap().to_owned();
    let run = |mode: &str| {
        let input = format!("artifact://x.txt=work/inputs/x{mode}");
        cli.run_args(&[
            "run",
            "python-math",
            "--skills",
            "skills",
            "--json",
            "--input",
            &input,
            "--",
            "cat inputs/x",
        ])
    };
    cli.add_skill("skills/python-math", "Reads a file.");
    // The control: undamaged content is read.
    assert_eq!(run("").expect_code(0).json()["stdout"], "right");
    let hex = digest.trim_start_matches("sha256:");
    s3.control(&format!("damage?key=damage/cas/sha256/{}/{hex}", &hex[..2]));
    for mode in ["", ",link"] {
        let error = run(mode).expect_code(125).json()["error"].clone();
        assert_eq!(error["code"], "storage", "{error}");
        assert!(error["message"].as_str().unwrap().contains("damaged"), "{error}");
    }
    let get = cli.run("artifacts get x.txt").expect_code(1);
    assert!(get.stderr.contains("damaged"), "{}", get.stderr);
}

#[test]
fn bucket_errors_have_a_code_and_a_hint() {
    let Some(s3) = S3Server::start() else { return };
    let check = |cli: &Cli, line: &str, code: i32, expected: &str, hint: &str| {
        let output = cli.run(line).expect_code(code);
        let error = output.json()["error"].clone();
        assert_eq!(error["code"], expected, "{error}");
        assert!(error["hint"].as_str().unwrap().contains(hint), "{error}");
        assert!(!output.stdout.contains(s3.field("secret_access_key")), "{error}");
    };
    let mut denied = cli_with_bucket(&s3, &s3.url("x"));
    denied.set_variable("AWS_ACCESS_KEY_ID", "AKIAWRONG");
    check(&denied, "artifacts list --json", 1, "store_denied", "AWS_ACCESS_KEY_ID");
    let missing = cli_with_bucket(&s3, "s3://nowhere/x");
    check(
        &missing,
        "artifacts list --json",
        1,
        "bucket_missing",
        "create the bucket",
    );
    let run = "run python-math --json --input artifact://x -- true";
    check(&missing, run, 125, "bucket_missing", "create the bucket");
    let mut down = cli_with_bucket(&s3, &s3.url("x"));
    down.set_variable("AWS_ENDPOINT_URL", "http://127.0.0.1:9");
    check(
        &down,
        "artifacts list --json",
        1,
        "store_unreachable",
        "artifacts_endpoint",
    );
    let mut unencrypted = cli_with_bucket(&s3, &s3.url("x"));
    unencrypted.set_variable("AWS_ENDPOINT_URL", "http://store.example");
    check(&unencrypted, "artifacts list --json", 1, "invalid_request", "https://");
    unencrypted.set_variable("AWS_ENDPOINT_URL", "http://127.example.com");
    check(&unencrypted, "artifacts list --json", 1, "invalid_request", "https://");
    // Commands that do not use the store work.
    down.run("list --json").expect_code(0);
}

#[test]
fn artifacts_can_be_stored_in_another_directory() {
    let cli = Cli::new();
    cli.write_file("skillbox.toml", "artifacts = \"kept\"\n")
        .write_file("x.txt", "x");
    cli.run("config trust").expect_code(0);
    assert_eq!(names(cli.run("artifacts put x.txt --json")), ["x.txt@0"]);
    assert!(fs::exists(cli.work_dir().join("kept/artifacts/user/n-x.txt/v000000.json")).unwrap());
    let bad = cli
        .run("artifacts list --artifacts ftp://x --json")
        .expect_code(2)
        .json();
    assert!(bad["error"]["message"].as_str().unwrap().contains("s3://"), "{bad}");
}

#[test]
fn s31_credentials_in_a_url_are_refused_and_not_shown() {
    let cli = Cli::new();
    for flags in [
        "--artifacts s3://key:SECRET@bucket",
        "--artifacts s3://key:SEC/RET@bucket/x",
        "--artifacts-endpoint http://key:SECRET@127.0.0.1:9",
        "--artifacts-endpoint http://key:SEC/RET@127.0.0.1:9",
    ] {
        for command in ["artifacts list", "config show", "config show --json"] {
            let refused = cli.run(&format!("{command} {flags}")).expect_code(2);
            let shown = format!("{}{}", refused.stdout, refused.stderr);
            assert!(!shown.contains("SEC") && !shown.contains("RET"), "{shown}");
        }
    }
    // Control: URLs without credentials are accepted and shown.
    let accepted = "config show --artifacts s3://bucket/x --artifacts-endpoint http://127.0.0.1:9";
    let shown = cli.run(accepted).expect_code(0).stdout;
    assert!(
        shown.contains("s3://bucket/x") && shown.contains("http://127.0.0.1:9"),
        "{shown}"
    );
}
