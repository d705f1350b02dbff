//! 3.1: what of the host's files a script can reach.

use std::time::Duration;

use serde_json::json;

use crate::lab::{Scene, is_refusal, need_root, tree_digest};

#[test]
pub fn h001_secrets_of_the_host_are_absent() {
    let scene = Scene::new();
    let files = [
        "home/.ssh/id_ed25519",
        "home/.aws/credentials",
        "home/.netrc",
        "home",
        "host/canary.txt",
    ];
    let paths: Vec<String> = files.iter().map(|file| scene.text(file)).collect();
    let args: Vec<[&str; 1]> = paths.iter().map(|path| [path.as_str()]).collect();
    let probes: Vec<(&str, &[&str])> = args.iter().map(|args| ("read_file.py", &args[..])).collect();
    scene.refuses(&probes);
    if need_root() {
        scene.refuses(&[("read_file.py", &["/etc/shadow"]), ("read_file.py", &["/root"])]);
    }
    assert!(
        !scene
            .sh("cat ~/.ssh/* ~/.aws/* ~/.netrc /root/.ssh/* /home/*/.ssh/*")
            .mentions(scene.canary())
    );
}

#[test]
pub fn h002_state_and_other_skills_are_absent() {
    let scene = Scene::new();
    let other = scene.skill("other", &[("secret.txt", scene.canary())]);
    // A first run leaves whatever a run leaves in the state directory.
    scene.sh("true");
    let paths = [
        scene.text("state"),
        scene.text("state/canary"),
        other.join("secret.txt").to_str().unwrap().to_owned(),
    ];
    for path in &paths {
        scene.refuses(&[("read_file.py", &[path])]);
    }
    let all = scene.sh("cat /workspace/skills/*/* /workspace/*/* 2>/dev/null; ls -laR /workspace /run /var /etc /tmp");
    assert!(!all.mentions(scene.canary()), "{}", all.told());
    assert!(
        scene
            .control_sh(&format!("cat {}/*", scene.text("skills/other")))
            .contains(scene.canary())
    );
}

#[test]
pub fn h003_the_system_and_the_skill_cannot_be_written() {
    let scene = Scene::new();
    let before = tree_digest(&scene.path("skills"));
    scene.refuses_inside(&[
        ("create_file.py", &["/usr"]),
        ("create_file.py", &["/usr/bin"]),
        ("create_file.py", &["/etc"]),
        ("create_file.py", &["/bin"]),
        ("create_file.py", &["/lib"]),
        ("create_file.py", &["/"]),
        ("create_file.py", &["/workspace/skills/probe"]),
        ("create_file.py", &["/workspace/skills/probe/scripts"]),
        ("create_file.py", &["/workspace/skills"]),
        ("open_for_writing.py", &["/workspace/skills/probe/SKILL.md"]),
        ("open_for_writing.py", &["/usr/lib/os-release"]),
        ("open_for_writing.py", &["/etc/passwd"]),
    ]);
    assert_eq!(scene.control("create_file.py", &[&scene.text("scratch")]), "allowed");
    assert_eq!(
        scene.control("open_for_writing.py", &[&scene.text("skills/probe/SKILL.md")]),
        "allowed"
    );
    if need_root() {
        assert_eq!(
            scene.control("open_for_writing.py", &["/usr/lib/os-release"]),
            "allowed"
        );
    }
    assert_eq!(tree_digest(&scene.path("skills")), before, "the skill's source changed");
}

#[test]
pub fn h004_a_read_only_mount_stays_read_only() {
    let scene = Scene::new();
    scene.refuses_inside(&[
        ("mounting.py", &["remount", "/usr"]),
        ("mounting.py", &["remount", "/workspace/skills/probe"]),
        ("mounting.py", &["bind", "/workspace/work"]),
        ("mounting.py", &["bind", "/usr"]),
    ]);
    if need_root() {
        let private = ["unshare", "--mount"];
        for way in ["remount", "bind"] {
            let args = [way, &scene.text("scratch"), "prepare"];
            assert_eq!(scene.control_behind(&private, "mounting.py", &args), "allowed");
        }
    }
}

#[test]
fn h005_a_read_only_descriptor_cannot_be_reopened_for_writing() {
    let scene = Scene::new();
    assert_eq!(
        scene.control("reopen_writable.py", &[&scene.text("skills/probe/SKILL.md")]),
        "allowed"
    );
    scene.refuses_inside(&[
        ("reopen_writable.py", &["/workspace/skills/probe/SKILL.md"]),
        ("reopen_writable.py", &["/usr/lib/os-release"]),
    ]);
}

#[test]
fn h006_nothing_climbs_out_of_the_root() {
    let scene = Scene::new();
    let canary = scene.text("host/canary.txt");
    for way in ["dots", "descriptor"] {
        assert_eq!(scene.control("climb.py", &[way, &canary]), "outside");
        assert_eq!(scene.probe("climb.py", &[way, &canary]), "inside");
    }
    if need_root() {
        let private = ["unshare", "--mount"];
        assert_eq!(
            scene.control_behind(&private, "climb.py", &["chroot", &canary]),
            "outside"
        );
    }
    let word = scene.probe("climb.py", &["chroot", &canary]);
    assert!(is_refusal(&word), "chroot: {word}");
}

