//! Attempts to run, hide or bring back what nobody accepted.

use std::fs;

use serde_json::json;

use super::support::verified_records;
use crate::harness::{Fixture, need};

#[test]
fn commands_that_start_alike_have_different_records() {
    let fixture = Fixture::new();
    let padding = "x".repeat(9_000);
    let commands = ["a", "b"].map(|end| format!("true # {padding}{end}"));
    for command in &commands {
        assert_eq!(fixture.request(json!({"command": command})).run().code, Some(0));
    }
    // A blank within a word is not a blank between words.
    for argv in [json!(["echo", "a b"]), json!(["echo", "a", "b"])] {
        assert_eq!(fixture.request(json!({"argv": argv})).run().code, Some(0));
    }
    fixture.add_skill("neighbour", &[("x", "x")]);
    let request = json!({
        "command": "true", "with_skills": ["neighbour"], "env": {"NAME": "the-value"},
        "inputs": [{"from": "skill://neighbour", "to": "work/inputs/n"}],
    });
    assert_eq!(fixture.request(request).run().code, Some(0));
    let records = verified_records(&fixture);
    let started: Vec<_> = records.iter().filter(|record| record["activity_id"] == 1).collect();
    assert_eq!(started.len(), 5);
    for (first, second) in [(0, 1), (2, 3)] {
        let (first, second) = (&started[first], &started[second]);
        assert_ne!(
            first["unmapped"]["request_sha256"],
            second["unmapped"]["request_sha256"]
        );
        assert!(first["unmapped"]["request_sha256"].is_string(), "{first}");
    }
    assert_ne!(started[0]["process"]["cmd_line"], started[1]["process"]["cmd_line"]);
    assert_eq!(
        started[2]["process"]["cmd_line"], started[3]["process"]["cmd_line"],
        "the control"
    );
    assert_eq!(started[2]["unmapped"]["argv"], json!(["echo", "a b"]));
    let facts = &started[4]["unmapped"];
    assert_eq!(facts["env_names"], json!(["NAME"]));
    assert_eq!(facts["with_skills"][0]["name"], "neighbour");
    assert!(facts["with_skills"][0]["sha256"].is_string(), "{facts}");
    assert!(facts["inputs"][0]["sha256"].is_string(), "{facts}");
    assert!(!started[4].to_string().contains("the-value"));
}

#[test]
fn an_empty_directory_is_not_part_of_a_skill() {
    let fixture = Fixture::new();
    fixture.add_skill("report", &[("scripts/run.sh", "find . -mindepth 1 -type d\n")]);
    let run = || {
        let request = json!({"skill": "report", "command": "bash scripts/run.sh"});
        fixture.request(request).with_args(&["--trust", "approved"]).run()
    };
    let approved = fixture.command(&["approve", "report", "--yes", "--json"]).run();
    assert_eq!(approved.code, Some(0), "{}", approved.describe());
    let before = run();
    assert!(
        before.stdout().contains("./scripts"),
        "the control: {}",
        before.describe()
    );
    // The next run freezes the skill again, with the empty directory.
    fs::remove_dir_all(fixture.path("state/snapshots")).unwrap();
    fs::create_dir_all(fixture.skill_path("report", "planted/deep")).unwrap();
    let after = run();
    assert_eq!(after.stdout(), before.stdout(), "{}", after.describe());
}

#[test]
fn a_link_is_not_a_signature_file() {
    let has_openssl = std::path::Path::new("/usr/bin/openssl").exists();
    if !need(has_openssl, "the program openssl, to make keys") {
        return;
    }
    let fixture = Fixture::new();
    fixture.add_skill("report", &[("scripts/run.sh", "echo ran\n")]);
    let key = fixture.path_str("key.pem");
    fixture.control_shell(&format!(
        "openssl ecparam -name prime256v1 -genkey -noout -out {key} && openssl ec -in {key} -pubout -out {key}.pub"
    ));
    let publishers = format!("acme={key}.pub");
    let run = || {
        let request = json!({"skill": "report", "command": "bash scripts/run.sh"});
        let arguments = ["--require-signature", "acme", "--publishers", &publishers];
        fixture.request(request).with_args(&arguments).run()
    };
    let signed = fixture.command(&["sign", "report", "--key", &key]).run();
    assert_eq!(signed.code, Some(0), "{}", signed.describe());
    assert_eq!(run().stdout(), "ran\n", "the control");
    let planted = fixture.skill_path("report", "skill.manifest");
    std::os::unix::fs::symlink("scripts/run.sh", planted).unwrap();
    let refused = run();
    assert_eq!(
        refused.expect_refusal().0,
        "signature_invalid",
        "{}",
        refused.describe()
    );
}

#[test]
fn an_approval_that_was_revoked_is_not_brought_back() {
    let fixture = Fixture::new();
    fixture.add_skill("report", &[("scripts/run.sh", "echo ran\n")]);
    let run = || {
        let request = json!({"skill": "report", "command": "bash scripts/run.sh"});
        fixture.request(request).with_args(&["--trust", "approved"]).run()
    };
    let approve = || fixture.command(&["approve", "report", "--yes", "--json"]).run().code;
    assert_eq!(approve(), Some(0));
    let directory = fixture.path("state/trust/approvals");
    let file = fs::read_dir(directory).unwrap().next().unwrap().unwrap().path();
    let saved = fs::read(&file).unwrap();
    assert_eq!(run().stdout(), "ran\n", "the control");
    let revoked = fixture.command(&["approvals", "revoke", "report"]).run();
    assert_eq!(revoked.code, Some(0), "{}", revoked.describe());
    fs::write(&file, saved).unwrap();
    let refused = run();
    assert_eq!(refused.expect_refusal().0, "not_approved", "{}", refused.describe());
    assert!(refused.mentions("was revoked"), "{}", refused.describe());
}
