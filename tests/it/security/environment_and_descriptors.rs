//! 3.5: the environment and the open files that a script inherits.

use serde_json::json;

use crate::harness::{CanaryProcess, Fixture, is_refusal};

#[test]
pub fn h056_no_variable_of_the_host_is_visible() {
    let fixture = Fixture::new();
    let print_variables = "env; cat /proc/*/environ /proc/*/task/*/environ 2>/dev/null | tr '\\0' '\\n'; \
                p=$$; while [ -n \"$p\" ] && [ $p -gt 0 ]; do tr '\\0' '\\n' < /proc/$p/environ 2>/dev/null; \
                p=$(sed -n 's/^PPid:\\t//p' /proc/$p/status 2>/dev/null); done; true";
    assert!(
        fixture.control_shell(print_variables).contains(fixture.canary()),
        "the control prints the secret"
    );
    let invocation = fixture
        .request(json!({"command": print_variables}))
        .env("AWS_SECRET_ACCESS_KEY", fixture.canary())
        .env("OPENAI_API_KEY", fixture.canary());
    let answer = invocation.run().expect_report();
    assert!(!answer.mentions(fixture.canary()), "{}", answer.describe());
    for name in ["SECRET_CANARY", "AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY"] {
        assert!(!answer.stdout().contains(name), "{name}: {}", answer.describe());
    }
    let names = fixture
        .request(json!({"argv": ["env"], "env": {"GIVEN": "1"}}))
        .run()
        .expect_report();
    let mut names: Vec<&str> = names
        .stdout()
        .lines()
        .filter_map(|line| line.split('=').next())
        .collect();
    names.sort_unstable();
    let expected = [
        "CLAUDE_SKILL_DIR",
        "GIVEN",
        "HOME",
        "LANG",
        "LOGNAME",
        "OUTPUT_DIR",
        "PATH",
        "RUN_DIR",
        "SKILLS_DIR",
        "SKILL_DIR",
        "SKILL_NAME",
        "TERM",
        "TMPDIR",
        "USER",
        "WORKSPACE_DIR",
        "WORK_DIR",
    ];
    assert_eq!(names, expected);
}

#[test]
fn h057_exactly_three_descriptors_are_open() {
    let fixture = Fixture::new();
    let open_files = format!(
        "exec 9<{} 77<{} && exec \"$@\"",
        fixture.path_str("host/canary.txt"),
        fixture.path_str("state")
    );
    let launcher = ["bash", "-c", &open_files, "bash"].map(str::to_owned);
    let plain = fixture.control_probe_with(&["bash", "-c", &open_files, "bash"], "descriptors.py", &[]);
    assert!(
        plain.contains("9:file") && plain.contains("77:directory"),
        "the control inherits the descriptors: {plain}"
    );
    for request in [
        json!({"argv": ["python3", "scripts/descriptors.py"]}),
        json!({"argv": ["python3", "scripts/descriptors.py"], "stdin": "some text"}),
    ] {
        let word = fixture.request(request).with_launcher(&launcher).run().expect_word();
        let kinds: Vec<&str> = word.split(',').collect();
        assert_eq!(kinds.len(), 3, "{word}");
        assert!(matches!(kinds[0], "0:fifo" | "0:char"), "{word}");
        assert_eq!(kinds[1..], ["1:fifo", "2:fifo"], "{word}");
    }
    let listed = fixture.run_shell("ls /proc/self/fd | wc -l");
    assert_eq!(listed.stdout().trim(), "4", "0, 1, 2 and the directory that ls reads");
}

#[test]
fn h058_descriptors_of_other_processes_cannot_be_opened() {
    let fixture = Fixture::new();
    let canary = CanaryProcess::start(&fixture);
    assert_eq!(
        fixture.control_probe("read_file.py", &[&format!("/proc/{}/fd", canary.pid())]),
        "allowed"
    );
    let word = fixture.run_probe("read_file.py", &["/proc/1/fd"]);
    assert!(is_refusal(&word), "/proc/1/fd: {word}");
    let answer = fixture.run_shell("for f in /proc/1/fd/*; do cat $f && echo opened $f; done 2>/dev/null; for n in 0 1 2 3 4 5 6 7 8 9; do (exec 5<>/proc/1/fd/$n) 2>/dev/null && echo opened $n; done; true");
    assert!(!answer.stdout().contains("opened"), "{}", answer.describe());
}

