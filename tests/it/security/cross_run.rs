//! 3.10: one run against the next, one session against another, a skill against itself.

use std::time::Duration;

use serde_json::json;

use crate::lab::{Scene, is_refusal, tree_digest};

#[test]
pub fn h121_files_of_a_run_are_gone_with_it() {
    let scene = Scene::new();
    let places = "/tmp /dev/shm /var/tmp $HOME $HOME/.cache $HOME/.config $TMPDIR /workspace/work /workspace/out $RUN_DIR /workspace";
    let leave = scene.sh(&format!(
        "mkdir -p $HOME/.cache $HOME/.config; for p in {places}; do echo x > $p/left-behind && echo left; done"
    ));
    let left = leave.stdout().lines().count();
    assert!(left >= 8, "the control leaves something: {}", leave.told());
    let look = scene.sh("find / -name left-behind -not -path '/proc/*' 2>/dev/null");
    assert_eq!(look.stdout(), "");
    assert_eq!(
        scene.control_sh("ls /tmp/left-behind /dev/shm/left-behind /var/tmp/left-behind 2>/dev/null"),
        ""
    );
}

#[test]
pub fn h122_the_same_names_at_once_are_different_files() {
    let scene = Scene::new();
    let words: Vec<String> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..3)
            .map(|number| {
                let scene = &scene;
                scope.spawn(move || {
                    let command = format!("for p in /tmp /dev/shm /var/tmp $HOME /workspace/out; do echo {number} > $p/same; done; sleep 0.3; cat /tmp/same /dev/shm/same /var/tmp/same $HOME/same out/same | xargs");
                    scene.sh(&command).stdout().trim().to_owned()
                })
            })
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    assert_eq!(words, ["0 0 0 0 0", "1 1 1 1 1", "2 2 2 2 2"]);
}

#[test]
pub fn h123_kernel_objects_of_a_session_are_gone_after_each_run() {
    let scene = Scene::new();
    let ask = |words: &[&str]| scene.ask(json!({"argv": words})).session("objects").go().word();
    assert_eq!(ask(&["python3", "scripts/leave_ipc.py", "leave"]), "left");
    assert_eq!(ask(&["python3", "scripts/leave_ipc.py", "look"]), "nothing");
    let jobs = scene.sh("echo 'touch /tmp/x' | at now; (crontab -l; echo '* * * * * touch /tmp/x') | crontab -; ls /var/spool/cron /var/spool/at 2>&1 | head -n 2; true");
    assert_eq!(jobs["ended_by"], "exit");
    assert_eq!(scene.control_sh("crontab -l 2>/dev/null | grep -c /tmp/x"), "0");
}

#[test]
pub fn h124_a_skill_cannot_change_itself() {
    let scene = Scene::new();
    let source = scene.skill(
        "selfish",
        &[
            ("scripts/a.py", "import b\nprint(b.VALUE)\n"),
            ("scripts/b.py", "VALUE = 'original'\n"),
            ("notes.txt", "notes"),
        ],
    );
    let before = tree_digest(&source);
    let ask = |command: &str| {
        scene
            .ask(json!({"skill": "selfish", "command": command}))
            .session("selfish")
            .go()
            .reported()
    };
    let first = ask(
        "python3 scripts/a.py; echo \"VALUE = 'changed'\" > scripts/b.py; mkdir scripts/__pycache__; rm -rf notes.txt; \
                     mv scripts other; touch new; chmod 777 scripts/a.py; ln -sf /etc/passwd notes.txt; python3 -m venv . ; ls",
    );
    assert!(first.stdout().starts_with("original\n"), "{}", first.told());
    let second = ask(
        "python3 scripts/a.py; cat notes.txt; test -e new || test -e scripts/__pycache__ || test -e other || echo -n clean",
    );
    assert_eq!(second.stdout(), "original\nnotesclean");
    assert_eq!(first["skill_digest"], second["skill_digest"]);
    assert_eq!(tree_digest(&source), before, "the source of the skill changed");
    // The owner may change it, and the next run sees that.
    std::fs::write(source.join("scripts/b.py"), "VALUE = 'edited by its owner'\n").unwrap();
    let third = ask("python3 scripts/a.py");
    assert_eq!(third.stdout(), "edited by its owner\n");
    assert_ne!(third["skill_digest"], first["skill_digest"]);
}