#[test]
pub fn h007_file_handles_open_nothing() {
    let scene = Scene::new();
    // The handle is a real one of a canary on the same filesystem as /usr where that is so, as in a container.
    let handle = scene.control("file_handle.py", &["make", &scene.text("host/canary.txt")]);
    assert!(handle.contains(':'), "the control gets no handle: {handle}");
    if need_root() {
        let found = scene.control("file_handle.py", &["open", &scene.text("host"), &handle]);
        assert_eq!(found, "CANARY-");
    }
    for mount in ["/usr", "/", "/workspace", "/workspace/skills/probe"] {
        let word = scene.probe("file_handle.py", &["open", mount, &handle]);
        assert!(is_refusal(&word), "open_by_handle_at on {mount}: {word}");
    }
    scene.refuses_inside(&[("file_handle.py", &["make", "/usr/lib/os-release"])]);
}

#[test]
pub fn h008_device_nodes_cannot_be_made() {
    let scene = Scene::new();
    if need_root() {
        assert_eq!(
            scene.control("make_device.py", &[&scene.text("scratch"), "char", "1", "5"]),
            "allowed"
        );
    }
    for place in ["/workspace/out", "/dev", "/dev/shm", "/tmp"] {
        scene.refuses_inside(&[
            ("make_device.py", &[place, "char", "1", "5"]),
            ("make_device.py", &[place, "char", "1", "1"]),
            ("make_device.py", &[place, "block", "8", "0"]),
        ]);
    }
}

