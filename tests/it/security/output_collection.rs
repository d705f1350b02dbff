//! 3.3: what a script leaves for the collector.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::{Value, json};

use crate::lab::{Answer, Scene, need_root, ordinary_user};

fn collect(scene: &Scene, command: &str, globs: &[&str]) -> Answer {
    let request = json!({"command": command, "output_files": globs, "timeout": 30});
    scene.ask(request).within(Duration::from_secs(40)).go().reported()
}

fn reason<'a>(answer: &'a Answer, name: &str) -> &'a str {
    let refused = answer["refused_outputs"].as_array().unwrap();
    let file = refused.iter().find(|file| file["name"] == name);
    file.unwrap_or_else(|| panic!("{name} is not refused: {}", answer.told()))["reason"]
        .as_str()
        .unwrap()
}

#[test]
pub fn h029_symlink_output_is_refused() {
    let scene = Scene::new();
    let canary = scene.text("host/canary.txt");
    let make = format!(
        "ln -s {canary} out/host; ln -s /etc/hosts out/inside; ln -s good.txt out/near; echo good > out/good.txt; cat out/inside"
    );
    let answer = collect(&scene, &make, &["out/**"]);
    // The script can follow the link that leads to a file of the box: a naive collector could as well.
    assert!(answer.stdout().contains("localhost"));
    assert_eq!(answer.outputs(), ["out/good.txt"]);
    for name in ["out/host", "out/inside", "out/near"] {
        assert!(reason(&answer, name).contains("link"), "{}", answer.told());
    }
    assert!(!answer.mentions(&format!("{}\\n", scene.canary())), "{}", answer.told());
    assert_eq!(
        fs::read_to_string(&canary).unwrap().trim(),
        scene.canary(),
        "outside, the link leads to something"
    );
}

#[test]
pub fn h030_an_output_directory_that_is_a_link_is_not_followed() {
    let scene = Scene::new();
    for (make, globs) in [
        (
            "cd /workspace && rmdir out && ln -s /etc out && cat out/hosts",
            ["out/**", "out/hosts"],
        ),
        ("ln -s /etc out/dir && cat out/dir/hosts", ["out/**", "out/dir/hosts"]),
        (
            "ln -s / out/root && cat out/root/etc/hosts",
            ["out/**", "out/root/etc/*"],
        ),
        (
            "mkdir work/real && cp /etc/hosts work/real && ln -s ../work/real out/d && cat out/d/hosts",
            ["out/**", "out/d/hosts"],
        ),
    ] {
        let answer = collect(&scene, make, &globs);
        assert!(answer.stdout().contains("localhost"), "{make}: {}", answer.told());
        assert_eq!(answer.outputs(), [] as [&str; 0], "{make}: {}", answer.told());
    }
}

#[test]
fn h031_a_file_swapped_for_a_link_during_collection_leaks_nothing() {
    let scene = Scene::new();
    for round in 0..5 {
        let request = json!({
            "argv": ["python3", "scripts/swap_output.py", "/etc/hosts", "10000"],
            "output_files": ["out/*"],
            "timeout": 30,
        });
        let answer = scene.ask(request).go().reported();
        assert_eq!(answer.stdout(), "swapped\n", "round {round}: {}", answer.told());
        assert!(
            !answer.mentions("localhost"),
            "round {round}: the link was followed: {}",
            answer.told()
        );
        // One of the two names is the file, the other the link, and nobody is left to change that.
        assert_eq!(
            (answer.outputs().len(), answer.refused_outputs().len()),
            (1, 1),
            "{}",
            answer.told()
        );
        let file = &answer["output_files"][0];
        assert_eq!(file["content"], "harmless\n");
    }
}

#[test]
fn h032_a_file_with_two_names_is_refused() {
    let scene = Scene::new();
    let answer = collect(
        &scene,
        "echo a > work/a; ln work/a out/a; echo b > out/b; ln out/b out/c; echo d > out/d",
        &["out/*"],
    );
    assert_eq!(answer.outputs(), ["out/d"], "{}", answer.told());
    for name in ["out/a", "out/b", "out/c"] {
        assert!(!reason(&answer, name).is_empty());
    }
}

