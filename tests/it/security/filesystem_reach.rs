//! 3.1: files of the host that a script must not reach.

use serde_json::json;

use crate::harness::{Fixture, is_refusal, kill_and_reap, need_root, tree_contents};

#[test]
pub fn h001_secrets_of_the_host_are_absent() {
    let fixture = Fixture::new();
    let files = [
        "home/.ssh/id_ed25519",
        "home/.aws/credentials",
        "home/.netrc",
        "home",
        "host/canary.txt",
    ];
    let paths: Vec<String> = files.iter().map(|file| fixture.path_str(file)).collect();
    let args: Vec<[&str; 1]> = paths.iter().map(|path| [path.as_str()]).collect();
    let probes: Vec<(&str, &[&str])> = args.iter().map(|args| ("read_file.py", &args[..])).collect();
    fixture.assert_refused(&probes);
    if need_root() {
        fixture.assert_refused(&[("read_file.py", &["/etc/shadow"]), ("read_file.py", &["/root"])]);
    }
    assert!(
        !fixture
            .run_shell("cat ~/.ssh/* ~/.aws/* ~/.netrc /root/.ssh/* /home/*/.ssh/*")
            .mentions(fixture.canary())
    );
}

#[test]
pub fn h002_state_and_other_skills_are_absent() {
    let fixture = Fixture::new();
    let other = fixture.add_skill("other", &[("secret.txt", fixture.canary())]);
    // A first run creates the usual files in the state directory.
    fixture.run_shell("true");
    let paths = [
        fixture.path_str("state"),
        fixture.path_str("state/canary"),
        other.join("secret.txt").to_str().unwrap().to_owned(),
    ];
    for path in &paths {
        fixture.assert_refused(&[("read_file.py", &[path])]);
    }
    let all = fixture
        .run_shell("cat /workspace/skills/*/* /workspace/*/* 2>/dev/null; ls -laR /workspace /run /var /etc /tmp");
    assert!(!all.mentions(fixture.canary()), "{}", all.describe());
    assert!(
        fixture
            .control_shell(&format!("cat {}/*", fixture.path_str("skills/other")))
            .contains(fixture.canary())
    );
}

#[test]
pub fn h003_the_system_and_the_skill_cannot_be_written() {
    let fixture = Fixture::new();
    let before = tree_contents(&fixture.path("skills"));
    fixture.assert_refused_inside(&[
        ("create_file.py", &["/usr"]),
        ("create_file.py", &["/usr/bin"]),
        ("create_file.py", &["/etc"]),
        ("create_file.py", &["/bin"]),
        ("create_file.py", &["/lib"]),
        ("create_file.py", &["/"]),
        ("create_file.py", &["/workspace/skills"]),
        ("open_for_writing.py", &["/usr/lib/os-release"]),
        ("open_for_writing.py", &["/etc/passwd"]),
    ]);
    // What a script writes in the directory of its skill is in a view of its own, or refused with the setting.
    let writes = "touch new scripts/new; echo changed >> SKILL.md; ls new scripts/new; tail -1 SKILL.md";
    for (args, expected) in [
        (&[][..], "new\nscripts/new\nchanged\n"),
        (&["--skill-dir", "read_only"], "\n"),
    ] {
        let answer = fixture
            .request(json!({"command": writes}))
            .with_args(args)
            .run()
            .expect_report();
        let seen = answer.stdout().replace("# probe\n", "\n");
        assert_eq!(seen, expected, "{}", answer.describe());
    }
    assert_eq!(
        fixture.control_probe("create_file.py", &[&fixture.path_str("scratch")]),
        "allowed"
    );
    assert_eq!(
        fixture.control_probe("open_for_writing.py", &[&fixture.path_str("skills/probe/SKILL.md")]),
        "allowed"
    );
    if need_root() {
        assert_eq!(
            fixture.control_probe("open_for_writing.py", &["/usr/lib/os-release"]),
            "allowed"
        );
    }
    assert_eq!(
        tree_contents(&fixture.path("skills")),
        before,
        "the source of the skill changed"
    );
}