#[test]
fn h059_standard_input_is_not_a_file_of_the_host() {
    let fixture = Fixture::new();
    let run_probe = |way: &str, stdin: Option<&str>| {
        let mut request = json!({"argv": ["python3", "scripts/stdin_tricks.py", way]});
        if let Some(text) = stdin {
            request["stdin"] = json!(text);
        }
        fixture.request(request).run().expect_word()
    };
    assert_eq!(run_probe("read", None), "0");
    assert_eq!(run_probe("read", Some("twelve bytes")), "12");
    assert_eq!(run_probe("past_end", Some("text")), "empty");
    assert_eq!(run_probe("past_end", None), "empty");
    for stdin in [None, Some("text")] {
        assert_ne!(run_probe("reopen", stdin), "file", "{stdin:?}");
        let word = run_probe("seek", stdin);
        assert!(
            word == "allowed" && stdin.is_none() || word == "ESPIPE",
            "seek, {stdin:?}: {word}"
        );
    }
    // The standard input of skillbox is the request; the script gets none of it.
    assert!(matches!(run_probe("write", None).as_str(), "EBADF" | "allowed"));
}

#[test]
fn h060_pipe_settings_of_a_script_do_not_affect_the_reader() {
    let fixture = Fixture::new();
    let answer = fixture
        .request(json!({"argv": ["python3", "scripts/stdout_tricks.py"], "timeout": 20}))
        .run()
        .expect_report();
    assert_eq!(
        (&answer["exit_code"], &answer["stdout_bytes"]),
        (&json!(0), &json!(1 << 20)),
        "{}",
        answer.describe()
    );
    assert_eq!(answer["stdout_truncated"], true);
}

#[test]
fn h061_no_socket_is_inherited() {
    let fixture = Fixture::new();
    assert!(!fixture.run_probe("descriptors.py", &[]).contains("socket"));
    let found = fixture.run_shell("ls -l /proc/[0-9]*/fd 2>/dev/null | grep -c socket:; cat /proc/net/unix | wc -l");
    let lines: Vec<&str> = found.stdout().lines().collect();
    assert_eq!(lines[0].trim(), "0", "{}", found.describe());
    assert!(
        matches!(lines.get(1).map(|line| line.trim()), None | Some("0" | "1")),
        "only the heading: {}",
        found.describe()
    );
    assert!(
        fixture
            .control_shell("cat /proc/net/unix | wc -l")
            .parse::<u32>()
            .unwrap()
            >= 1
    );
}

#[test]
fn h062_no_visible_process_has_secrets_in_its_arguments() {
    let fixture = Fixture::new();
    let top = fixture.root_dir().to_str().unwrap().to_owned();
    // On the host, the arguments of skillbox contain the directories of the fixture while it runs.
    let request = json!({"command": "sleep 2; for f in /proc/[0-9]*/cmdline /proc/[0-9]*/comm; do tr '\\0' ' ' < $f; echo; done"});
    let answer = std::thread::scope(|scope| {
        let run = scope.spawn(|| fixture.request(request).run().expect_report());
        let seen = fixture.wait_for("skillbox among the host's processes", || {
            (!fixture.host_pids_with(&format!("{top}/state")).is_empty()).then_some(true)
        });
        assert!(seen);
        run.join().unwrap()
    });
    for secret in [fixture.canary(), &top, "--state-dir", "--request"] {
        assert!(!answer.stdout().contains(secret), "{secret}: {}", answer.describe());
    }
    assert!(
        answer.stdout().contains("sleep") || answer.stdout().contains("bash"),
        "{}",
        answer.describe()
    );
}
