//! The commands with artifacts in a bucket: put, list, versions, get, rm, saved outputs, inputs, sessions.

use std::fs;

use crate::lab::S3;
use crate::program::{Ran, World};

/// A world whose settings lead to a bucket.
fn world(s3: &S3, url: &str) -> World {
    let mut world = World::new();
    for (name, value) in s3.variables() {
        world.set(name, &value);
    }
    world.write("skillbox.toml", format!("artifacts = {url:?}\nskills = []\n"));
    world
}

fn names(ran: Ran) -> Vec<String> {
    let listed = ran.expect_code(0).json();
    let artifacts = listed["artifacts"].as_array().unwrap().iter();
    artifacts
        .map(|artifact| format!("{}@{}", artifact["name"].as_str().unwrap(), artifact["version"]))
        .collect()
}

#[test]
fn every_verb_works_on_a_bucket() {
    let Some(s3) = S3::start() else { return };
    let world = world(&s3, &s3.url("verbs"));
    world.write("data.csv", "a,b\n1,2\n");
    assert_eq!(
        names(world.run("artifacts put data.csv --name in/data.csv --json")),
        ["in/data.csv@0"]
    );
    assert_eq!(
        names(world.run("artifacts put data.csv --name in/data.csv --json")),
        ["in/data.csv@1"]
    );
    assert_eq!(names(world.run("artifacts list --json")), ["in/data.csv@1"]);
    assert_eq!(
        names(world.run("artifacts versions in/data.csv --json")),
        ["in/data.csv@0", "in/data.csv@1"]
    );
    assert_eq!(
        world.run("artifacts get in/data.csv@0").expect_code(0).stdout,
        "a,b\n1,2\n"
    );
    assert_eq!(names(world.run("artifacts rm in/data.csv@1 --json")), ["in/data.csv@1"]);
    assert_eq!(names(world.run("artifacts list --json")), ["in/data.csv@0"]);
    // Nothing of it lies in the state directory.
    let state = world.home().join(".local/state/skillbox/artifacts");
    assert!(!state.join("artifacts").exists() && !state.join("cas").exists());
    // The flag wins over the file, and another prefix is another store.
    let elsewhere = format!("artifacts list --json --artifacts {}", s3.url("elsewhere"));
    assert_eq!(names(world.run(&elsewhere)), [""; 0]);
}

#[test]
fn runs_save_to_a_bucket_and_take_inputs_from_it() {
    let Some(s3) = S3::start() else { return };
    let world = world(&s3, &s3.url("runs"));
    let run = |words: &[&str]| {
        let mut line = vec!["run", "python-math", "--json", "--skills"];
        let skills = crate::workspace::root().join("skills");
        line.push(skills.to_str().unwrap());
        line.extend(words);
        world.run_words(&line).expect_code(0).json()
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
    // A session's artifacts are its own, and go with it.
    run(&[
        "--session",
        "s1",
        "--output",
        "out/*",
        "--save",
        "--",
        "echo 1 > out/mine.txt",
    ]);
    assert_eq!(
        names(world.run("artifacts list --session s1 --json")),
        ["out/mine.txt@0"]
    );
    assert_eq!(names(world.run("artifacts list --json")), ["kept/out/answer.txt@0"]);
    world.run("session rm s1").expect_code(0);
    assert_eq!(names(world.run("artifacts list --session s1 --json")), [""; 0]);
}

#[test]
fn s30_damage_is_told_before_a_script_sees_it() {
    let Some(s3) = S3::start() else { return };
    let world = world(&s3, &s3.url("damage"));
    world.write("x.txt", "right");
    let put = world.run("artifacts put x.txt --json").expect_code(0).json();
    let digest = put["artifacts"][0]["sha256"].as_str().unwrap().to_owned();
    let run = |mode: &str| {
        let input = format!("artifact://x.txt=work/inputs/x{mode}");
        world.run_words(&[
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
    world.skill("skills/python-math", "Reads a file.");
    // The control: what is whole is read.
    assert_eq!(run("").expect_code(0).json()["stdout"], "right");
    let hex = digest.trim_start_matches("sha256:");
    s3.control(&format!("damage?key=damage/cas/sha256/{}/{hex}", &hex[..2]));
    for mode in ["", ",link"] {
        let error = run(mode).expect_code(125).json()["error"].clone();
        assert_eq!(error["code"], "storage", "{error}");
        assert!(error["message"].as_str().unwrap().contains("damaged"), "{error}");
    }
    let get = world.run("artifacts get x.txt").expect_code(1);
    assert!(get.stderr.contains("damaged"), "{}", get.stderr);
}

#[test]
fn what_is_wrong_with_a_bucket_is_said_with_a_code_and_a_hint() {
    let Some(s3) = S3::start() else { return };
    let check = |world: &World, line: &str, code: i32, expected: &str, hint: &str| {
        let ran = world.run(line).expect_code(code);
        let error = ran.json()["error"].clone();
        assert_eq!(error["code"], expected, "{error}");
        assert!(error["hint"].as_str().unwrap().contains(hint), "{error}");
        assert!(!ran.stdout.contains(s3.told("secret_access_key")), "{error}");
    };
    let mut denied = world(&s3, &s3.url("x"));
    denied.set("AWS_ACCESS_KEY_ID", "AKIAWRONG");
    check(&denied, "artifacts list --json", 1, "store_denied", "AWS_ACCESS_KEY_ID");
    let missing = world(&s3, "s3://nowhere/x");
    check(&missing, "artifacts list --json", 1, "bucket_missing", "create it");
    let run = "run python-math --json --input artifact://x -- true";
    check(&missing, run, 125, "bucket_missing", "create it");
    let mut down = world(&s3, &s3.url("x"));
    down.set("AWS_ENDPOINT_URL", "http://127.0.0.1:9");
    check(
        &down,
        "artifacts list --json",
        1,
        "store_unreachable",
        "artifacts_endpoint",
    );
    let mut clear = world(&s3, &s3.url("x"));
    clear.set("AWS_ENDPOINT_URL", "http://store.example");
    check(&clear, "artifacts list --json", 1, "invalid_request", "https://");
    // What does not touch the store does not care.
    down.run("list --json").expect_code(0);
}

#[test]
fn a_directory_of_its_own_needs_no_bucket() {
    let world = World::new();
    world
        .write("skillbox.toml", "artifacts = \"kept\"\n")
        .write("x.txt", "x");
    assert_eq!(names(world.run("artifacts put x.txt --json")), ["x.txt@0"]);
    assert!(fs::exists(world.work().join("kept/artifacts/user/n-x.txt/v000000.json")).unwrap());
    let bad = world
        .run("artifacts list --artifacts ftp://x --json")
        .expect_code(2)
        .json();
    assert!(bad["error"]["message"].as_str().unwrap().contains("s3://"), "{bad}");
    let secret = world
        .run("artifacts list --artifacts s3://key:SECRET@bucket")
        .expect_code(2);
    assert!(!secret.stderr.contains("SECRET"), "{}", secret.stderr);
}