#[test]
pub fn h004_a_read_only_mount_stays_read_only() {
    let fixture = Fixture::new();
    fixture.assert_refused_inside(&[
        ("mounting.py", &["remount", "/usr"]),
        ("mounting.py", &["remount", "/workspace/skills/probe"]),
        ("mounting.py", &["bind", "/workspace/work"]),
        ("mounting.py", &["bind", "/usr"]),
    ]);
    if need_root() {
        let private = ["unshare", "--mount"];
        for way in ["remount", "bind"] {
            let args = [way, &fixture.path_str("scratch"), "prepare"];
            assert_eq!(fixture.control_probe_with(&private, "mounting.py", &args), "allowed");
        }
    }
}

#[test]
fn h005_a_read_only_descriptor_cannot_be_reopened_for_writing() {
    let fixture = Fixture::new();
    assert_eq!(
        fixture.control_probe("reopen_writable.py", &[&fixture.path_str("skills/probe/SKILL.md")]),
        "allowed"
    );
    // A file of the skill can be reopened: for writing to the view of this run (h199).
    fixture.assert_refused_inside(&[("reopen_writable.py", &["/usr/lib/os-release"])]);
}

#[test]
fn h006_the_root_cannot_be_left_by_climbing() {
    let fixture = Fixture::new();
    let canary = fixture.path_str("host/canary.txt");
    for way in ["dots", "descriptor"] {
        assert_eq!(fixture.control_probe("climb.py", &[way, &canary]), "outside");
        assert_eq!(fixture.run_probe("climb.py", &[way, &canary]), "inside");
    }
    if need_root() {
        let private = ["unshare", "--mount"];
        assert_eq!(
            fixture.control_probe_with(&private, "climb.py", &["chroot", &canary]),
            "outside"
        );
    }
    let word = fixture.run_probe("climb.py", &["chroot", &canary]);
    assert!(is_refusal(&word), "chroot: {word}");
}

#[test]
pub fn h007_files_cannot_be_opened_by_handle() {
    let fixture = Fixture::new();
    // The handle belongs to a canary, which is on the same filesystem as /usr in a container.
    let handle = fixture.control_probe("file_handle.py", &["make", &fixture.path_str("host/canary.txt")]);
    assert!(handle.contains(':'), "the control gets no handle: {handle}");
    if need_root() {
        let found = fixture.control_probe("file_handle.py", &["open", &fixture.path_str("host"), &handle]);
        assert_eq!(found, "CANARY-");
    }
    for mount in ["/usr", "/", "/workspace", "/workspace/skills/probe"] {
        let word = fixture.run_probe("file_handle.py", &["open", mount, &handle]);
        assert!(is_refusal(&word), "open_by_handle_at on {mount}: {word}");
    }
    fixture.assert_refused_inside(&[("file_handle.py", &["make", "/usr/lib/os-release"])]);
}

#[test]
pub fn h008_device_nodes_cannot_be_made() {
    let fixture = Fixture::new();
    if need_root() {
        assert_eq!(
            fixture.control_probe("make_device.py", &[&fixture.path_str("scratch"), "char", "1", "5"]),
            "allowed"
        );
    }
    for place in ["/workspace/out", "/dev", "/dev/shm", "/tmp"] {
        fixture.assert_refused_inside(&[
            ("make_device.py", &[place, "char", "1", "5"]),
            ("make_device.py", &[place, "char", "1", "1"]),
            ("make_device.py", &[place, "block", "8", "0"]),
        ]);
    }
}

#[test]
fn h009_a_read_only_file_cannot_be_hard_linked() {
    let fixture = Fixture::new();
    let (from, to) = (
        fixture.add_host_file("linked.txt", "x"),
        fixture.path_str("scratch/link"),
    );
    assert_eq!(
        fixture.control_probe("hard_link.py", &[from.to_str().unwrap(), &to]),
        "allowed"
    );
    fixture.assert_refused_inside(&[
        ("hard_link.py", &["/usr/lib/os-release", "/workspace/work/a"]),
        (
            "hard_link.py",
            &["/workspace/skills/probe/SKILL.md", "/workspace/work/b"],
        ),
        ("hard_link.py", &["/etc/passwd", "/tmp/c"]),
    ]);
}

