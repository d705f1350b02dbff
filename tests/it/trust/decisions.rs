//! The command line in each trust mode: what runs, what is refused, and how the refusal says it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::support::{run_ids, verified_records};
use crate::harness::{Answer, Fixture, need};

fn run(fixture: &Fixture, mode: &str, skill: &str) -> Answer {
    let request = json!({"skill": skill, "command": "bash scripts/run.sh"});
    fixture.request(request).with_args(&["--trust", mode]).run()
}

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    fixture.add_skill("report", &[("scripts/run.sh", "echo ran\n")]);
    fixture.add_skill("other", &[("scripts/run.sh", "echo other\n")]);
    fixture
}

#[track_caller]
fn approve(fixture: &Fixture, skill: &str) {
    let approved = fixture.command(&["approve", skill, "--yes", "--json"]).run();
    assert_eq!(approved.code, Some(0), "{}", approved.describe());
}

#[track_caller]
fn assert_refused(answer: &Answer, code: &str, words: &[&str]) {
    assert_eq!(answer.expect_refusal().0, code, "{}", answer.describe());
    assert_eq!(answer.code, Some(125));
    for word in words {
        assert!(answer.mentions(word), "{word}: {}", answer.describe());
    }
}

#[test]
fn only_approved_versions_run_and_every_change_voids_the_approval() {
    let fixture = fixture();
    assert_eq!(run(&fixture, "open", "report").stdout(), "ran\n");
    let refused = run(&fixture, "approved", "report");
    assert_refused(
        &refused,
        "not_approved",
        &["report (sha256:", "skillbox approve report"],
    );
    approve(&fixture, "report");
    assert_eq!(run(&fixture, "approved", "report").stdout(), "ran\n");

    let script = fixture.skill_path("report", "scripts/run.sh");
    fs::write(&script, "echo changed\n").unwrap();
    let refused = run(&fixture, "approved", "report");
    assert_refused(
        &refused,
        "not_approved",
        &["the last approved version is sha256:", "scripts/run.sh was changed"],
    );
    fs::write(&script, "echo ran\n").unwrap();
    assert_eq!(run(&fixture, "approved", "report").stdout(), "ran\n");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    assert_refused(
        &run(&fixture, "approved", "report"),
        "not_approved",
        &["scripts/run.sh"],
    );
    fs::set_permissions(&script, fs::Permissions::from_mode(0o644)).unwrap();

    let denied = fixture
        .request(json!({"skill": "report", "command": "true"}))
        .with_args(&["--trust", "approved", "--deny", "report"])
        .run();
    assert_refused(&denied, "denied", &["the deny list names report"]);
    let revoked = fixture.command(&["approvals", "revoke", "report", "--json"]).run();
    assert_eq!(revoked.json()["revoked"].as_array().unwrap().len(), 1);
    assert_refused(
        &run(&fixture, "approved", "report"),
        "not_approved",
        &["revoked its approval"],
    );

    let records = verified_records(&fixture);
    assert_eq!(run_ids(&records, "started").len(), 3);
    assert_eq!(run_ids(&records, "ended").len(), 3);
    assert_eq!(run_ids(&records, "denied").len(), 5);
    let managed: Vec<_> = records.iter().filter(|record| record["class_uid"] == 3004).collect();
    assert_eq!(managed.len(), 2, "one approval and one revocation");
}

#[test]
fn skills_beside_the_main_one_and_inputs_from_skills_are_checked_too() {
    let fixture = fixture();
    approve(&fixture, "report");
    let requests = [
        json!({"skill": "report", "command": "true", "with_skills": ["other"]}),
        json!({"skill": "report", "command": "bash ../../work/inputs/run.sh",
            "inputs": [{"from": "skill://other/scripts/run.sh"}]}),
    ];
    for request in &requests {
        let refused = fixture
            .request(request.clone())
            .with_args(&["--trust", "approved"])
            .run();
        assert_refused(&refused, "not_approved", &["other (sha256:", "skillbox approve other"]);
    }
    assert_eq!(run_ids(&verified_records(&fixture), "started").len(), 0);
    approve(&fixture, "other");
    for request in requests {
        let answer = fixture.request(request).with_args(&["--trust", "approved"]).run();
        assert_eq!(answer.code, Some(0), "{}", answer.describe());
    }
}

