//! Everything that a run returns or records, for a script that holds the value of a secret.

use std::fs;

use serde_json::json;

use super::support::{VALUE, assert_not_on_disk, env_secret, find_form, forms, with_config};
use crate::harness::{Answer, Fixture};

fn run(fixture: &Fixture, command: &str, args: &[&str]) -> Answer {
    let request = json!({"command": command, "outputs": {"globs": ["out/**"]}});
    let invocation = fixture
        .request(request)
        .with_args(&["--secret", "TOKEN"])
        .with_args(args);
    with_config(fixture, invocation, &env_secret("")).run().expect_report()
}

#[track_caller]
fn assert_clean(answer: &Answer) {
    let printed = [answer.process.stdout.as_slice(), &answer.process.stderr].concat();
    assert_eq!(find_form(&printed, &forms(VALUE)), None, "{}", answer.describe());
}

#[test]
fn streams_files_and_names_show_the_name_instead_of_the_value() {
    let fixture = Fixture::new();
    let command = "printf 'a %s b' \"$TOKEN\"; printf '%s' \"$TOKEN\" | base64 >&2; cd $OUTPUT_DIR; \
                   printf '%s' \"$TOKEN\" > plain.txt; printf '\\0%s' \"$TOKEN\" > data.bin; \
                   touch \"$(printf '%s' \"$TOKEN\" | od -An -tx1 | tr -d ' \\n')\"";
    let answer = run(&fixture, command, &["--log", "debug"]);
    assert_clean(&answer);
    assert_eq!(answer.stdout(), "a [secret TOKEN] b");
    assert!(
        answer["stderr"].as_str().unwrap().starts_with("[secret TOKEN]"),
        "{}",
        answer.describe()
    );
    assert_eq!(answer.output_file("out/plain.txt")["content"], "[secret TOKEN]");
    assert_eq!(
        answer.refused_output_names(),
        ["out/[secret TOKEN]"],
        "{}",
        answer.describe()
    );
    assert_not_on_disk(&fixture.path("state"), &forms(VALUE));
}

#[test]
fn saved_and_exported_files_are_named_in_warnings() {
    let fixture = Fixture::new();
    let directory = fixture.path_str("scratch/results");
    let command = "cd $OUTPUT_DIR; printf '%s' \"$TOKEN\" > leak.txt; echo harmless > other.txt";
    for args in [["--out-dir", directory.as_str()], ["--save", "results"]] {
        let answer = run(&fixture, command, &args);
        assert_clean(&answer);
        let warnings = answer["warnings"].to_string();
        assert!(
            warnings.contains("out/leak.txt contains the value of the secret TOKEN") && !warnings.contains("other.txt"),
            "{}",
            answer.describe()
        );
    }
    // The file itself is what the script wrote.
    assert_eq!(
        fs::read_to_string(fixture.path("scratch/results/out/leak.txt")).unwrap(),
        VALUE
    );
}

#[test]
fn a_caller_who_types_the_value_finds_it_in_no_record() {
    let fixture = Fixture::new();
    let quoted = VALUE.replace('\'', "'\\''");
    let answer = run(&fixture, &format!("printf '%s' '{quoted}'"), &["--log", "info"]);
    assert_eq!(answer.stdout(), "[secret TOKEN]");
    assert_clean(&answer);
    assert_not_on_disk(&fixture.path("state/trust"), &forms(VALUE));
    assert_not_on_disk(&fixture.path("state"), &forms(VALUE));
    let listed = fixture.command(&["runs", "list", "--json"]).run();
    assert!(listed.mentions("[secret TOKEN]"), "{}", listed.describe());
    assert_clean(&listed);
}

#[test]
fn the_audit_record_marks_a_value_in_the_environment() {
    let fixture = Fixture::new();
    run(&fixture, "true", &[]);
    let exported = fixture.command(&["audit", "export"]).run();
    let text = String::from_utf8_lossy(&exported.process.stdout).into_owned();
    assert!(text.contains(r#""secrets":{"TOKEN":"env"}"#), "{text}");
}
