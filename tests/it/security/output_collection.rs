//! 3.3: outputs that a script prepares for the collector.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Answer, Fixture, assert_within, need_root, ordinary_user};

fn collect(fixture: &Fixture, command: &str, globs: &[&str]) -> Answer {
    let request = json!({"command": command, "output_files": globs, "timeout": 100});
    fixture.request(request).run().expect_report()
}

fn refusal_reason<'a>(answer: &'a Answer, name: &str) -> &'a str {
    let refused = answer["refused_outputs"].as_array().unwrap();
    let file = refused.iter().find(|file| file["name"] == name);
    file.unwrap_or_else(|| panic!("{name} is not refused: {}", answer.describe()))["reason"]
        .as_str()
        .unwrap()
}

#[test]
pub fn h029_symlink_output_is_refused() {
    let fixture = Fixture::new();
    let canary = fixture.path_str("host/canary.txt");
    let script = format!(
        "ln -s {canary} out/host; ln -s /etc/hosts out/inside; ln -s good.txt out/near; echo good > out/good.txt; cat out/inside"
    );
    let answer = collect(&fixture, &script, &["out/**"]);
    // The script can follow the link to a file of the sandbox: a naive collector could as well.
    assert!(answer.stdout().contains("localhost"));
    assert_eq!(answer.output_names(), ["out/good.txt"]);
    for name in ["out/host", "out/inside", "out/near"] {
        assert!(refusal_reason(&answer, name).contains("link"), "{}", answer.describe());
    }
    assert!(
        !answer.mentions(&format!("{}\\n", fixture.canary())),
        "{}",
        answer.describe()
    );
    assert_eq!(
        fs::read_to_string(&canary).unwrap().trim(),
        fixture.canary(),
        "outside, the target of the link exists"
    );
}

#[test]
pub fn h030_an_output_directory_that_is_a_link_is_not_followed() {
    let fixture = Fixture::new();
    for (script, globs) in [
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
        let answer = collect(&fixture, script, &globs);
        assert!(answer.stdout().contains("localhost"), "{script}: {}", answer.describe());
        assert_eq!(
            answer.output_names(),
            [] as [&str; 0],
            "{script}: {}",
            answer.describe()
        );
    }
}

#[test]
fn h031_a_file_swapped_for_a_link_during_collection_leaks_nothing() {
    let fixture = Fixture::new();
    for round in 0..5 {
        let request = json!({
            "argv": ["python3", "scripts/swap_output.py", "/etc/hosts", "10000"],
            "output_files": ["out/*"],
            "timeout": 100,
        });
        let answer = fixture.request(request).run().expect_report();
        assert_eq!(answer.stdout(), "swapped\n", "round {round}: {}", answer.describe());
        assert!(
            !answer.mentions("localhost"),
            "round {round}: the link was followed: {}",
            answer.describe()
        );
        // One of the two names is the file, the other the link, and no process is left to swap them.
        assert_eq!(
            (answer.output_names().len(), answer.refused_output_names().len()),
            (1, 1),
            "{}",
            answer.describe()
        );
        let file = &answer["output_files"][0];
        assert_eq!(file["content"], "harmless\n");
    }
}

#[test]
fn h032_a_file_with_two_names_is_refused() {
    let fixture = Fixture::new();
    let answer = collect(
        &fixture,
        "echo a > work/a; ln work/a out/a; echo b > out/b; ln out/b out/c; echo d > out/d",
        &["out/*"],
    );
    assert_eq!(answer.output_names(), ["out/d"], "{}", answer.describe());
    for name in ["out/a", "out/b", "out/c"] {
        assert!(!refusal_reason(&answer, name).is_empty());
    }
}

#[test]
pub fn h033_a_fifo_does_not_block_the_collection() {
    let fixture = Fixture::new();
    let answer = collect(&fixture, "mkfifo out/pipe out/a.txt; echo x > out/z.txt", &["out/**"]);
    assert_eq!(answer.output_names(), ["out/z.txt"]);
    assert!(
        refusal_reason(&answer, "out/pipe").to_lowercase().contains("fifo"),
        "{}",
        answer.describe()
    );
    assert_within(answer.process.wall, Duration::from_secs(5), "collecting a FIFO");
    // The control: reading such a file blocks.
    let fifo = fixture.path_str("scratch/fifo");
    let blocked = fixture.control_shell(&format!("mkfifo {fifo} && timeout 0.3 cat {fifo}; echo $?"));
    assert_eq!(blocked, "124");
}