#[test]
fn only_locked_versions_run_and_the_check_names_every_file() {
    let fixture = fixture();
    let lock_file = fixture.path_str("scratch/skillbox.lock");
    let refused = run(&fixture, "locked", "report");
    assert_refused(&refused, "not_locked", &["skillbox lock report"]);
    let locked = fixture.command(&["lock", "report", "--json"]).run();
    assert_eq!(locked.json()["path"], json!(lock_file), "{}", locked.describe());
    assert_eq!(run(&fixture, "locked", "report").stdout(), "ran\n");
    assert_refused(&run(&fixture, "locked", "other"), "not_locked", &["does not name it"]);
    let check = |names: &[&str]| fixture.command(&[&["lock", "--check"], names].concat()).run();
    assert_eq!(check(&["report"]).code, Some(0));

    fs::write(fixture.skill_path("report", "scripts/run.sh"), "echo changed\n").unwrap();
    fs::write(fixture.skill_path("report", "scripts/new.sh"), "").unwrap();
    let refused = run(&fixture, "locked", "report");
    assert_refused(
        &refused,
        "lock_mismatch",
        &["scripts/new.sh was added", "skillbox lock report"],
    );
    let differs = check(&[]);
    assert_eq!(differs.code, Some(1));
    for line in [
        "report: scripts/new.sh was added",
        "report: scripts/run.sh was changed",
        "other: not in the lock file",
    ] {
        assert!(differs.mentions(line), "{line}: {}", differs.describe());
    }
    let locked = fixture.command(&["lock"]).run();
    assert_eq!(locked.code, Some(0), "{}", locked.describe());
    assert_eq!(check(&[]).code, Some(0));
    assert_eq!(run(&fixture, "locked", "report").stdout(), "changed\n");
}

#[test]
fn a_damaged_file_is_an_error_and_never_no_policy() {
    let fixture = fixture();
    approve(&fixture, "report");
    let approvals = fixture.path("state/trust/approvals");
    let approval = fs::read_dir(&approvals).unwrap().next().unwrap().unwrap().path();
    let intact = fs::read(&approval).unwrap();
    let mut damaged = intact.clone();
    damaged[40] ^= 1;
    fs::write(&approval, &damaged).unwrap();
    for mode in ["approved", "open"] {
        let refused = run(&fixture, mode, "report");
        assert_refused(
            &refused,
            "not_approved",
            &["is not authentic", approval.to_str().unwrap()],
        );
    }
    fs::write(&approval, &intact).unwrap();
    assert_eq!(run(&fixture, "approved", "report").stdout(), "ran\n");

    fs::write(fixture.path("scratch/skillbox.lock"), "{\n<<<<<<<\n").unwrap();
    assert_refused(
        &run(&fixture, "locked", "report"),
        "lock_mismatch",
        &["skillbox.lock:2 is invalid"],
    );

    let head = fixture.path("state/trust/audit/head");
    let intact = fs::read(&head).unwrap();
    fs::write(&head, "nothing").unwrap();
    assert_refused(&run(&fixture, "open", "report"), "storage", &["audit/head"]);
    fs::write(&head, &intact).unwrap();
    fs::remove_file(fixture.path("state/trust/host.key")).unwrap();
    assert_refused(
        &run(&fixture, "open", "report"),
        "storage",
        &["the host key", "is missing"],
    );
}