#[test]
fn h010_a_directory_swapped_for_a_link_during_the_run_is_not_followed() {
    let fixture = Fixture::new();
    let swaps = [
        "mv /workspace/out /workspace/work/away; ln -s /etc /workspace/out; cat /workspace/out/hosts",
        "rm -rf /workspace/work; ln -s /etc /workspace/work; cat /workspace/work/hosts",
        "cd /workspace; mv out gone; mkdir x; ln -s /etc x/y; ln -s x/y out; cat out/hosts",
    ];
    for swap in swaps {
        let request = json!({"command": swap, "output_files": ["out/**", "work/**"], "timeout": 100});
        let answer = fixture.request(request).run().expect_report();
        // The script can follow the link: a collector that did would find these files.
        assert!(answer.stdout().contains("localhost"), "{}", answer.describe());
        assert!(
            !answer.output_names().iter().any(|name| name.ends_with("hosts")),
            "{}",
            answer.describe()
        );
    }
}

#[test]
fn h011_a_full_workspace_affects_that_run_only() {
    let fixture = Fixture::new();
    fixture.add_profile("small", &[("workspace", "8 MiB")]);
    let fill = "for place in /workspace/work /workspace/tmp /tmp /; do cat /dev/zero > $place/fill; done 2>&1; \
                echo still here";
    let answer = fixture
        .request(json!({"command": fill, "profile": "small", "timeout": 100}))
        .run()
        .expect_report();
    assert!(answer.stdout().contains("No space left"), "{}", answer.describe());
    let next = fixture
        .request(json!({"command": "head -c 4M /dev/zero > work/x && echo fine", "profile": "small"}))
        .run();
    assert_eq!(next.expect_report()["stdout"], "fine\n");
}

#[test]
fn h012_proc_roots_show_nothing_of_the_host() {
    let fixture = Fixture::new();
    let canary = fixture.path_str("host/canary.txt");
    assert_eq!(
        fixture.control_probe("read_file.py", &[&format!("/proc/self/root{canary}")]),
        "allowed"
    );
    let read_roots = format!(
        "for root in /proc/*/root /proc/*/cwd /proc/*/task/*/root; do cat $root{canary}; ls $root/; done 2>/dev/null; true"
    );
    let answer = fixture.run_shell(&read_roots);
    assert!(!answer.mentions(fixture.canary()), "{}", answer.describe());
    for entry in ["boot", "home", "root", "srv", "mnt", "media", "opt"] {
        assert!(
            !answer.stdout().lines().any(|line| line == entry),
            "{entry} of the host is visible: {}",
            answer.describe()
        );
    }
}

#[test]
fn h013_the_mount_table_shows_no_path_of_the_host() {
    let fixture = Fixture::new();
    let top = fixture.root_dir().to_str().unwrap().to_owned();
    if need_root() {
        let bound = format!("mount --bind {top}/host {top}/scratch && cat /proc/self/mountinfo");
        assert!(
            fixture
                .control_shell(&format!("unshare --mount bash -c '{bound}'"))
                .contains(&top)
        );
    }
    let input = fixture.add_host_file("in.txt", "x");
    let request = json!({
        "command": "cat /proc/self/mountinfo /proc/mounts /proc/1/mountinfo /proc/self/mountstats",
        "inputs": [{"from": format!("host://{}", input.display()), "mode": "link"}],
    });
    for session in [None, Some("mount-table")] {
        let invocation = fixture.request(request.clone()).allow_host_inputs();
        let answer = invocation.in_optional_session(session).run().expect_report();
        assert!(answer.stdout().contains("/workspace"), "{}", answer.describe());
        let leaks: Vec<&str> = answer
            .stdout()
            .lines()
            // The sources of the workspace's own mounts are visible, as SECURITY.md states.
            .filter(|line| line.contains("skillbox-it-") && !line.contains(" /workspace"))
            .collect();
        assert!(leaks.is_empty(), "paths of the host in the mount table: {leaks:#?}");
    }
}