#[test]
fn h009_a_read_only_file_cannot_be_linked_into_reach() {
    let scene = Scene::new();
    let (from, to) = (scene.host_file("linked.txt", "x"), scene.text("scratch/link"));
    assert_eq!(scene.control("hard_link.py", &[from.to_str().unwrap(), &to]), "allowed");
    scene.refuses_inside(&[
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
    let scene = Scene::new();
    let swaps = [
        "mv /workspace/out /workspace/work/away; ln -s /etc /workspace/out; cat /workspace/out/hosts",
        "rm -rf /workspace/work; ln -s /etc /workspace/work; cat /workspace/work/hosts",
        "cd /workspace; mv out gone; mkdir x; ln -s /etc x/y; ln -s x/y out; cat out/hosts",
    ];
    for swap in swaps {
        let request = json!({"command": swap, "output_files": ["out/**", "work/**"], "timeout": 20});
        let answer = scene.ask(request).go().reported();
        // The script itself can follow the link: a collector that did would find these files.
        assert!(answer.stdout().contains("localhost"), "{}", answer.told());
        assert!(
            !answer.outputs().iter().any(|name| name.ends_with("hosts")),
            "{}",
            answer.told()
        );
    }
}

#[test]
fn h011_a_full_workspace_hurts_that_run_only() {
    let scene = Scene::new();
    scene.profile("small", &[("workspace", "8 MiB")]);
    let fill = "for place in /workspace/work /workspace/tmp /tmp /; do cat /dev/zero > $place/fill; done 2>&1; \
                echo still here";
    let answer = scene
        .ask(json!({"command": fill, "profile": "small", "timeout": 20}))
        .go()
        .reported();
    assert!(answer.stdout().contains("No space left"), "{}", answer.told());
    let next = scene
        .ask(json!({"command": "head -c 4M /dev/zero > work/x && echo fine", "profile": "small"}))
        .go();
    assert_eq!(next.reported()["stdout"], "fine\n");
}

#[test]
fn h012_proc_roots_lead_nowhere() {
    let scene = Scene::new();
    let canary = scene.text("host/canary.txt");
    assert_eq!(
        scene.control("read_file.py", &[&format!("/proc/self/root{canary}")]),
        "allowed"
    );
    let look = format!(
        "for root in /proc/*/root /proc/*/cwd /proc/*/task/*/root; do cat $root{canary}; ls $root/; done 2>/dev/null; true"
    );
    let answer = scene.sh(&look);
    assert!(!answer.mentions(scene.canary()), "{}", answer.told());
    for entry in ["boot", "home", "root", "srv", "mnt", "media", "opt"] {
        assert!(
            !answer.stdout().lines().any(|line| line == entry),
            "{entry} of the host is seen: {}",
            answer.told()
        );
    }
}

#[test]
fn h013_the_mount_table_names_no_place_of_the_host() {
    let scene = Scene::new();
    let top = scene.top().to_str().unwrap().to_owned();
    if need_root() {
        let bound = format!("mount --bind {top}/host {top}/scratch && cat /proc/self/mountinfo");
        assert!(
            scene
                .control_sh(&format!("unshare --mount bash -c '{bound}'"))
                .contains(&top)
        );
    }
    let input = scene.host_file("in.txt", "x");
    let request = json!({
        "command": "cat /proc/self/mountinfo /proc/mounts /proc/1/mountinfo /proc/self/mountstats",
        "inputs": [{"from": format!("host://{}", input.display()), "mode": "link"}],
    });
    for session in [None, Some("mount-table")] {
        let ask = scene.ask(request.clone()).host_allowed();
        let answer = ask.in_session(session).go().reported();
        assert!(answer.stdout().contains("/workspace"), "{}", answer.told());
        let leaks: Vec<&str> = answer
            .stdout()
            .lines()
            // The sources of the workspace's own mounts are told; SECURITY.md says so.
            .filter(|line| line.contains("skillbox-it-") && !line.contains(" /workspace"))
            .collect();
        assert!(leaks.is_empty(), "the mount table tells: {leaks:#?}");
    }
}

#[test]
fn h014_no_way_of_executing_gains_privileges() {
    let scene = Scene::new();
    let ways = [
        "cp /usr/bin/grep work/g && chmod 4755 work/g && work/g",
        "cp /usr/bin/grep work/g && $(ls /lib64/ld-linux* /lib/ld-linux* 2>/dev/null | head -n 1) work/g",
        "cp /usr/bin/grep out/g && out/g",
        "python3 -c 'import os,sys; m=os.memfd_create(\"g\"); os.write(m, open(\"/usr/bin/grep\",\"rb\").read()); \
         os.execve(m, [\"g\"]+sys.argv[1:], os.environ)'",
    ];
    for way in ways {
        let answer = scene.sh(&format!("{way} -E '^(Uid|Cap|NoNewPrivs)' /proc/self/status"));
        assert_eq!(answer["exit_code"], 0, "{way}: {}", answer.told());
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
            answer.told()
        );
    }
    assert!(scene.control_sh("grep ^NoNewPrivs /proc/self/status").ends_with('0'));
}

#[test]
fn h015_what_belongs_to_a_run_cannot_be_spied_on() {
    let scene = Scene::new();
    // Whoever watches a directory sees it being used: outside, and inside one's own run.
    let host = scene.text("host");
    let busy = |seconds: u32| {
        format!("end=$((SECONDS + {seconds})); while [ $SECONDS -lt $end ]; do cat $PLACE/busy; sleep 0.02; done")
    };
    let line = format!(
        "touch {host}/busy; (while :; do cat {host}/busy; sleep 0.02; done) >/dev/null 2>&1 & busy=$!; \
         python3 scripts/watch_directory.py {host} 20 | tail -n 1; kill $busy"
    );
    assert_eq!(scene.control_sh(&line), "seen");
    let places = [
        "/workspace/work",
        "/workspace/out",
        "/tmp",
        "/dev/shm",
        "/workspace/home",
    ];
    for place in places {
        let own = format!(
            "touch {place}/busy; (while :; do cat {place}/busy; sleep 0.02; done) >/dev/null 2>&1 & busy=$!; \
             python3 scripts/watch_directory.py {place} 20 | tail -n 1; kill $busy"
        );
        assert_eq!(scene.sh(&own).stdout(), "seen\n", "{place}");
    }
    // What another run does in the same places at the same time is not seen. Trees that are shared on purpose, such
    // as /usr, are told in SECURITY.md.
    let watch: Vec<String> = places
        .iter()
        .map(|place| format!("python3 scripts/watch_directory.py {place} 0.6 & "))
        .collect();
    let uses: Vec<String> = places
        .iter()
        .map(|place| format!("(touch {place}/busy; PLACE={place}; {}) & ", busy(2)))
        .collect();
    let watched = std::thread::scope(|scope| {
        let other = scope.spawn(|| scene.sh(&format!("{} wait", uses.concat())));
        std::thread::sleep(Duration::from_millis(300));
        let watched = scene.sh(&format!("{} wait", watch.concat()));
        assert_eq!(other.join().unwrap()["exit_code"], 0);
        watched
    });
    let words: Vec<&str> = watched.stdout().lines().filter(|line| *line != "watching").collect();
    assert_eq!(words, ["quiet"; 5], "{}", watched.told());
    assert!(is_refusal(&scene.probe("raw_call.py", &["fanotify_init"])));
}

#[test]
fn h016_a_lease_cannot_make_the_host_wait() {
    let scene = Scene::new();
    let file = scene.host_file("leased.txt", "x");
    assert_eq!(scene.control("lease.py", &["read", file.to_str().unwrap()]), "allowed");
    scene.refuses_inside(&[
        ("lease.py", &["write", "/usr/lib/os-release"]),
        ("lease.py", &["read", "/usr/lib/os-release"]),
        ("lease.py", &["read", "/workspace/skills/probe/SKILL.md"]),
    ]);
    // Also through a link to a file of the host, which is the host's own inode.
    let request = json!({
        "command": "python3 scripts/lease.py read work/inputs/leased.txt",
        "inputs": [{"from": format!("host://{}", file.display()), "mode": "link"}],
    });
    let word = scene.ask(request).host_allowed().go().word();
    assert!(is_refusal(&word), "a lease on a linked input: {word}");
}