#[test]
fn a_run_whose_record_cannot_be_written_is_refused() {
    let fixture = fixture();
    assert_eq!(run(&fixture, "open", "report").stdout(), "ran\n");
    // A directory in place of the log file fails for root, too.
    let log = fixture.path("state/trust/audit/log-00000000.jsonl");
    fs::rename(&log, fixture.path("state/saved")).unwrap();
    fs::create_dir(&log).unwrap();
    assert_refused(&run(&fixture, "open", "report"), "storage", &["log-00000000.jsonl"]);
    fs::remove_dir(&log).unwrap();
    fs::rename(fixture.path("state/saved"), &log).unwrap();
    assert_eq!(run(&fixture, "open", "report").stdout(), "ran\n");

    let answer = fixture
        .request(json!({"skill": "report", "command": "true"}))
        .with_args(&["--audit", "off", "--trust-dir", "/proc/nothing"])
        .run();
    assert_eq!(answer.code, Some(0), "{}", answer.describe());
}

#[test]
fn approvals_are_transferred_between_hosts_by_signature() {
    let (review, production) = (fixture(), fixture());
    approve(&review, "report");
    let exported = review.command(&["approvals", "export"]).run();
    let file = production.path_str("scratch/approvals.signed");
    fs::write(&file, &exported.process.stdout).unwrap();
    assert_refused(&run(&production, "approved", "report"), "not_approved", &[]);
    let import = |key: &str| {
        production
            .command(&["approvals", "import", &file, "--key", key, "--json"])
            .run()
    };
    let own_key = production.path_str("state/trust/host.pub");
    assert_eq!(import(&own_key).expect_refusal().0, "not_approved");
    let key = review.path_str("state/trust/host.pub");
    let imported = import(&key);
    assert_eq!(
        imported.json()["imported"][0]["skill"],
        "report",
        "{}",
        imported.describe()
    );
    assert_eq!(run(&production, "approved", "report").stdout(), "ran\n");
    assert_refused(&run(&production, "approved", "other"), "not_approved", &[]);
    assert_eq!(
        production.command(&["approvals", "revoke", "report"]).run().code,
        Some(0)
    );
    assert_eq!(import(&key).json()["imported"], json!([]));
    assert_refused(&run(&production, "approved", "report"), "not_approved", &[]);
}

#[test]
fn only_skills_of_the_required_publisher_run() {
    let has_openssl = std::path::Path::new("/usr/bin/openssl").exists();
    if !need(has_openssl, "the program openssl, to make keys") {
        return;
    }
    let fixture = fixture();
    let required = |publisher: &str| {
        let keys = format!("acme={publisher}");
        let arguments = ["--require-signature", "acme", "--publishers", &keys];
        let request = json!({"skill": "report", "command": "bash scripts/run.sh"});
        fixture.request(request).with_args(&arguments).run()
    };
    let make_key = |name: &str| {
        let path = fixture.path_str(name);
        let generate = format!(
            "openssl ecparam -name prime256v1 -genkey -noout -out {path} && openssl ec -in {path} -pubout -out {path}.pub"
        );
        fixture.control_shell(&generate);
        path
    };
    let (acme, mallory) = (make_key("acme.pem"), make_key("mallory.pem"));
    let acme_public = format!("{acme}.pub");
    assert_refused(
        &required(&acme_public),
        "signature_invalid",
        &["it is not signed", "acme must sign"],
    );
    for (key, is_accepted) in [(&mallory, false), (&acme, true)] {
        let signed = fixture.command(&["sign", "report", "--key", key]).run();
        assert_eq!(signed.code, Some(0), "{}", signed.describe());
        let answer = required(&acme_public);
        assert_eq!(!answer.is_refused(), is_accepted, "{key}: {}", answer.describe());
    }
    let publishers = format!("acme={acme_public}");
    let verify = || {
        fixture
            .command(&["verify", "report", "--publishers", &publishers])
            .run()
    };
    assert_eq!(verify().code, Some(0));
    fs::write(fixture.skill_path("report", "scripts/unsigned.sh"), "echo x\n").unwrap();
    assert_refused(&required(&acme_public), "signature_invalid", &["scripts/unsigned.sh"]);
    assert_eq!(verify().code, Some(1));
}