#[test]
fn h014_no_way_to_execute_gains_privileges() {
    let fixture = Fixture::new();
    let ways = [
        "cp /usr/bin/grep work/g && chmod 4755 work/g && work/g",
        "cp /usr/bin/grep work/g && $(ls /lib64/ld-linux* /lib/ld-linux* 2>/dev/null | head -n 1) work/g",
        "cp /usr/bin/grep out/g && out/g",
        "python3 -c 'import os,sys; m=os.memfd_create(\"g\"); os.write(m, open(\"/usr/bin/grep\",\"rb\").read()); \
         os.execve(m, [\"g\"]+sys.argv[1:], os.environ)'",
    ];
    for way in ways {
        let answer = fixture.run_shell(&format!("{way} -E '^(Uid|Cap|NoNewPrivs)' /proc/self/status"));
        assert_eq!(answer["exit_code"], 0, "{way}: {}", answer.describe());
        let field = |name: &str| {
            answer
                .stdout()
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .unwrap()
                .trim()
        };
        assert_eq!(field("NoNewPrivs:"), "1", "{way}");
        for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
            assert_eq!(field(set), "0000000000000000", "{way}: {set}");
        }
        assert!(
            !field("Uid:").split_whitespace().any(|id| id == "0"),
            "{way}: {}",
            answer.describe()
        );
    }
    assert!(
        fixture
            .control_shell("grep ^NoNewPrivs /proc/self/status")
            .ends_with('0')
    );
}

#[test]
fn h015_directories_of_a_run_cannot_be_watched_by_another() {
    let fixture = Fixture::new();
    // A watch reports the use of a directory: outside, and inside the same run.
    let use_directory =
        |place: &str| format!("(while :; do cat {place}/busy; sleep 0.02; done) >/dev/null 2>&1 & busy=$!");
    let host = fixture.path_str("host");
    let line = format!(
        "touch {host}/busy; {}; python3 scripts/watch_directory.py {host} 60 | tail -n 1; kill $busy",
        use_directory(&host)
    );
    assert_eq!(fixture.control_shell(&line), "seen");
    let places = [
        "/workspace/work",
        "/workspace/out",
        "/tmp",
        "/dev/shm",
        "/workspace/home",
    ];
    for place in places {
        let own = format!(
            "touch {place}/busy; {}; python3 scripts/watch_directory.py {place} 60 | tail -n 1; kill $busy",
            use_directory(place)
        );
        assert_eq!(
            fixture.run_shell(&own).stdout(),
            "seen
",
            "{place}"
        );
    }
    // The use of the same directories by another run is not reported. SECURITY.md lists the trees that are shared on
    // purpose, such as /usr.
    let token = format!("{}-busy", fixture.canary());
    let uses: String = places
        .iter()
        .map(|place| format!("touch {place}/busy; (while :; do cat {place}/busy; sleep 0.02; done) >/dev/null & "))
        .collect();
    let mut other = fixture
        .request(json!({"argv": ["bash", "-c", format!("{uses} wait"), token], "timeout": 300}))
        .spawn();
    fixture.wait_for("the loops of the other run", || {
        (fixture.host_pids_with(&token).len() > places.len()).then_some(())
    });
    let watch: String = places
        .iter()
        .map(|place| format!("python3 scripts/watch_directory.py {place} 1 & "))
        .collect();
    let watched = fixture.run_shell(&format!("{watch} wait"));
    assert!(
        fixture.host_pids_with(&token).len() > places.len(),
        "the other run ended too early"
    );
    kill_and_reap(&mut other);
    fixture.wait_for_no_process_with(&token);
    let words: Vec<&str> = watched.stdout().lines().filter(|line| *line != "watching").collect();
    assert_eq!(words, ["quiet"; 5], "{}", watched.describe());
    assert!(is_refusal(&fixture.run_probe("raw_call.py", &["fanotify_init"])));
}

#[test]
fn h016_a_script_cannot_take_leases_on_host_files() {
    let fixture = Fixture::new();
    let file = fixture.add_host_file("leased.txt", "x");
    assert_eq!(
        fixture.control_probe("lease.py", &["read", file.to_str().unwrap()]),
        "allowed"
    );
    fixture.assert_refused_inside(&[
        ("lease.py", &["write", "/usr/lib/os-release"]),
        ("lease.py", &["read", "/usr/lib/os-release"]),
        ("lease.py", &["read", "/workspace/skills/probe/SKILL.md"]),
    ]);
    // Neither on a linked input, which is the inode of the host.
    let request = json!({
        "command": "python3 scripts/lease.py read work/inputs/leased.txt",
        "inputs": [{"from": format!("host://{}", file.display()), "mode": "link"}],
    });
    let word = fixture.request(request).allow_host_inputs().run().expect_word();
    assert!(is_refusal(&word), "a lease on a linked input: {word}");
}