#[test]
pub fn h033_a_fifo_blocks_nobody() {
    let scene = Scene::new();
    let answer = collect(&scene, "mkfifo out/pipe out/a.txt; echo x > out/z.txt", &["out/**"]);
    assert_eq!(answer.outputs(), ["out/z.txt"]);
    assert!(
        reason(&answer, "out/pipe").to_lowercase().contains("fifo"),
        "{}",
        answer.told()
    );
    assert!(
        answer.finished.wall < Duration::from_secs(5),
        "{:?}",
        answer.finished.wall
    );
    // A control: reading such a file does block.
    let fifo = scene.text("scratch/fifo");
    let blocked = scene.control_sh(&format!("mkfifo {fifo} && timeout 0.3 cat {fifo}; echo $?"));
    assert_eq!(blocked, "124");
}

#[test]
pub fn h034_special_files_are_refused_by_kind() {
    let scene = Scene::new();
    let answer = collect(
        &scene,
        "python3 scripts/special_outputs.py; cat /dev/zero > out/copy & sleep 0.2",
        &["out/*"],
    );
    assert_eq!(answer.output("out/good.txt")["content"], "good\n");
    for name in [
        "out/fifo",
        "out/socket",
        "out/endless",
        "out/broken",
        "out/plain.txt",
        "out/twin.txt",
    ] {
        assert!(!reason(&answer, name).is_empty(), "{name}");
    }
    assert!(answer.finished.wall < Duration::from_secs(20));
}

#[test]
pub fn h035_a_sparse_file_is_never_materialised() {
    let scene = Scene::new();
    let memory = scene.sh("true").finished.peak_memory;
    // A terabyte is over the limit of a file; 200 MiB is within it, and takes no block.
    let answer = collect(
        &scene,
        "truncate -s 1T out/huge; truncate -s 200M out/sparse; ls -s out/sparse",
        &["out/*"],
    );
    assert!(
        answer.finished.wall < Duration::from_secs(10),
        "{:?}",
        answer.finished.wall
    );
    assert!(
        answer.finished.peak_memory < memory + (48 << 20),
        "{} bytes",
        answer.finished.peak_memory
    );
    assert!(
        answer["output_files"]
            .as_array()
            .unwrap()
            .iter()
            .all(|file| file["size_bytes"].as_u64().unwrap() <= 64 << 20)
    );
    assert!(!reason(&answer, "out/sparse").is_empty());
}

#[test]
fn h036_a_file_that_changes_while_read_has_one_size() {
    let scene = Scene::new();
    let request = json!({
        "command": "for i in 1 2 3; do python3 scripts/daemon.py growing out/$i.txt; done",
        "outputs": {"globs": ["out/*"], "max_file_bytes": 10_000_000},
        "timeout": 30,
    });
    let answer = scene.ask(request).go().reported();
    for file in answer["output_files"].as_array().unwrap() {
        assert_eq!(
            file["size_bytes"].as_u64().unwrap(),
            file["content"].as_str().unwrap().len() as u64,
            "{}",
            file["name"]
        );
    }
    assert_eq!(answer.outputs().len(), 3);
}

#[test]
pub fn h037_masses_of_files_are_bounded() {
    let scene = Scene::new();
    // More files than are returned.
    let answer = collect(&scene, "cd /workspace/out; seq 1 30000 | xargs touch", &["out/**"]);
    assert!(answer.outputs().len() <= 100, "{}", answer.outputs().len());
    assert!(
        answer.refused_outputs().len() <= 101,
        "{}",
        answer.refused_outputs().len()
    );
    assert!(
        answer.mentions("29900") || answer.mentions("29,900") || answer.mentions("29800") || answer.mentions("29,800"),
        "the rest is counted: {}",
        answer.told()
    );
    assert!(answer.finished.wall < Duration::from_secs(20));
    // A path deeper than any path may be long.
    let deep = "python3 -c 'import os; os.chdir(\"/workspace/out\"); [(os.mkdir(\"d\"), os.chdir(\"d\")) for _ in range(3000)]; \
                open(\"deep.txt\", \"w\")'; echo y > out/top.txt";
    let answer = collect(&scene, deep, &["out/**"]);
    assert!(answer.outputs().contains(&"out/top.txt"), "{}", answer.told());
    assert!(answer.finished.wall < Duration::from_secs(20));
    // A million files do not fit the workspace at all.
    scene.profile("few", &[("workspace_inodes", "2000")]);
    let request = json!({
        "command": "cd /workspace/out; for i in $(seq 5000); do mkdir $i || { ls | wc -l; exit 7; }; done",
        "profile": "few", "output_files": ["out/**"], "timeout": 30,
    });
    let answer = scene.ask(request).go().reported();
    assert!(
        answer["exit_code"] == 7 || answer["ended_by"] == "disk",
        "{}",
        answer.told()
    );
    assert_eq!(scene.sh("echo fine").stdout(), "fine\n");
}

