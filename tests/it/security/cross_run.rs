//! 3.10: a run affects no later run, a session no other session, and a skill not itself.

use serde_json::json;

use crate::harness::{Fixture, is_refusal, tree_contents};

#[test]
pub fn h121_files_of_a_run_are_removed_with_it() {
    let fixture = Fixture::new();
    let places = "/tmp /dev/shm /var/tmp $HOME $HOME/.cache $HOME/.config $TMPDIR /workspace/work /workspace/out $RUN_DIR /workspace";
    let writer = fixture.run_shell(&format!(
        "mkdir -p $HOME/.cache $HOME/.config; for p in {places}; do echo x > $p/left-behind && echo left; done"
    ));
    let count = writer.stdout().lines().count();
    assert!(count >= 8, "the control writes its files: {}", writer.describe());
    let search = fixture.run_shell("find / -name left-behind -not -path '/proc/*' 2>/dev/null");
    assert_eq!(search.stdout(), "");
    assert_eq!(
        fixture.control_shell("ls /tmp/left-behind /dev/shm/left-behind /var/tmp/left-behind 2>/dev/null"),
        ""
    );
}

#[test]
pub fn h122_concurrent_runs_have_separate_files() {
    let fixture = Fixture::new();
    let words: Vec<String> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..3)
            .map(|number| {
                let fixture = &fixture;
                scope.spawn(move || {
                    let command = format!("for p in /tmp /dev/shm /var/tmp $HOME /workspace/out; do echo {number} > $p/same; done; sleep 1; cat /tmp/same /dev/shm/same /var/tmp/same $HOME/same out/same | xargs");
                    fixture.run_shell(&command).stdout().trim().to_owned()
                })
            })
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    assert_eq!(words, ["0 0 0 0 0", "1 1 1 1 1", "2 2 2 2 2"]);
}

#[test]
pub fn h123_kernel_objects_are_removed_after_each_run_of_a_session() {
    let fixture = Fixture::new();
    let run = |words: &[&str]| {
        fixture
            .request(json!({"argv": words}))
            .in_session("objects")
            .run()
            .expect_word()
    };
    assert_eq!(run(&["python3", "scripts/leave_ipc.py", "leave"]), "left");
    assert_eq!(run(&["python3", "scripts/leave_ipc.py", "look"]), "nothing");
    let jobs = fixture.run_shell("echo 'touch /tmp/x' | at now; (crontab -l; echo '* * * * * touch /tmp/x') | crontab -; ls /var/spool/cron /var/spool/at 2>&1 | head -n 2; true");
    assert_eq!(jobs["ended_by"], "exit");
    assert_eq!(fixture.control_shell("crontab -l 2>/dev/null | grep -c /tmp/x"), "0");
}

#[test]
pub fn h124_a_skill_cannot_change_itself() {
    let fixture = Fixture::new();
    let source = fixture.add_skill(
        "selfish",
        &[
            ("scripts/a.py", "import b\nprint(b.VALUE)\n"),
            ("scripts/b.py", "VALUE = 'original'\n"),
            ("notes.txt", "notes"),
        ],
    );
    let before = tree_contents(&source);
    let run = |command: &str| {
        fixture
            .request(json!({"skill": "selfish", "command": command}))
            .in_session("selfish")
            .run()
            .expect_report()
    };
    let first = run(
        "python3 scripts/a.py; echo \"VALUE = 'changed'\" > scripts/b.py; mkdir scripts/__pycache__; rm -rf notes.txt; \
                     mv scripts other; touch new; chmod 777 scripts/a.py; ln -sf /etc/passwd notes.txt; python3 -m venv . ; ls",
    );
    assert!(first.stdout().starts_with("original\n"), "{}", first.describe());
    let second = run(
        "test -e new || test -e scripts/__pycache__ || test -e other || echo clean; python3 scripts/a.py; cat notes.txt",
    );
    assert_eq!(second.stdout(), "clean\noriginal\nnotes");
    assert_eq!(first["skill_digest"], second["skill_digest"]);
    assert_eq!(tree_contents(&source), before, "the source of the skill changed");
    // The owner may change it, and the next run uses the change.
    std::fs::write(source.join("scripts/b.py"), "VALUE = 'edited by its owner'\n").unwrap();
    let third = run("python3 scripts/a.py");
    assert_eq!(third.stdout(), "edited by its owner\n");
    assert_ne!(third["skill_digest"], first["skill_digest"]);
}

