//! A batch on one server: the jobs, their files and their results travel; the record is read from any host.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::hosts::{QueueWords, Worker, error_code, other_host, submitter};
use crate::batch::results::{read_results, summary};
use crate::harness::{Fixture, Invocation, NatsCluster, NatsVersion, S3Server};

const COMMAND: &str = "scripts/double.sh {input} > out/doubled && printf x > out/run.sh && chmod +x out/run.sh && \
                       test {stem} != bad";

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    let skill = fixture.add_skill("double", &[("scripts/double.sh", "#!/bin/sh\ncat \"$1\" \"$1\"\n")]);
    fs::set_permissions(skill.join("scripts/double.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["one", "two", "three", "bad"] {
        fixture.add_host_file(&format!("data/{name}.txt"), name);
    }
    fixture
}

/// What must not depend on where a job ran.
fn outcomes(results: &BTreeMap<String, Value>) -> BTreeMap<&str, Value> {
    let outcomes = results.iter().map(|(id, result)| {
        let inputs = result["staged_inputs"].as_array().unwrap().iter();
        let inputs: Vec<_> = inputs.map(|input| json!([input["from"], input["to"]])).collect();
        let fields = [
            "key",
            "status",
            "cause",
            "reason",
            "skill_digest",
            "exit_code",
            "profile",
        ];
        let fields = fields.map(|field| result[field].clone());
        (id.as_str(), json!([fields, inputs]))
    });
    outcomes.collect()
}

#[test]
fn workers_without_the_skill_and_the_files_give_the_same_results() {
    let fixture = fixture();
    let Some(nats) = NatsCluster::start(NatsVersion::New, 1, fixture.root_dir()) else {
        return;
    };
    let queue = QueueWords::with_directory(&fixture, &nats.address());
    let each = ["batch", "run", "--skill", "double", "--each", "data/*.txt", "--json"];
    let run = |more: &[&str]| {
        let args: Vec<&str> = each.iter().chain(more).chain(&["--", COMMAND]).copied().collect();
        submitter(&fixture, &queue, &args).in_dir(&fixture.path("host"))
    };
    let workers = ["w1", "w2"].map(|host| Worker::start(&fixture, &queue, host, &["--jobs", "2"]));
    let out = fixture.path_str("queued");
    let answer = run(&["--name", "doubles", "--out", &out]).run();
    assert_eq!(answer.code, Some(1), "{}", answer.describe());
    assert_eq!(
        (&answer["ok"], &answer["failed"], &answer["not_run"]),
        (&json!(3), &json!(1), &json!(0))
    );

    // The same batch on this host alone.
    let alone = fixture.path_str("alone");
    let args: Vec<&str> = each.iter().chain(&["--out", &alone, "--", COMMAND]).copied().collect();
    fixture.command(&args).in_dir(&fixture.path("host")).run();
    let (queued, local) = (read_results(out.as_ref()), read_results(alone.as_ref()));
    assert_eq!(outcomes(&queued), outcomes(&local));
    for (id, result) in &queued {
        assert!(
            result["worker"].as_str().is_some_and(|worker| !worker.is_empty()),
            "{id}"
        );
        for file in ["out/doubled", "out/run.sh"] {
            let read = |out: &str| {
                let path = format!("{out}/jobs/{id}/{file}");
                let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o100;
                (fs::read(&path).unwrap(), mode)
            };
            assert_eq!(read(&out), read(&alone), "{id} {file}");
        }
    }
    assert_eq!(
        fs::read_to_string(format!("{out}/jobs/two.txt/out/doubled")).unwrap(),
        "twotwo"
    );
    assert_eq!(summary(out.as_ref())["causes"], json!({"exit": 1}));

    // The record, from a host that never saw the batch.
    let status = || other_host(&fixture, &queue, "w3", &["batch", "status", "doubles", "--json"]).run();
    let status = fixture.wait_for("both workers in the status", || {
        Some(status()).filter(|status| status["workers"].as_array().is_some_and(|workers| workers.len() == 2))
    });
    assert_eq!(
        (&status["ok"], &status["failed"], &status["cancelled"]),
        (&json!(3), &json!(1), &json!(false))
    );
    let state = fixture.path_str("w3");
    let read = [
        "--state-dir",
        &state,
        "--artifacts",
        queue.store(),
        "batch",
        "results",
        "doubles",
        "--json",
    ];
    let lines = fixture.plain_command(&read).run();
    let lines = String::from_utf8(lines.process.stdout).unwrap();
    let from_store: BTreeMap<String, Value> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|line| (line["id"].as_str().unwrap().to_owned(), line))
        .collect();
    assert_eq!(from_store, queued);

    // The name is taken: for the same batch, and for another one.
    let again = run(&["--name", "doubles"]).run();
    assert_eq!((again.code, error_code(&again).as_str()), (Some(125), "already_exists"));
    assert!(
        again["error"]["hint"].as_str().unwrap().contains("--resume"),
        "{}",
        again.describe()
    );
    let other = [
        "batch",
        "run",
        "--skill",
        "probe",
        "--each",
        "data/*.txt",
        "--json",
        "--name",
        "doubles",
        "--resume",
        "--",
        "true",
    ];
    let other = submitter(&fixture, &queue, &other).in_dir(&fixture.path("host")).run();
    assert!(
        other["error"]["message"].as_str().unwrap().contains("another batch"),
        "{}",
        other.describe()
    );

    // Resuming runs only what is new; failed jobs run again if asked.
    let resumed = run(&["--name", "doubles", "--resume"]).run();
    assert_eq!(
        (&resumed["resumed"], &resumed["executed"]),
        (&json!(4), &json!(0)),
        "{}",
        resumed.describe()
    );
    fixture.add_host_file("data/one.txt", "1");
    let changed = run(&["--name", "doubles", "--resume", "--out", &out]).run();
    assert_eq!(
        (&changed["resumed"], &changed["executed"]),
        (&json!(3), &json!(1)),
        "{}",
        changed.describe()
    );
    assert_eq!(
        fs::read_to_string(format!("{out}/jobs/one.txt/out/doubled")).unwrap(),
        "11"
    );
    let retried = run(&["--name", "doubles", "--resume-failed", "--out", &out]).run();
    assert_eq!(
        (&retried["executed"], &retried["failed"]),
        (&json!(1), &json!(1)),
        "{}",
        retried.describe()
    );
    let after = read_results(out.as_ref());
    assert_eq!(after.len(), 4);
    assert_ne!(after["bad.txt"]["run_id"], queued["bad.txt"]["run_id"]);
    assert_eq!(after["two.txt"]["run_id"], queued["two.txt"]["run_id"]);
    for worker in workers {
        assert_eq!(worker.terminate(), Some(0));
    }
}