#[test]
fn h038_size_limits_are_exact() {
    let scene = Scene::new();
    let ask = |sizes: &[u32], outputs: Value| {
        let make: String = sizes
            .iter()
            .enumerate()
            .map(|(at, size)| format!("head -c {size} /dev/zero | tr '\\0' a > out/{at}.txt\n"))
            .collect();
        scene.ask(json!({"command": make, "outputs": outputs})).go().reported()
    };
    let globs = json!(["out/*"]);
    let answer = ask(&[500, 500], json!({"globs": globs, "max_total_bytes": 1000}));
    assert_eq!(answer.outputs(), ["out/0.txt", "out/1.txt"], "exactly at the limit");
    let answer = ask(&[500, 501], json!({"globs": globs, "max_total_bytes": 1000}));
    assert_eq!(
        answer.outputs(),
        ["out/0.txt"],
        "one byte over the limit of all: {}",
        answer.told()
    );
    assert!(!reason(&answer, "out/1.txt").is_empty());
    let answer = ask(&[100, 101], json!({"globs": globs, "max_file_bytes": 100}));
    assert_eq!(answer.output("out/0.txt")["truncated"], false);
    let cut = answer.output("out/1.txt");
    assert_eq!((&cut["truncated"], &cut["size_bytes"]), (&json!(true), &json!(101)));
    assert_eq!(cut["content"].as_str().unwrap().len(), 100);
    let answer = ask(&[1, 1, 1], json!({"globs": globs, "max_files": 2}));
    assert_eq!(
        (answer.outputs().len(), answer.refused_outputs().len()),
        (2, 1),
        "{}",
        answer.told()
    );
}

#[test]
fn h039_an_archive_bomb_stays_packed() {
    let scene = Scene::new();
    let memory = scene.sh("true").finished.peak_memory;
    let make = "head -c 100M /dev/zero | gzip | gzip > out/bomb.gz; head -c 50M /dev/zero > work/zeros; \
                tar -C /workspace/work -czf out/bomb.tar.gz zeros; ls -l out";
    let answer = collect(&scene, make, &["out/*"]);
    for name in ["out/bomb.gz", "out/bomb.tar.gz"] {
        let file = answer.output(name);
        assert!(
            file["size_bytes"].as_u64().unwrap() < 1 << 20 && file.get("content").is_none(),
            "{file:?}"
        );
        assert!(file["mime_type"].as_str().unwrap().contains("gzip"), "{file:?}");
    }
    assert!(answer.finished.peak_memory < memory + (32 << 20));
}

#[test]
pub fn h040_strange_modes_do_not_travel() {
    let scene = Scene::new();
    let make = "for m in 000 4755 2755 1777 0200; do echo $m > out/$m.txt; chmod $m out/$m.txt; done; \
                mkdir out/closed; echo x > out/closed/x.txt; chmod 000 out/closed; mkdir out/deaf; chmod 500 out/deaf; \
                setfattr -n user.x -v y out/000.txt 2>/dev/null; true";
    let request = json!({"command": make, "output_files": ["out/**"]});
    let kept = scene.path("kept");
    let answer = scene
        .ask(request)
        .with(&["--out-dir", kept.to_str().unwrap()])
        .go()
        .reported();
    for mode in ["000", "4755", "2755", "1777", "0200"] {
        let name = format!("out/{mode}.txt");
        if answer.outputs().contains(&name.as_str()) {
            assert_eq!(answer.output(&name)["content"], format!("{mode}\n"));
        } else {
            assert!(!reason(&answer, &name).is_empty());
        }
    }
    let written: Vec<_> = crate::workspace::files_below(&kept);
    assert!(!written.is_empty(), "--out-dir holds the files: {}", answer.told());
    for path in written {
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7000, 0, "{} has mode {mode:o}", path.display());
    }
    // A session's workspace with such files can be used again, and removed.
    let ask = |command: &str| scene.ask(json!({"command": command})).session("modes").go().reported();
    ask(make);
    assert_eq!(
        ask("cat out/4755.txt; echo new > out/new.txt; cat out/new.txt").stdout(),
        "4755\nnew\n"
    );
    let gone = scene.tell(&["session", "rm", "modes", "--json"]).go();
    assert_eq!(gone.code, Some(0), "{}", gone.told());
    assert!(!fs::read_to_string(scene.path("state/canary")).unwrap().is_empty());
    let sessions = scene.tell(&["session", "list", "--json"]).go();
    assert!(!sessions.mentions("modes"), "{}", sessions.told());
}

