//! 3.13: scripts, inputs and outputs that fill the disk of the host.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use serde_json::json;

use crate::harness::{Answer, Fixture, Invocation, need, need_root, ordinary_user};
use crate::workspace::files_below;

const MIB: u64 = 1 << 20;

/// Allocates 40 files of 32 MiB and prints how many succeeded.
const ALLOCATE: &str = r#"python3 -c '
import os
done = 0
for number in range(40):
    descriptor = os.open(f"work/{number}", os.O_WRONLY | os.O_CREAT)
    try:
        os.posix_fallocate(descriptor, 0, 32 << 20)
    except OSError as error:
        break
    done += 1
print(done)
'"#;

/// Fills 40 files of 16 MiB that have no name, and keeps them open.
const HOLD_NAMELESS: &str = r#"python3 -c '
import os, time
kept = []
for number in range(40):
    file = open("work/nameless", "w+b", buffering=0)
    os.unlink("work/nameless")
    kept.append(file)
    for _ in range(16):
        if file.write(bytes(1 << 20)) < 1 << 20:
            raise OSError("no space")
print("all written", flush=True)
time.sleep(100)
'"#;

/// The bytes of the disk that the files of a directory use.
fn allocated_bytes(directory: &Path) -> u64 {
    let files = files_below(directory);
    let blocks = |path| fs::symlink_metadata(path).map_or(0, |meta| meta.blocks());
    files.iter().map(blocks).sum::<u64>() * 512
}

/// A file with a hole of this size and 12 KiB of content.
fn add_sparse_file(fixture: &Fixture, name: &str, hole: u64) -> String {
    let path = fixture.add_host_file(name, "");
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(&[7; 12 << 10], hole).unwrap();
    assert!(
        allocated_bytes(path.parent().unwrap()) < MIB,
        "the file system has no sparse files"
    );
    path.to_str().unwrap().to_owned()
}