#[test]
fn h125_caches_cannot_be_poisoned() {
    let fixture = Fixture::new();
    fixture.add_skill(
        "victim",
        &[("scripts/run.py", "import json\nprint(json.dumps({'clean': True}))\n")],
    );
    let poison = "for d in $HOME/.cache/pip $HOME/.npm $HOME/.local/lib/python3.11/site-packages /usr/lib/python3/dist-packages /usr/local/lib/python3.11/dist-packages \
                  $HOME/.config/pip /tmp/.cache; do mkdir -p $d && echo 'raise SystemExit(\"poisoned-by-probe\")' | tee $d/json.py $d/sitecustomize.py $d/usercustomize.py; done >/dev/null 2>&1; \
                  python3 -m site --user-site; true";
    fixture.run_shell(poison);
    let victim = fixture
        .request(json!({"skill": "victim", "script": "scripts/run.py"}))
        .run()
        .expect_report();
    assert_eq!(victim.stdout(), "{\"clean\": true}\n");
    let found = fixture.run_shell("grep -rl poisoned-by-probe /usr/lib/python3 /usr/local/lib $HOME /tmp 2>/dev/null");
    assert_eq!(found.stdout(), "");
}

#[test]
pub fn h126_a_skill_sees_no_other_skill() {
    let fixture = Fixture::new();
    let other = fixture.add_skill("other", &[("secret.txt", fixture.canary())]);
    let search = "cat /workspace/skills/other/secret.txt; ls /workspace/skills";
    let alone = fixture.run_shell(search);
    assert!(
        !alone.mentions(fixture.canary()) && alone.stdout() == "probe\n",
        "{}",
        alone.describe()
    );
    assert!(is_refusal(
        &fixture.run_probe("read_file.py", &[other.join("secret.txt").to_str().unwrap()])
    ));
    // With `with_skills` the same path shows it, read-only.
    let with = json!({"command": format!("{search}; touch /workspace/skills/other/x || echo refused"), "with_skills": ["other"]});
    let beside = fixture.request(with).run().expect_report();
    assert_eq!(beside.stdout(), format!("{}other\nprobe\nrefused\n", fixture.canary()));
    // Inputs and outputs of another session are invisible as well.
    fixture
        .request(json!({"command": format!("echo {} > out/mine", fixture.canary())}))
        .in_session("first")
        .run()
        .expect_report();
    let second = fixture
        .request(json!({"command": "find /workspace -type f -not -path '*/skills/*' | xargs cat"}))
        .in_session("second")
        .run()
        .expect_report();
    assert!(!second.mentions(fixture.canary()), "{}", second.describe());
}

#[test]
fn h127_references_to_other_sessions_are_refused() {
    let fixture = Fixture::new();
    let save = json!({"command": format!("echo {} > out/secret.txt", fixture.canary()), "output_files": ["out/*"], "save_as_artifacts": true});
    let first = fixture.request(save).in_session("tenant-x").run().expect_report();
    let saved = &first["artifact_files"][0];
    let (run, name) = (
        first["run_id"].as_str().unwrap().to_owned(),
        saved["name"].as_str().unwrap().to_owned(),
    );
    let version = saved["version"].as_u64().unwrap();
    // The owner can use the artifact: the reference is valid.
    let reference = format!("artifact://{name}@{version}");
    let take =
        |from: &str| json!({"command": "cat work/inputs/taken", "inputs": [{"from": from, "to": "inputs/taken"}]});
    let own = fixture
        .request(take(&reference))
        .in_session("tenant-x")
        .run()
        .expect_report();
    assert_eq!(own.stdout().trim(), fixture.canary());
    let guesses = [
        reference.clone(),
        format!("artifact://tenant-x/{name}"),
        format!("artifact://../tenant-x/{name}"),
        format!("artifact://session:tenant-x/{name}@0"),
        "workspace://../tenant-x/out/secret.txt".to_owned(),
        format!("workspace://runs/{run}/x"),
        "workspace://../../sessions/tenant-x/workspace/out/secret.txt".to_owned(),
        "skill://probe/../../state/canary".to_owned(),
        format!("host://{}", fixture.path_str("state/canary")),
    ];
    for guess in guesses {
        for session in [Some("tenant-y"), None] {
            let answer = fixture.request(take(&guess)).in_optional_session(session).run();
            let (_, field) = answer.expect_refusal();
            assert_eq!(
                field,
                Some("inputs[0].from"),
                "{guess}, {session:?}: {}",
                answer.describe()
            );
            assert!(!answer.mentions(fixture.canary()));
        }
    }
    let search = fixture
        .request(
            json!({"command": format!("ls -d /workspace/runs/{run} /workspace/../*/tenant-x; ls /workspace/runs")}),
        )
        .in_session("tenant-y")
        .run()
        .expect_report();
    assert!(!search.stdout().contains(&run), "{}", search.describe());
}