#[test]
pub fn h040_the_workspaces_own_directories_are_repaired() {
    let spoil = [
        "chmod 000 /workspace/work /workspace/out /workspace/tmp /workspace/home /workspace/runs",
        "chmod 000 /workspace",
        "chmod 000 work/inputs",
        "cd /workspace; rm -rf out work home tmp runs; for d in out work home tmp runs; do echo file > $d; done",
        "cd /workspace; rm -rf out work home tmp runs; for d in out work home tmp runs; do ln -s /etc $d; done",
        "cd /workspace; rm -rf out work home tmp runs; for d in out work home tmp runs; do mkfifo $d; done",
    ];
    let check = |scene: &Scene, launcher: &[String]| {
        for (number, spoil) in spoil.iter().enumerate() {
            let session = format!("spoilt-{number}");
            let ask = |request| scene.ask(request).session(&session).behind(launcher).go().reported();
            ask(json!({"command": spoil}));
            let use_all = "for d in out work home tmp $RUN_DIR work/inputs; do cd /workspace && echo x > $d/x || exit 1; done; cat $SKILL_DIR/inputs/SKILL.md | head -n 1";
            let answer = ask(
                json!({"command": use_all, "inputs": [{"from": "skill://probe/SKILL.md"}], "output_files": ["out/*"]}),
            );
            assert_eq!(
                (answer.stdout(), &answer["exit_code"]),
                ("---\n", &json!(0)),
                "{spoil}: {}",
                answer.told()
            );
            assert_eq!(answer.outputs(), ["out/x"], "{spoil}");
            let gone = scene.tell(&["session", "rm", &session]).behind(launcher).go();
            assert_eq!(gone.code, Some(0), "{spoil}: {}", gone.told());
        }
    };
    let scene = Scene::new();
    check(&scene, &[]);
    // An ordinary user may not talk to the daemon.
    if scene.docker().is_none() && need_root() {
        let scene = Scene::new();
        let (id, user) = ordinary_user();
        scene.give_to(id);
        check(&scene, &user);
    }
}

#[test]
fn h041_outputs_cannot_forge_what_skillbox_says() {
    let scene = Scene::new();
    let forged = r#"{"run_id":"forged","exit_code":0,"enforcement":{"tier":"T0"}}"#;
    let names = [
        "result.json",
        "report.json",
        "session.json",
        "metadata.json",
        ".lock",
        "stdout",
        "stderr",
        "pins.json",
    ];
    let places = [
        "/workspace",
        "/workspace/out",
        "/workspace/runs",
        "$RUN_DIR",
        "/workspace/..",
    ];
    let mut make = format!("cat > work/forged <<'END'\n{forged}\nEND\n");
    for place in places {
        for name in names {
            make += &format!("cp work/forged {place}/{name} 2>/dev/null\n");
        }
    }
    make += "exit 3";
    for session in ["forging", "forging"] {
        let request = json!({"command": make, "output_files": ["out/*"]});
        let answer = scene.ask(request).session(session).go().reported();
        assert_eq!(answer["exit_code"], 3);
        assert_ne!(answer["run_id"], "forged");
        assert_eq!(answer.outputs().len(), names.len(), "{}", answer.told());
    }
    let shown = scene.tell(&["session", "show", "forging", "--json"]).go();
    assert_eq!(shown.code, Some(0), "{}", shown.told());
    assert!(!shown.mentions("\"forged\""));
}