#[test]
pub fn h034_special_files_are_refused_by_kind() {
    let fixture = Fixture::new();
    let answer = collect(
        &fixture,
        "python3 scripts/special_outputs.py; cat /dev/zero > out/copy & until test -s out/copy; do sleep 0.05; done",
        &["out/*"],
    );
    assert_eq!(answer.output_file("out/good.txt")["content"], "good\n");
    for name in [
        "out/fifo",
        "out/socket",
        "out/endless",
        "out/broken",
        "out/plain.txt",
        "out/twin.txt",
    ] {
        assert!(!refusal_reason(&answer, name).is_empty(), "{name}");
    }
    assert_within(answer.process.wall, Duration::from_secs(20), "the collection");
}

#[test]
pub fn h035_a_sparse_file_is_never_read_into_memory() {
    let fixture = Fixture::new();
    let memory = fixture.run_shell("true").process.peak_memory;
    // A terabyte is over the size limit of a file; 200 MiB is within it and uses no block.
    let answer = collect(
        &fixture,
        "truncate -s 1T out/huge; truncate -s 200M out/sparse; ls -s out/sparse",
        &["out/*"],
    );
    assert_within(answer.process.wall, Duration::from_secs(10), "collecting a sparse file");
    assert!(
        answer.process.peak_memory < memory + (48 << 20),
        "{} bytes",
        answer.process.peak_memory
    );
    assert!(
        answer["output_files"]
            .as_array()
            .unwrap()
            .iter()
            .all(|file| file["size_bytes"].as_u64().unwrap() <= 64 << 20)
    );
    assert!(!refusal_reason(&answer, "out/sparse").is_empty());
}

#[test]
fn h036_a_file_that_changes_while_read_has_one_size() {
    let fixture = Fixture::new();
    let request = json!({
        "command": "for i in 1 2 3; do python3 scripts/daemon.py growing out/$i.txt; done",
        "outputs": {"globs": ["out/*"], "max_file_bytes": 10_000_000},
        "timeout": 100,
    });
    let answer = fixture.request(request).run().expect_report();
    for file in answer["output_files"].as_array().unwrap() {
        assert_eq!(
            file["size_bytes"].as_u64().unwrap(),
            file["content"].as_str().unwrap().len() as u64,
            "{}",
            file["name"]
        );
    }
    assert_eq!(answer.output_names().len(), 3);
}

#[test]
pub fn h037_the_number_of_collected_files_is_bounded() {
    let fixture = Fixture::new();
    // More files than a report lists.
    let answer = collect(&fixture, "cd /workspace/out; seq 1 30000 | xargs touch", &["out/**"]);
    assert!(answer.output_names().len() <= 100, "{}", answer.output_names().len());
    assert!(
        answer.refused_output_names().len() <= 101,
        "{}",
        answer.refused_output_names().len()
    );
    assert!(
        answer.mentions("29900") || answer.mentions("29,900") || answer.mentions("29800") || answer.mentions("29,800"),
        "the report counts the rest: {}",
        answer.describe()
    );
    assert_within(answer.process.wall, Duration::from_secs(20), "the collection");
    // A path that is longer than PATH_MAX.
    let deep = "python3 -c 'import os; os.chdir(\"/workspace/out\"); [(os.mkdir(\"d\"), os.chdir(\"d\")) for _ in range(3000)]; \
                open(\"deep.txt\", \"w\")'; echo y > out/top.txt";
    let answer = collect(&fixture, deep, &["out/**"]);
    assert!(answer.output_names().contains(&"out/top.txt"), "{}", answer.describe());
    assert_within(answer.process.wall, Duration::from_secs(20), "the collection");
    // The inode limit of the workspace bounds the number of files.
    fixture.add_profile("few", &[("workspace_inodes", "2000")]);
    let request = json!({
        "command": "cd /workspace/out; for i in $(seq 5000); do mkdir $i || { ls | wc -l; exit 7; }; done",
        "profile": "few", "output_files": ["out/**"], "timeout": 100,
    });
    let answer = fixture.request(request).run().expect_report();
    assert!(
        answer["exit_code"] == 7 || answer["ended_by"] == "disk",
        "{}",
        answer.describe()
    );
    assert_eq!(fixture.run_shell("echo fine").stdout(), "fine\n");
}