#[test]
fn h128_every_run_starts_in_a_fresh_sandbox() {
    let fixture = Fixture::new();
    let search = "readlink /proc/self/ns/pid /proc/self/ns/mnt /proc/self/ns/net /proc/self/ns/ipc; echo $$; ls -d /proc/[0-9]* | wc -l; ls -A work out tmp home 2>/dev/null";
    let mut seen = std::collections::BTreeSet::new();
    for round in 0..6 {
        fixture.run_shell("head -c 20M /dev/zero > work/big; sleep 300 & sleep 300 & mkdir out/x");
        let answer = fixture.run_shell(search);
        let lines: Vec<&str> = answer.stdout().lines().collect();
        assert_eq!(lines[4], "2", "the script is the second process: {}", answer.describe());
        seen.insert(lines[..4].join(" "));
        assert!(!answer.stdout().contains("big"), "round {round}");
        assert!(
            answer["usage"]["peak_memory_bytes"]
                .as_u64()
                .is_none_or(|peak| peak < 20 << 20),
            "{}",
            answer["usage"]
        );
    }
    assert!(!seen.is_empty());
    let host =
        ["pid", "mnt", "net", "ipc"].map(|kind| fixture.control_shell(&format!("readlink /proc/self/ns/{kind}")));
    for line in &seen {
        assert!(
            host.iter().all(|namespace| !line.contains(namespace.as_str())),
            "a namespace of the host: {line}"
        );
    }
}

#[test]
fn h129_a_planted_link_is_not_followed_by_inputs() {
    let fixture = Fixture::new();
    let before = tree_contents(&fixture.path("host"));
    let plant = format!(
        "ln -s {} work/host; ln -s /etc work/etc; ln -s /workspace/home work/inputs/home; ln -s nowhere work/inputs/file",
        fixture.path_str("host")
    );
    let run = |request| fixture.request(request).in_session("planted").allow_host_inputs().run();
    run(json!({"command": plant})).expect_report();
    let source = format!("host://{}", fixture.path_str("host/canary.txt"));
    for to in [
        "work/host/planted",
        "work/etc/planted",
        "work/inputs/home/planted",
        "work/inputs/file",
    ] {
        let answer = run(
            json!({"command": "cat /workspace/home/planted nowhere work/nowhere 2>/dev/null", "inputs": [{"from": source, "to": to}]}),
        );
        if answer.is_refused() {
            assert_eq!(
                answer.expect_refusal().1,
                Some("inputs[0].to"),
                "{to}: {}",
                answer.describe()
            );
        } else {
            assert_eq!(answer.expect_report().stdout(), "", "{to}: the link was followed");
        }
    }
    // Links in sources are not followed either.
    for from in [
        "workspace://work/host/canary.txt",
        "workspace://work/etc/hosts",
        "workspace://work/inputs/home",
    ] {
        let answer = run(json!({"command": "true", "inputs": [{"from": from, "to": "inputs/x"}]}));
        assert_eq!(
            answer.expect_refusal().1,
            Some("inputs[0].from"),
            "{from}: {}",
            answer.describe()
        );
    }
    assert_eq!(tree_contents(&fixture.path("host")), before);
    // Nor is a link at the path where another skill is going to be mounted.
    fixture.add_skill("later", &[("word.txt", "the real one")]);
    for target in ["/workspace/home", "/etc", &fixture.path_str("host"), "nowhere"] {
        let session = format!("mounted-{}", target.len());
        let run = |request| fixture.request(request).in_session(&session).run().expect_report();
        run(
            json!({"command": format!("ln -s {target} /workspace/skills/later; mkdir -p /workspace/home/x; ls -la /workspace/skills")}),
        );
        let request = json!({"skill": "later", "command": "cat word.txt; ls /workspace/home"});
        let answer = fixture.request(request).in_session(&session).run();
        if !answer.is_refused() {
            assert_eq!(answer.expect_report().stdout(), "the real onex\n", "a link to {target}");
        }
    }
    assert_eq!(tree_contents(&fixture.path("host")), before);
}

#[test]
fn h130_two_runs_in_one_session_do_not_overlap() {
    let fixture = Fixture::new();
    fixture
        .request(json!({"command": "true"}))
        .in_session("shared")
        .run()
        .expect_report();
    let command = "for i in $(seq 20); do echo $WORD >> work/log; sleep 0.02; done; cp work/log out/$WORD.txt";
    let answers: Vec<_> = std::thread::scope(|scope| {
        let runs: Vec<_> = ["a", "b"]
            .into_iter()
            .map(|word| {
                let fixture = &fixture;
                scope.spawn(move || fixture.request(json!({"command": command, "env": {"WORD": word}, "output_files": [format!("out/{word}.txt")]})).in_session("shared").run())
            })
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    let (done, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| !answer.is_refused());
    for answer in &refused {
        assert_eq!(
            (answer.expect_refusal().0, answer.code),
            ("busy", Some(125)),
            "{}",
            answer.describe()
        );
    }
    assert!(!done.is_empty(), "at least one run succeeds");
    for answer in done {
        // Each run had the workspace for itself: the lines of the two never alternate.
        let answer = answer.expect_report();
        let log = answer["output_files"][0]["content"].as_str().unwrap();
        let changes = log
            .lines()
            .collect::<Vec<_>>()
            .windows(2)
            .filter(|pair| pair[0] != pair[1])
            .count();
        assert!(changes <= 1, "two concurrent writers: {log}");
    }
    assert_eq!(
        fixture
            .request(json!({"command": "echo free"}))
            .in_session("shared")
            .run()
            .expect_report()
            .stdout(),
        "free\n"
    );
}