#[test]
fn h125_caches_cannot_be_poisoned() {
    let scene = Scene::new();
    scene.skill(
        "victim",
        &[("scripts/run.py", "import json\nprint(json.dumps({'clean': True}))\n")],
    );
    let poison = "for d in $HOME/.cache/pip $HOME/.npm $HOME/.local/lib/python3.11/site-packages /usr/lib/python3/dist-packages /usr/local/lib/python3.11/dist-packages \
                  $HOME/.config/pip /tmp/.cache; do mkdir -p $d && echo 'raise SystemExit(\"poisoned-by-probe\")' | tee $d/json.py $d/sitecustomize.py $d/usercustomize.py; done >/dev/null 2>&1; \
                  python3 -m site --user-site; true";
    scene.sh(poison);
    let victim = scene
        .ask(json!({"skill": "victim", "script": "scripts/run.py"}))
        .go()
        .reported();
    assert_eq!(victim.stdout(), "{\"clean\": true}\n");
    let found = scene.sh("grep -rl poisoned-by-probe /usr/lib/python3 /usr/local/lib $HOME /tmp 2>/dev/null");
    assert_eq!(found.stdout(), "");
}

#[test]
pub fn h126_a_skill_sees_no_other_skill() {
    let scene = Scene::new();
    let other = scene.skill("other", &[("secret.txt", scene.canary())]);
    let look = "cat /workspace/skills/other/secret.txt; ls /workspace/skills";
    let alone = scene.sh(look);
    assert!(
        !alone.mentions(scene.canary()) && alone.stdout() == "probe\n",
        "{}",
        alone.told()
    );
    assert!(is_refusal(
        &scene.probe("read_file.py", &[other.join("secret.txt").to_str().unwrap()])
    ));
    // Mounted on purpose, the same path shows it: read-only.
    let with = json!({"command": format!("{look}; touch /workspace/skills/other/x || echo refused"), "with_skills": ["other"]});
    let beside = scene.ask(with).go().reported();
    assert_eq!(beside.stdout(), format!("{}other\nprobe\nrefused\n", scene.canary()));
    // Inputs and outputs of another session are out of sight as well.
    scene
        .ask(json!({"command": format!("echo {} > out/mine", scene.canary())}))
        .session("first")
        .go()
        .reported();
    let second = scene
        .ask(json!({"command": "find /workspace -type f -not -path '*/skills/*' | xargs cat"}))
        .session("second")
        .go()
        .reported();
    assert!(!second.mentions(scene.canary()), "{}", second.told());
}

#[test]
fn h127_ids_of_others_open_nothing() {
    let scene = Scene::new();
    let save = json!({"command": format!("echo {} > out/secret.txt", scene.canary()), "output_files": ["out/*"], "save_as_artifacts": true});
    let first = scene.ask(save).session("tenant-x").go().reported();
    let saved = &first["artifact_files"][0];
    let (run, name) = (
        first["run_id"].as_str().unwrap().to_owned(),
        saved["name"].as_str().unwrap().to_owned(),
    );
    let version = saved["version"].as_u64().unwrap();
    // The owner can use it again: the reference is good.
    let reference = format!("artifact://{name}@{version}");
    let take =
        |from: &str| json!({"command": "cat work/inputs/taken", "inputs": [{"from": from, "to": "inputs/taken"}]});
    let own = scene.ask(take(&reference)).session("tenant-x").go().reported();
    assert_eq!(own.stdout().trim(), scene.canary());
    let guesses = [
        reference.clone(),
        format!("artifact://tenant-x/{name}"),
        format!("artifact://../tenant-x/{name}"),
        format!("artifact://session:tenant-x/{name}@0"),
        "workspace://../tenant-x/out/secret.txt".to_owned(),
        format!("workspace://runs/{run}/x"),
        "workspace://../../sessions/tenant-x/workspace/out/secret.txt".to_owned(),
        "skill://probe/../../state/canary".to_owned(),
        format!("host://{}", scene.text("state/canary")),
    ];
    for guess in guesses {
        for session in [Some("tenant-y"), None] {
            let answer = scene.ask(take(&guess)).in_session(session).go();
            let (_, field) = answer.refused();
            assert_eq!(field, Some("inputs[0].from"), "{guess}, {session:?}: {}", answer.told());
            assert!(!answer.mentions(scene.canary()));
        }
    }
    let look = scene
        .ask(json!({"command": format!("ls -d /workspace/runs/{run} /workspace/../*/tenant-x; ls /workspace/runs")}))
        .session("tenant-y")
        .go()
        .reported();
    assert!(!look.stdout().contains(&run), "{}", look.told());
}