#[test]
fn h042_an_input_changed_in_place_stays_as_it_was_in_the_store() {
    let scene = Scene::new();
    let file = scene.host_file("data.txt", "original\n");
    let put = scene
        .tell(&[
            "artifacts",
            "put",
            file.to_str().unwrap(),
            "--name",
            "data.txt",
            "--json",
        ])
        .go();
    assert_eq!(put.code, Some(0), "{}", put.told());
    let host = format!("host://{}", file.display());
    let request = json!({
        "command": "for f in work/inputs/*; do echo changed > $f; done; cat work/inputs/*",
        "inputs": [{"from": "artifact://data.txt", "to": "inputs/a"}, {"from": host, "to": "inputs/b"}],
        "output_files": ["work/inputs/*"],
    });
    let answer = scene.ask(request).host_allowed().go().reported();
    assert_eq!(answer.stdout(), "changed\nchanged\n", "{}", answer.told());
    assert_eq!(answer.output("work/inputs/a")["content"], "changed\n");
    assert_eq!(fs::read_to_string(&file).unwrap(), "original\n");
    let again = json!({"command": "cat work/inputs/data.txt", "inputs": [{"from": "artifact://data.txt"}]});
    assert_eq!(scene.ask(again).go().reported().stdout(), "original\n");
    // A link is read-only, and the source itself.
    let linked = json!({
        "command": "cat work/inputs/l; echo changed > work/inputs/l; rm -f work/inputs/l; cat work/inputs/l",
        "inputs": [{"from": host, "to": "inputs/l", "mode": "link"}],
    });
    let answer = scene.ask(linked).host_allowed().go().reported();
    assert_eq!(answer.stdout(), "original\noriginal\n", "{}", answer.told());
    assert_eq!(fs::read_to_string(&file).unwrap(), "original\n");
}

#[test]
fn h043_nobody_holds_a_mapping_of_an_output_afterwards() {
    let scene = Scene::new();
    let leave =
        json!({"argv": ["python3", "scripts/daemon.py", "mapping", "/workspace/out/m.bin"], "output_files": ["out/*"]});
    let answer = scene.ask(leave).session("mapping").go().reported();
    let digest = answer.output("out/m.bin")["sha256"].clone();
    let look = json!({"command": "sha256sum out/m.bin; sleep 0.2; sha256sum out/m.bin", "output_files": ["out/*"]});
    let later = scene.ask(look).session("mapping").go().reported();
    let digests: Vec<&str> = later.stdout().split_whitespace().step_by(2).collect();
    assert_eq!(digests[0], digests[1], "somebody still writes");
    assert!(
        digest.as_str().unwrap().ends_with(digests[0]),
        "{digest} was collected, {} is there",
        digests[0]
    );
}

#[test]
fn h044_names_that_differ_in_case_or_form_are_two_files() {
    let scene = Scene::new();
    let make = "for f in Name name $'\\xc3\\xa9' $'e\\xcc\\x81'; do printf %s \"$f\" > \"out/$f\"; done";
    let answer = collect(&scene, make, &["out/*"]);
    for name in ["out/Name", "out/name", "out/é", "out/e\u{301}"] {
        assert_eq!(
            answer.output(name)["content"].as_str(),
            name.strip_prefix("out/"),
            "{name}"
        );
    }
}

#[test]
fn h045_strange_times_are_taken() {
    let scene = Scene::new();
    let make = "for d in 1901-12-14 1970-01-01 2038-01-20 2500-01-01; do echo $d > out/$d.txt; touch -d $d out/$d.txt || exit 1; done";
    let request = json!({"command": make, "output_files": ["out/*"], "save_as_artifacts": true});
    let answer = scene
        .ask(request)
        .with(&["--out-dir", &scene.text("kept")])
        .go()
        .reported();
    assert_eq!(answer["exit_code"], 0, "{}", answer.told());
    assert_eq!(
        (
            answer.outputs().len(),
            answer["artifact_files"].as_array().unwrap().len()
        ),
        (4, 4),
        "{}",
        answer.told()
    );
}