#[test]
fn h038_size_limits_are_exact() {
    let fixture = Fixture::new();
    let run = |sizes: &[u32], outputs: Value| {
        let script: String = sizes
            .iter()
            .enumerate()
            .map(|(at, size)| format!("head -c {size} /dev/zero | tr '\\0' a > out/{at}.txt\n"))
            .collect();
        fixture
            .request(json!({"command": script, "outputs": outputs}))
            .run()
            .expect_report()
    };
    let globs = json!(["out/*"]);
    let answer = run(&[500, 500], json!({"globs": globs, "max_total_bytes": 1000}));
    assert_eq!(
        answer.output_names(),
        ["out/0.txt", "out/1.txt"],
        "exactly at the limit"
    );
    let answer = run(&[500, 501], json!({"globs": globs, "max_total_bytes": 1000}));
    assert_eq!(
        answer.output_names(),
        ["out/0.txt"],
        "one byte over the total limit: {}",
        answer.describe()
    );
    assert!(!refusal_reason(&answer, "out/1.txt").is_empty());
    let answer = run(&[100, 101], json!({"globs": globs, "max_file_bytes": 100}));
    assert_eq!(answer.output_file("out/0.txt")["truncated"], false);
    let cut = answer.output_file("out/1.txt");
    assert_eq!((&cut["truncated"], &cut["size_bytes"]), (&json!(true), &json!(101)));
    assert_eq!(cut["content"].as_str().unwrap().len(), 100);
    let answer = run(&[1, 1, 1], json!({"globs": globs, "max_files": 2}));
    assert_eq!(
        (answer.output_names().len(), answer.refused_output_names().len()),
        (2, 1),
        "{}",
        answer.describe()
    );
}

#[test]
fn h039_an_archive_bomb_is_not_unpacked() {
    let fixture = Fixture::new();
    let memory = fixture.run_shell("true").process.peak_memory;
    let create_bombs = "head -c 100M /dev/zero | gzip | gzip > out/bomb.gz; head -c 50M /dev/zero > work/zeros; \
                tar -C /workspace/work -czf out/bomb.tar.gz zeros; ls -l out";
    let answer = collect(&fixture, create_bombs, &["out/*"]);
    for name in ["out/bomb.gz", "out/bomb.tar.gz"] {
        let file = answer.output_file(name);
        assert!(
            file["size_bytes"].as_u64().unwrap() < 1 << 20 && file.get("content").is_none(),
            "{file:?}"
        );
        assert!(file["mime_type"].as_str().unwrap().contains("gzip"), "{file:?}");
    }
    assert!(answer.process.peak_memory < memory + (32 << 20));
}