#[test]
fn h128_no_run_starts_in_the_ruins_of_another() {
    let scene = Scene::new();
    let look = "readlink /proc/self/ns/pid /proc/self/ns/mnt /proc/self/ns/net /proc/self/ns/ipc; echo $$; ls -d /proc/[0-9]* | wc -l; ls -A work out tmp home 2>/dev/null";
    let mut seen = std::collections::BTreeSet::new();
    for round in 0..6 {
        scene.sh("head -c 20M /dev/zero > work/big; sleep 30 & sleep 30 & mkdir out/x");
        let answer = scene.sh(look);
        let lines: Vec<&str> = answer.stdout().lines().collect();
        assert_eq!(lines[4], "2", "the script is the second process: {}", answer.told());
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
    let host = ["pid", "mnt", "net", "ipc"].map(|kind| scene.control_sh(&format!("readlink /proc/self/ns/{kind}")));
    for line in &seen {
        assert!(
            host.iter().all(|namespace| !line.contains(namespace.as_str())),
            "a namespace of the host: {line}"
        );
    }
}

#[test]
fn h129_a_planted_link_leads_no_input_out() {
    let scene = Scene::new();
    let before = tree_digest(&scene.path("host"));
    let plant = format!(
        "ln -s {} work/host; ln -s /etc work/etc; ln -s /workspace/home work/inputs/home; ln -s nowhere work/inputs/file",
        scene.text("host")
    );
    let ask = |request| scene.ask(request).session("planted").host_allowed().go();
    ask(json!({"command": plant})).reported();
    let source = format!("host://{}", scene.text("host/canary.txt"));
    for to in [
        "work/host/planted",
        "work/etc/planted",
        "work/inputs/home/planted",
        "work/inputs/file",
    ] {
        let answer = ask(
            json!({"command": "cat /workspace/home/planted nowhere work/nowhere 2>/dev/null", "inputs": [{"from": source, "to": to}]}),
        );
        if answer.json().get("error").is_some() {
            assert_eq!(answer.refused().1, Some("inputs[0].to"), "{to}: {}", answer.told());
        } else {
            assert_eq!(answer.reported().stdout(), "", "{to}: the link was followed");
        }
    }
    // Sources are not followed either.
    for from in [
        "workspace://work/host/canary.txt",
        "workspace://work/etc/hosts",
        "workspace://work/inputs/home",
    ] {
        let answer = ask(json!({"command": "true", "inputs": [{"from": from, "to": "inputs/x"}]}));
        assert_eq!(answer.refused().1, Some("inputs[0].from"), "{from}: {}", answer.told());
    }
    assert_eq!(tree_digest(&scene.path("host")), before);
    // Nor is a link in the place where another skill will be mounted.
    scene.skill("later", &[("word.txt", "the real one")]);
    for target in ["/workspace/home", "/etc", &scene.text("host"), "nowhere"] {
        let session = format!("mounted-{}", target.len());
        let ask = |request| scene.ask(request).session(&session).go().reported();
        ask(
            json!({"command": format!("ln -s {target} /workspace/skills/later; mkdir -p /workspace/home/x; ls -la /workspace/skills")}),
        );
        let request = json!({"skill": "later", "command": "cat word.txt; ls /workspace/home"});
        let answer = scene.ask(request).session(&session).go();
        if answer.json().get("error").is_none() {
            assert_eq!(answer.reported().stdout(), "the real onex\n", "a link to {target}");
        }
    }
    assert_eq!(tree_digest(&scene.path("host")), before);
}

#[test]
fn h130_two_runs_in_one_session_do_not_mix() {
    let scene = Scene::new();
    scene.ask(json!({"command": "true"})).session("shared").go().reported();
    let command = "for i in $(seq 20); do echo $WORD >> work/log; sleep 0.02; done; cp work/log out/$WORD.txt";
    let answers: Vec<_> = std::thread::scope(|scope| {
        let runs: Vec<_> = ["a", "b"]
            .into_iter()
            .map(|word| {
                let scene = &scene;
                scope.spawn(move || scene.ask(json!({"command": command, "env": {"WORD": word}, "output_files": [format!("out/{word}.txt")]})).session("shared").go())
            })
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    let (done, refused): (Vec<_>, Vec<_>) = answers
        .into_iter()
        .partition(|answer| answer.json().get("error").is_none());
    for answer in &refused {
        assert_eq!(
            (answer.refused().0, answer.code),
            ("busy", Some(125)),
            "{}",
            answer.told()
        );
    }
    assert!(!done.is_empty(), "one of them runs");
    for answer in done {
        // Either it had the workspace for itself, or it came after the other: never both at once.
        let answer = answer.reported();
        let log = answer["output_files"][0]["content"].as_str().unwrap();
        let changes = log
            .lines()
            .collect::<Vec<_>>()
            .windows(2)
            .filter(|pair| pair[0] != pair[1])
            .count();
        assert!(changes <= 1, "two writers at once: {log}");
    }
    std::thread::sleep(Duration::from_millis(10));
    assert_eq!(
        scene
            .ask(json!({"command": "echo free"}))
            .session("shared")
            .go()
            .reported()
            .stdout(),
        "free\n"
    );
}
