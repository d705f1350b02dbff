//! 3.5: the environment and the open files that a script inherits.

use serde_json::json;

use crate::lab::{CanaryProcess, Scene, is_refusal};

#[test]
pub fn h056_no_variable_of_the_host_is_visible() {
    let scene = Scene::new();
    let look = "env; cat /proc/*/environ /proc/*/task/*/environ 2>/dev/null | tr '\\0' '\\n'; \
                p=$$; while [ -n \"$p\" ] && [ $p -gt 0 ]; do tr '\\0' '\\n' < /proc/$p/environ 2>/dev/null; \
                p=$(sed -n 's/^PPid:\\t//p' /proc/$p/status 2>/dev/null); done; true";
    assert!(
        scene.control_sh(look).contains(scene.canary()),
        "the control sees the secret"
    );
    let ask = scene
        .ask(json!({"command": look}))
        .env("AWS_SECRET_ACCESS_KEY", scene.canary())
        .env("OPENAI_API_KEY", scene.canary());
    let answer = ask.go().reported();
    assert!(!answer.mentions(scene.canary()), "{}", answer.told());
    for name in ["SECRET_CANARY", "AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY"] {
        assert!(!answer.stdout().contains(name), "{name}: {}", answer.told());
    }
    let names = scene
        .ask(json!({"argv": ["env"], "env": {"GIVEN": "1"}}))
        .go()
        .reported();
    let mut names: Vec<&str> = names
        .stdout()
        .lines()
        .filter_map(|line| line.split('=').next())
        .collect();
    names.sort_unstable();
    let ours = [
        "GIVEN",
        "HOME",
        "LANG",
        "OUTPUT_DIR",
        "PATH",
        "RUN_DIR",
        "SKILLS_DIR",
        "SKILL_DIR",
        "SKILL_NAME",
        "TMPDIR",
        "WORKSPACE_DIR",
        "WORK_DIR",
    ];
    assert_eq!(names, ours);
}

#[test]
fn h057_exactly_three_descriptors_are_open() {
    let scene = Scene::new();
    let leak = format!(
        "exec 9<{} 77<{} && exec \"$@\"",
        scene.text("host/canary.txt"),
        scene.text("state")
    );
    let launcher = ["bash", "-c", &leak, "bash"].map(str::to_owned);
    let plain = scene.control_behind(&["bash", "-c", &leak, "bash"], "descriptors.py", &[]);
    assert!(
        plain.contains("9:file") && plain.contains("77:directory"),
        "the control inherits: {plain}"
    );
    for request in [
        json!({"argv": ["python3", "scripts/descriptors.py"]}),
        json!({"argv": ["python3", "scripts/descriptors.py"], "stdin": "some text"}),
    ] {
        let word = scene.ask(request).behind(&launcher).go().word();
        let kinds: Vec<&str> = word.split(',').collect();
        assert_eq!(kinds.len(), 3, "{word}");
        assert!(matches!(kinds[0], "0:fifo" | "0:char"), "{word}");
        assert_eq!(kinds[1..], ["1:fifo", "2:fifo"], "{word}");
    }
    let listed = scene.sh("ls /proc/self/fd | wc -l");
    assert_eq!(
        listed.stdout().trim(),
        "4",
        "0, 1, 2 and the directory that is being read"
    );
}

#[test]
fn h058_descriptors_of_others_cannot_be_opened() {
    let scene = Scene::new();
    let canary = CanaryProcess::start(&scene);
    assert_eq!(
        scene.control("read_file.py", &[&format!("/proc/{}/fd", canary.pid())]),
        "allowed"
    );
    let word = scene.probe("read_file.py", &["/proc/1/fd"]);
    assert!(is_refusal(&word), "/proc/1/fd: {word}");
    let answer = scene.sh("for f in /proc/1/fd/*; do cat $f && echo opened $f; done 2>/dev/null; for n in 0 1 2 3 4 5 6 7 8 9; do (exec 5<>/proc/1/fd/$n) 2>/dev/null && echo opened $n; done; true");
    assert!(!answer.stdout().contains("opened"), "{}", answer.told());
}

#[test]
fn h059_no_file_of_the_host_is_behind_standard_input() {
    let scene = Scene::new();
    let ask = |way: &str, stdin: Option<&str>| {
        let mut request = json!({"argv": ["python3", "scripts/stdin_tricks.py", way]});
        if let Some(text) = stdin {
            request["stdin"] = json!(text);
        }
        scene.ask(request).go().word()
    };
    assert_eq!(ask("read", None), "0");
    assert_eq!(ask("read", Some("twelve bytes")), "12");
    assert_eq!(ask("past_end", Some("text")), "empty");
    assert_eq!(ask("past_end", None), "empty");
    for stdin in [None, Some("text")] {
        assert_ne!(ask("reopen", stdin), "file", "{stdin:?}");
        let word = ask("seek", stdin);
        assert!(
            word == "allowed" && stdin.is_none() || word == "ESPIPE",
            "seek, {stdin:?}: {word}"
        );
    }
    // The bytes on skillbox's own standard input are the request; the script gets none of them.
    assert!(matches!(ask("write", None).as_str(), "EBADF" | "allowed"));
}

#[test]
fn h060_tricks_with_the_output_pipe_do_not_hurt_the_reader() {
    let scene = Scene::new();
    let answer = scene
        .ask(json!({"argv": ["python3", "scripts/stdout_tricks.py"], "timeout": 20}))
        .go()
        .reported();
    assert_eq!(
        (&answer["exit_code"], &answer["stdout_bytes"]),
        (&json!(0), &json!(1 << 20)),
        "{}",
        answer.told()
    );
    assert_eq!(answer["stdout_truncated"], true);
}

#[test]
fn h061_no_socket_is_inherited() {
    let scene = Scene::new();
    assert!(!scene.probe("descriptors.py", &[]).contains("socket"));
    let found = scene.sh("ls -l /proc/[0-9]*/fd 2>/dev/null | grep -c socket:; cat /proc/net/unix | wc -l");
    let lines: Vec<&str> = found.stdout().lines().collect();
    assert_eq!(lines[0].trim(), "0", "{}", found.told());
    assert!(
        matches!(lines.get(1).map(|line| line.trim()), None | Some("0" | "1")),
        "only the heading: {}",
        found.told()
    );
    assert!(scene.control_sh("cat /proc/net/unix | wc -l").parse::<u32>().unwrap() >= 1);
}

#[test]
fn h062_no_visible_process_carries_our_secrets_in_its_words() {
    let scene = Scene::new();
    let top = scene.top().to_str().unwrap().to_owned();
    // From the host, skillbox's own words name the world's directories while it runs.
    let request = json!({"command": "sleep 0.4; for f in /proc/[0-9]*/cmdline /proc/[0-9]*/comm; do tr '\\0' ' ' < $f; echo; done"});
    let answer = std::thread::scope(|scope| {
        let run = scope.spawn(|| scene.ask(request).go().reported());
        let seen = scene.wait_for(
            "skillbox among the host's processes",
            std::time::Duration::from_secs(5),
            || (!scene.host_pids_with(&format!("{top}/state")).is_empty()).then_some(true),
        );
        assert!(seen);
        run.join().unwrap()
    });
    for secret in [scene.canary(), &top, "--state-dir", "--request"] {
        assert!(!answer.stdout().contains(secret), "{secret}: {}", answer.told());
    }
    assert!(
        answer.stdout().contains("sleep") || answer.stdout().contains("bash"),
        "{}",
        answer.told()
    );
}