#[test]
pub fn h040_unusual_modes_are_not_copied() {
    let fixture = Fixture::new();
    let script = "for m in 000 4755 2755 1777 0200; do echo $m > out/$m.txt; chmod $m out/$m.txt; done; \
                mkdir out/closed; echo x > out/closed/x.txt; chmod 000 out/closed; mkdir out/deaf; chmod 500 out/deaf; \
                setfattr -n user.x -v y out/000.txt 2>/dev/null; true";
    let request = json!({"command": script, "output_files": ["out/**"]});
    let kept = fixture.path("kept");
    let answer = fixture
        .request(request)
        .with_args(&["--out-dir", kept.to_str().unwrap()])
        .run()
        .expect_report();
    for mode in ["000", "4755", "2755", "1777", "0200"] {
        let name = format!("out/{mode}.txt");
        if answer.output_names().contains(&name.as_str()) {
            assert_eq!(answer.output_file(&name)["content"], format!("{mode}\n"));
        } else {
            assert!(!refusal_reason(&answer, &name).is_empty());
        }
    }
    let written: Vec<_> = crate::workspace::files_below(&kept);
    assert!(
        !written.is_empty(),
        "--out-dir contains the files: {}",
        answer.describe()
    );
    for path in written {
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7000, 0, "{} has mode {mode:o}", path.display());
    }
    // A session whose workspace contains such files can be used again, and removed.
    let run = |command: &str| {
        fixture
            .request(json!({"command": command}))
            .in_session("modes")
            .run()
            .expect_report()
    };
    run(script);
    assert_eq!(
        run("cat out/4755.txt; echo new > out/new.txt; cat out/new.txt").stdout(),
        "4755\nnew\n"
    );
    let removed = fixture.command(&["session", "rm", "modes", "--json"]).run();
    assert_eq!(removed.code, Some(0), "{}", removed.describe());
    assert!(!fs::read_to_string(fixture.path("state/canary")).unwrap().is_empty());
    let sessions = fixture.command(&["session", "list", "--json"]).run();
    assert!(!sessions.mentions("modes"), "{}", sessions.describe());
}

#[test]
pub fn h040_the_workspaces_own_directories_are_repaired() {
    let damages = [
        "chmod 000 /workspace/work /workspace/out /workspace/tmp /workspace/home /workspace/runs",
        "chmod 000 /workspace",
        "chmod 000 work/inputs",
        "cd /workspace; rm -rf out work home tmp runs; for d in out work home tmp runs; do echo file > $d; done",
        "cd /workspace; rm -rf out work home tmp runs; for d in out work home tmp runs; do ln -s /etc $d; done",
        "cd /workspace; rm -rf out work home tmp runs; for d in out work home tmp runs; do mkfifo $d; done",
    ];
    let check = |fixture: &Fixture, launcher: &[String]| {
        for (number, damage) in damages.iter().enumerate() {
            let session = format!("damaged-{number}");
            let run = |request| {
                fixture
                    .request(request)
                    .in_session(&session)
                    .with_launcher(launcher)
                    .run()
                    .expect_report()
            };
            run(json!({"command": damage}));
            let use_all = "for d in out work home tmp $RUN_DIR work/inputs; do cd /workspace && echo x > $d/x || exit 1; done; cat $SKILL_DIR/inputs/SKILL.md | head -n 1";
            let answer = run(
                json!({"command": use_all, "inputs": [{"from": "skill://probe/SKILL.md"}], "output_files": ["out/*"]}),
            );
            assert_eq!(
                (answer.stdout(), &answer["exit_code"]),
                ("---\n", &json!(0)),
                "{damage}: {}",
                answer.describe()
            );
            assert_eq!(answer.output_names(), ["out/x"], "{damage}");
            let removed = fixture
                .command(&["session", "rm", &session])
                .with_launcher(launcher)
                .run();
            assert_eq!(removed.code, Some(0), "{damage}: {}", removed.describe());
        }
    };
    let fixture = Fixture::new();
    check(&fixture, &[]);
    // An ordinary user has no access to the daemon.
    if fixture.docker().is_none() && need_root() {
        let fixture = Fixture::new();
        let (id, user) = ordinary_user();
        fixture.chown_to(id);
        check(&fixture, &user);
    }
}

#[test]
fn h041_outputs_cannot_forge_a_report() {
    let fixture = Fixture::new();
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
    let mut script = format!("cat > work/forged <<'END'\n{forged}\nEND\n");
    for place in places {
        for name in names {
            script += &format!("cp work/forged {place}/{name} 2>/dev/null\n");
        }
    }
    script += "exit 3";
    for session in ["forging", "forging"] {
        let request = json!({"command": script, "output_files": ["out/*"]});
        let answer = fixture.request(request).in_session(session).run().expect_report();
        assert_eq!(answer["exit_code"], 3);
        assert_ne!(answer["run_id"], "forged");
        assert_eq!(answer.output_names().len(), names.len(), "{}", answer.describe());
    }
    let shown = fixture.command(&["session", "show", "forging", "--json"]).run();
    assert_eq!(shown.code, Some(0), "{}", shown.describe());
    assert!(!shown.mentions("\"forged\""));
}