#[test]
fn the_store_can_be_a_bucket() {
    let fixture = fixture();
    let Some(nats) = NatsCluster::start(NatsVersion::New, 1, fixture.root_dir()) else {
        return;
    };
    let Some(s3) = S3Server::start() else { return };
    let queue = QueueWords::new(&nats.address(), &s3.url("batches-test"));
    let each = [
        "batch",
        "run",
        "--skill",
        "double",
        "--each",
        "data/*.txt",
        "--json",
        "--name",
        "s3",
        "--",
        COMMAND,
    ];
    let submit = || with_keys(&s3, submitter(&fixture, &queue, &each).in_dir(&fixture.path("host")));
    let detached = submit().with_args(&["--detach"]).run();
    assert_eq!(detached.code, Some(0), "{}", detached.describe());
    // The worker ends by itself when everything is done.
    let worker = ["worker", "--jobs", "2", "--exit-when-idle", "3", "--json"];
    let worker = with_keys(&s3, other_host(&fixture, &queue, "w1", &worker)).run();
    assert_eq!(
        (worker.code, &worker["finished"]),
        (Some(0), &json!(4)),
        "{}",
        worker.describe()
    );
    let collected = submit().with_args(&["--resume"]).run();
    assert_eq!(
        (&collected["ok"], &collected["failed"]),
        (&json!(3), &json!(1)),
        "{}",
        collected.describe()
    );
}

/// The command with access to the bucket.
fn with_keys<'f>(s3: &S3Server, command: Invocation<'f>) -> Invocation<'f> {
    let variables = s3.variables().into_iter();
    variables.fold(command, |command, (name, value)| command.env(name, value))
}