/// Every way in which this machine limits the workspace of a session: as root, and as an ordinary user.
fn for_each_user(work: impl Fn(&Fixture, &dyn Fn(Invocation<'_>) -> Answer)) {
    let fixture = Fixture::new();
    fixture.add_profile("small", &[("workspace", "64 MiB"), ("file", "64 MiB")]);
    work(&fixture, &|request| request.run());
    if !need_root() {
        return;
    }
    let fixture = Fixture::new();
    fixture.add_profile("small", &[("workspace", "64 MiB"), ("file", "64 MiB")]);
    let (id, launcher) = ordinary_user();
    fixture.chown_to(id);
    work(&fixture, &|request| request.with_launcher(&launcher).run());
}

#[test]
fn h178_a_session_cannot_allocate_beyond_its_quota() {
    for_each_user(|fixture, run| {
        let state = fixture.path("state");
        let request = json!({"command": ALLOCATE, "profile": "small", "timeout": 100});
        let answer = run(fixture.request(request).in_session("s")).expect_report();
        let quota = answer.layer_status("workspace_quota").to_owned();
        let used = allocated_bytes(&state);
        // A quota that is checked periodically can be exceeded, but only at the speed of writes.
        let tolerated = if quota == "enforced" { 80 * MIB } else { 512 * MIB };
        assert!(used < tolerated, "{quota}: {} MiB, {}", used / MIB, answer.describe());
        // What fits into the quota can be allocated.
        let clear = json!({"command": "rm -rf work/*", "profile": "small"});
        run(fixture.request(clear).in_session("s")).expect_report();
        let allocate = "python3 -c 'import os; \
            os.posix_fallocate(os.open(\"work/x\", os.O_WRONLY | os.O_CREAT), 0, 8 << 20)' && echo allocated";
        let request = json!({"command": allocate, "profile": "small"});
        let allocated = run(fixture.request(request).in_session("s")).expect_report();
        assert_eq!(allocated.stdout(), "allocated\n", "{}", allocated.describe());
    });
}

#[test]
fn h179_nameless_files_count_against_the_quota() {
    for_each_user(|fixture, run| {
        let request = json!({"command": HOLD_NAMELESS, "profile": "small", "timeout": 20});
        let answer = run(fixture.request(request).in_session("s")).expect_report();
        assert!(
            answer["ended_by"] == "disk" || (answer["ended_by"] == "exit" && answer["exit_code"] != 0),
            "{}",
            answer.describe()
        );
        assert!(allocated_bytes(&fixture.path("state")) < 80 * MIB);
        // Nameless files within the quota are no reason to end a run.
        let small = "python3 -c 'import os, time; f = open(\"work/n\", \"wb\"); os.unlink(\"work/n\"); \
            f.write(bytes(8 << 20)); f.flush(); time.sleep(0.5); print(\"kept\")'";
        let request = json!({"command": small, "profile": "small", "timeout": 20});
        let answer = run(fixture.request(request).in_session("s")).expect_report();
        assert_eq!(answer.stdout(), "kept\n", "{}", answer.describe());
    });
}

#[test]
fn h180_the_workspace_of_a_session_has_a_hard_limit_where_the_host_can_give_one() {
    if !need_root() || !need(Path::new("/dev/loop-control").exists(), "loop devices") {
        return;
    }
    let fixture = Fixture::new();
    fixture.add_profile("small", &[("workspace", "64 MiB"), ("workspace_inodes", "500")]);
    let run = |command: &str| {
        let request = json!({"command": command, "profile": "small", "timeout": 100});
        fixture.request(request).in_session("s").run().expect_report()
    };
    let written = run("head -c 100M /dev/zero > work/fill; stat -c %s work/fill; rm work/fill");
    assert_eq!(
        written.layer_status("workspace_quota"),
        "enforced",
        "{}",
        written.describe()
    );
    let size: u64 = written.stdout().trim().parse().unwrap();
    assert!((60 * MIB..70 * MIB).contains(&size), "{size}");
    let inodes = run("for i in $(seq 1000); do echo > work/$i || break; done; ls work | wc -l; rm -rf work/*");
    let count: u64 = inodes.stdout().trim().parse().unwrap();
    assert!((400..700).contains(&count), "{count}");
    // Freed space returns to the host, the workspace survives its process, and nothing stays mounted.
    run("head -c 40M /dev/urandom > work/fill; rm work/fill; echo kept > work/kept; sync");
    assert_eq!(run("cat work/kept").stdout(), "kept\n");
    assert!(allocated_bytes(&fixture.path("state")) < 32 * MIB);
    let state = fixture.path_str("state");
    assert!(!fs::read_to_string("/proc/self/mountinfo").unwrap().contains(&state));
    let removed = fixture.command(&["session", "rm", "s", "--json"]).run();
    assert_eq!(removed.code, Some(0), "{}", removed.describe());
    assert!(allocated_bytes(&fixture.path("state")) < 8 * MIB);
}

#[test]
fn h181_sparse_inputs_stay_sparse() {
    for_each_user(|fixture, run| {
        let path = add_sparse_file(fixture, "sparse.bin", 40 * MIB);
        for session in [None, Some("s")] {
            let request = json!({
                "command": "stat -c '%s %b' work/inputs/sparse.bin; tail -c 1 work/inputs/sparse.bin | od -An -tu1",
                "inputs": [{"from": format!("host://{path}")}],
                "profile": "small",
            });
            let request = fixture
                .request(request)
                .in_optional_session(session)
                .allow_host_inputs();
            let answer = run(request).expect_report();
            let numbers: Vec<u64> = answer
                .stdout()
                .split_whitespace()
                .map(|word| word.parse().unwrap())
                .collect();
            assert_eq!(
                (numbers[0], numbers[2]),
                (40 * MIB + (12 << 10), 7),
                "{}",
                answer.describe()
            );
            assert!(numbers[1] * 512 < MIB, "{session:?}: {} blocks", numbers[1]);
        }
    });
}

#[test]
fn h182_inputs_do_not_exceed_the_quota() {
    for_each_user(|fixture, run| {
        let path = fixture.add_host_file("large.bin", vec![1; 80 << 20]);
        let path = path.to_str().unwrap();
        for session in [None, Some("s")] {
            let inputs = json!({"command": "true", "profile": "small", "inputs": [{"from": format!("host://{path}")}]});
            let request = fixture.request(inputs).in_optional_session(session).allow_host_inputs();
            let answer = run(request);
            let (code, field) = answer.expect_refusal();
            assert_eq!(
                (code, field),
                ("limit_exceeded", Some("inputs[0].from")),
                "{}",
                answer.describe()
            );
            assert!(allocated_bytes(&fixture.path("state")) < 80 * MIB);
        }
        // The next run of the session finds its workspace usable.
        let request = json!({"command": "echo fine", "profile": "small"});
        assert_eq!(
            run(fixture.request(request).in_session("s")).expect_report().stdout(),
            "fine\n"
        );
    });
}

#[test]
fn h183_a_directory_is_not_staged_into_itself() {
    let fixture = Fixture::new();
    let run = |from: &str, to: &str| {
        let request = json!({"command": "find work | wc -l", "inputs": [{"from": from, "to": to}]});
        fixture.request(request).in_session("s").run()
    };
    let first = json!({"command": "mkdir -p work/a/b; echo x > work/a/b/c"});
    fixture.request(first).in_session("s").run().expect_report();
    for (from, to) in [
        ("workspace://work", "work/inputs/copy"),
        ("workspace://work/a", "work/a/b/a"),
        ("workspace://work/a", "work/a"),
    ] {
        let answer = run(from, to);
        let (code, field) = answer.expect_refusal();
        assert_eq!(
            (code, field),
            ("invalid_request", Some("inputs[0].to")),
            "{}",
            answer.describe()
        );
    }
    run("workspace://work/a", "work/ab").expect_report();
}

#[test]
fn h184_sparse_outputs_stay_sparse_in_the_store() {
    let fixture = Fixture::new();
    let make = "for i in 1 2 3; do truncate -s 100M out/$i; echo $i | dd of=out/$i bs=1 seek=99M conv=notrunc; done";
    let request = json!({
        "command": make,
        "outputs": {"globs": ["out/*"], "save": true, "inline": false, "max_total_bytes": 400 * MIB},
    });
    let answer = fixture.request(request).run().expect_report();
    assert_eq!(
        answer["artifact_files"].as_array().unwrap().len(),
        3,
        "{}",
        answer.describe()
    );
    let used = allocated_bytes(&fixture.path("state"));
    assert!(used < 16 * MIB, "{} MiB", used / MIB);
    let target = fixture.path_str("scratch/read");
    let got = fixture.command(&["artifacts", "get", "out/2", "--to", &target]).run();
    assert_eq!(got.code, Some(0), "{}", got.describe());
    assert_eq!(fs::metadata(target).unwrap().len(), 100 * MIB);
}

#[test]
fn h185_the_artifact_store_has_a_quota() {
    let fixture = Fixture::new();
    let save = |name: &str, bytes: u64| {
        let command = format!("head -c {bytes} /dev/urandom > out/{name}");
        let request = json!({"command": command, "outputs": {"globs": ["out/*"], "save": true, "inline": false}});
        fixture
            .request(request)
            .with_args(&["--max-artifact-bytes", "4194304"])
            .run()
    };
    save("first", 3 * MIB).expect_report();
    let refused = save("second", 3 * MIB);
    assert_eq!(refused.expect_refusal().0, "limit_exceeded", "{}", refused.describe());
    assert!(refused.mentions("max_artifact_bytes"), "{}", refused.describe());
    assert!(
        allocated_bytes(&fixture.path("state/artifacts")) < 4 * MIB,
        "nothing of the second file stays"
    );
    // What is removed makes room.
    let removed = fixture.command(&["artifacts", "rm", "out/first"]).run();
    assert_eq!(removed.code, Some(0), "{}", removed.describe());
    save("second", 3 * MIB).expect_report();
}

#[test]
fn h186_a_directory_with_links_is_staged_twice() {
    let fixture = Fixture::new();
    fixture.add_host_file("tree/file", "content");
    let link = fixture.path("host/tree/link");
    std::os::unix::fs::symlink("file", &link).unwrap();
    let from = format!("host://{}", fixture.path_str("host/tree"));
    for _ in 0..2 {
        let request = json!({"command": "cat work/inputs/tree/link", "inputs": [{"from": from}]});
        let answer = fixture
            .request(request)
            .in_session("s")
            .allow_host_inputs()
            .run()
            .expect_report();
        assert_eq!(answer.stdout(), "content", "{}", answer.describe());
    }
}

#[test]
fn h187_the_name_of_a_session_is_not_visible_inside() {
    for_each_user(|fixture, run| {
        let name = "secret-session-name";
        let look = json!({"command": "cat /proc/self/mountinfo /proc/self/mounts; env", "profile": "small"});
        let answer = run(fixture.request(look).in_session(name)).expect_report();
        assert!(answer.stdout().contains("/workspace"), "{}", answer.describe());
        assert!(!answer.stdout().contains(name), "{}", answer.describe());
        assert!(
            fixture.path("state/sessions").join(name).exists(),
            "the name is that of a directory outside"
        );
    });
}

#[test]
fn h188_unused_frozen_skills_are_removed_and_used_ones_stay() {
    let fixture = Fixture::new();
    for number in 0..3 {
        fixture.add_skill("versions", &[("run.sh", &format!("echo {number}\n"))]);
        let request = json!({"skill": "versions", "argv": ["sh", "run.sh"]});
        assert_eq!(
            fixture.request(request).run().expect_report().stdout(),
            format!("{number}\n")
        );
    }
    let usage = |kind: &str| {
        let answer = fixture.command(&["state", "du", "--json"]).run();
        let entries = answer["usage"]
            .as_array()
            .unwrap_or_else(|| panic!("{}", answer.describe()))
            .clone();
        let found = entries.iter().find(|entry| entry["kind"] == kind).unwrap();
        (found["entries"].as_u64().unwrap(), found["bytes"].as_u64().unwrap())
    };
    assert_eq!(usage("snapshots").0, 3);
    assert!(usage("snapshots").1 > 0);
    let collect = |arguments: &[&str]| {
        let answer = fixture.command(&[&["state", "gc", "--json"], arguments].concat()).run();
        assert_eq!(answer.code, Some(0), "{}", answer.describe());
        answer["snapshots"]["snapshots"].as_u64().unwrap()
    };
    assert_eq!(collect(&[]), 0, "snapshots that were used today stay");
    // A run keeps its snapshot, whatever the age.
    let request = json!({"command": "echo started > out/started; sleep 7431; cat SKILL.md", "timeout": 100});
    let mut running = fixture.request(request).in_session("s").spawn();
    fixture.wait_for("the run", || (usage("snapshots").0 == 4).then_some(()));
    fixture.wait_for("its command", || {
        (!fixture.host_pids_with("7431").is_empty()).then_some(())
    });
    assert_eq!(collect(&["--snapshot-days", "0"]), 3);
    assert_eq!(usage("snapshots").0, 1);
    crate::harness::kill_and_reap(&mut running);
    fixture.wait_for_no_process_with("7431");
    assert_eq!(collect(&["--snapshot-days", "0"]), 1);
    // The next run freezes the skill again.
    assert_eq!(fixture.run_shell("echo again").stdout(), "again\n");
}