#[test]
fn h042_changing_an_input_does_not_change_its_source() {
    let fixture = Fixture::new();
    let file = fixture.add_host_file("data.txt", "original\n");
    let put = fixture
        .command(&[
            "artifacts",
            "put",
            file.to_str().unwrap(),
            "--name",
            "data.txt",
            "--json",
        ])
        .run();
    assert_eq!(put.code, Some(0), "{}", put.describe());
    let host = format!("host://{}", file.display());
    let request = json!({
        "command": "for f in work/inputs/*; do echo changed > $f; done; cat work/inputs/*",
        "inputs": [{"from": "artifact://data.txt", "to": "inputs/a"}, {"from": host, "to": "inputs/b"}],
        "output_files": ["work/inputs/*"],
    });
    let answer = fixture.request(request).allow_host_inputs().run().expect_report();
    assert_eq!(answer.stdout(), "changed\nchanged\n", "{}", answer.describe());
    assert_eq!(answer.output_file("work/inputs/a")["content"], "changed\n");
    assert_eq!(fs::read_to_string(&file).unwrap(), "original\n");
    let again = json!({"command": "cat work/inputs/data.txt", "inputs": [{"from": "artifact://data.txt"}]});
    assert_eq!(fixture.request(again).run().expect_report().stdout(), "original\n");
    // A linked input is read-only, and the source itself.
    let linked = json!({
        "command": "cat work/inputs/l; echo changed > work/inputs/l; rm -f work/inputs/l; cat work/inputs/l",
        "inputs": [{"from": host, "to": "inputs/l", "mode": "link"}],
    });
    let answer = fixture.request(linked).allow_host_inputs().run().expect_report();
    assert_eq!(answer.stdout(), "original\noriginal\n", "{}", answer.describe());
    assert_eq!(fs::read_to_string(&file).unwrap(), "original\n");
}

#[test]
fn h043_no_mapping_of_an_output_outlives_the_run() {
    let fixture = Fixture::new();
    let write =
        json!({"argv": ["python3", "scripts/daemon.py", "mapping", "/workspace/out/m.bin"], "output_files": ["out/*"]});
    let answer = fixture.request(write).in_session("mapping").run().expect_report();
    let digest = answer.output_file("out/m.bin")["sha256"].clone();
    let read = json!({"command": "sha256sum out/m.bin; sleep 0.2; sha256sum out/m.bin", "output_files": ["out/*"]});
    let later = fixture.request(read).in_session("mapping").run().expect_report();
    let digests: Vec<&str> = later.stdout().split_whitespace().step_by(2).collect();
    assert_eq!(digests[0], digests[1], "a process still writes");
    assert!(
        digest.as_str().unwrap().ends_with(digests[0]),
        "{digest} was collected, the file is {}",
        digests[0]
    );
}

#[test]
fn h044_names_that_differ_in_case_or_form_are_two_files() {
    let fixture = Fixture::new();
    let script = "for f in Name name $'\\xc3\\xa9' $'e\\xcc\\x81'; do printf %s \"$f\" > \"out/$f\"; done";
    let answer = collect(&fixture, script, &["out/*"]);
    for name in ["out/Name", "out/name", "out/é", "out/e\u{301}"] {
        assert_eq!(
            answer.output_file(name)["content"].as_str(),
            name.strip_prefix("out/"),
            "{name}"
        );
    }
}

#[test]
fn h045_unusual_timestamps_are_accepted() {
    let fixture = Fixture::new();
    let script = "for d in 1901-12-14 1970-01-01 2038-01-20 2500-01-01; do echo $d > out/$d.txt; touch -d $d out/$d.txt || exit 1; done";
    let request = json!({"command": script, "output_files": ["out/*"], "save_as_artifacts": true});
    let answer = fixture
        .request(request)
        .with_args(&["--out-dir", &fixture.path_str("kept")])
        .run()
        .expect_report();
    assert_eq!(answer["exit_code"], 0, "{}", answer.describe());
    assert_eq!(
        (
            answer.output_names().len(),
            answer["artifact_files"].as_array().unwrap().len()
        ),
        (4, 4),
        "{}",
        answer.describe()
    );
}
