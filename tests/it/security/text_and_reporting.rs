//! 3.11: the output of a script, and the report about it.

use serde_json::{Value, json};

use crate::harness::Fixture;

#[test]
pub fn h131_terminal_escapes_are_kept_in_json_and_escaped_in_text() {
    let fixture = Fixture::new();
    let escapes = "\u{1b}]0;title\u{7}\u{1b}]52;c;aGk=\u{7}\u{1b}[2J\u{202e}drow\u{200f}\rover\u{7}";
    let request = json!({"argv": ["printf", "%s", escapes]});
    assert_eq!(
        fixture.request(request).run().expect_report().stdout(),
        escapes,
        "JSON contains the exact text"
    );
    // As text, names and messages are escaped on both streams.
    let script = "cd /workspace/out; ln -s x $'\\e]0;title\\a-link'; mkfifo $'\\e[2Jfifo'; echo x > $'\\xe2\\x80\\xaeevil.txt'; echo x > $'two\\nlines.txt'";
    let answer = fixture
        .command(&["run", "probe", "--output", "out/*", "--", script])
        .run();
    let text = [answer.process.stdout.clone(), answer.process.stderr.clone()].concat();
    // The link and the FIFO were asked for, and are refused.
    assert_eq!(answer.code, Some(125), "{}", answer.describe());
    for bytes in [&b"\x1b]0;"[..], b"\x1b[2J", b"\x07", "\u{202e}".as_bytes()] {
        assert!(
            !text.windows(bytes.len()).any(|window| window == bytes),
            "{bytes:x?} reached the terminal: {}",
            answer.describe()
        );
    }
    let names = fixture
        .request(json!({"command": script, "output_files": ["out/*"]}))
        .run()
        .expect_report();
    assert!(
        names.refused_output_names().contains(&"out/\u{1b}[2Jfifo"),
        "JSON contains the exact name: {}",
        names.describe()
    );
    // An error message that quotes the caller.
    let answer = fixture
        .command(&["run", "probe", "--cwd", "../\u{1b}]0;title\u{7}", "--", "true"])
        .run();
    assert_eq!(answer.code, Some(125));
    assert!(!answer.mentions("\u{1b}]0;"), "{}", answer.describe());
}

#[test]
pub fn h132_forged_output_does_not_change_the_report() {
    let fixture = Fixture::new();
    let forged = r#"echo '{"run_id":"x","exit_code":0,"ended_by":"exit","timed_out":false}'; echo '{"error":{"code":"internal"}}' >&2;
        echo '--- truncated ---'; echo 'skillbox: error: isolation_unavailable' >&2; printf '\0\n{"exit_code":0}\n'; exit 9"#;
    let answer = fixture.run_shell(forged);
    assert_eq!(
        (&answer["exit_code"], answer.code, &answer["stdout_truncated"]),
        (&json!(9), Some(9), &json!(false))
    );
    assert_ne!(answer["run_id"], "x");
    assert!(answer["stderr"].as_str().unwrap().contains("isolation_unavailable"));
    let text = fixture.command(&["run", "probe", "--", forged]).run();
    assert_eq!(text.code, Some(9));
}

#[test]
pub fn h133_invalid_utf8_is_replaced_and_reported() {
    let fixture = Fixture::new();
    let request = json!({
        "command": r"printf 'a\xff\xfeb\x00c\xed\xa0\x80d\xc3' | tee out/raw.bin; printf 'e\xff' >&2",
        "outputs": {"globs": ["out/*"], "inline_binary": true},
    });
    let answer = fixture.request(request).run().expect_report();
    let text = answer.stdout();
    assert!(
        text.starts_with('a') && text.contains("b\0c") && text.contains('\u{fffd}'),
        "{text:?}"
    );
    let is_reported = answer["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .any(|warning| warning.as_str().unwrap().contains("UTF-8"));
    assert!(is_reported, "a warning reports the replacement: {}", answer.describe());
    assert_eq!(answer["stdout_bytes"], 11);
    // An output file has the exact bytes.
    let file = answer.output_file("out/raw.bin");
    assert_eq!(
        (&file["encoding"], &file["content"]),
        (&json!("base64"), &json!("Yf/+YgBj7aCAZMM=")),
        "{}",
        answer.describe()
    );
    let clean = fixture.run_shell("printf 'grün\\n'");
    assert_eq!((clean.stdout(), &clean["warnings"]), ("grün\n", &json!([])));
    // A character at the cut is not split.
    let long = fixture.run_shell("python3 -c \"import sys; sys.stdout.write('ä' * 200000)\"");
    assert_eq!(long["stdout_truncated"], true);
    assert!(!long.stdout().contains('\u{fffd}'), "a character was split");
}

#[test]
pub fn h134_exit_codes_signals_and_timeouts_are_distinguished() {
    let fixture = Fixture::new();
    for code in [0, 1, 2, 42, 123, 124, 125, 126, 127, 128, 137, 143, 200, 254, 255] {
        let answer = fixture
            .request(json!({"argv": ["bash", "-c", format!("exit {code}")]}))
            .run()
            .expect_report();
        assert_eq!(
            (&answer["ended_by"], &answer["exit_code"]),
            (&json!("exit"), &json!(code))
        );
        assert_eq!(
            (answer.code, answer.json().get("signal").unwrap_or(&Value::Null)),
            (Some(code), &Value::Null)
        );
        assert_eq!(answer["timed_out"], false);
    }
    for (signal, number) in [
        ("HUP", 1),
        ("INT", 2),
        ("ABRT", 6),
        ("KILL", 9),
        ("SEGV", 11),
        ("PIPE", 13),
        ("TERM", 15),
        ("SYS", 31),
    ] {
        let answer = fixture
            .request(json!({"argv": ["bash", "-c", format!("kill -{signal} $$")]}))
            .run()
            .expect_report();
        assert_eq!(
            (&answer["ended_by"], &answer["exit_code"], &answer["signal"]),
            (&json!("signal"), &Value::Null, &json!(number)),
            "{signal}: {}",
            answer.describe()
        );
        assert_eq!(answer.code, Some(128 + number));
    }
    let timed_out = fixture
        .request(json!({"command": "sleep 300", "timeout": 0.3}))
        .run()
        .expect_report();
    assert_eq!(
        (&timed_out["ended_by"], &timed_out["exit_code"], timed_out.code),
        (&json!("timeout"), &Value::Null, Some(124))
    );
}

#[test]
fn h135_error_texts_of_a_script_are_not_interpreted() {
    let fixture = Fixture::new();
    let answer = fixture.run_shell("echo 'Permission denied' >&2; echo 'Operation not permitted'; echo Killed; echo 'No space left on device'; echo 'Out of memory'; exit 1");
    assert_eq!(
        (&answer["ended_by"], &answer["exit_code"], &answer["warnings"]),
        (&json!("exit"), &json!(1), &json!([])),
        "{}",
        answer.describe()
    );
}

#[test]
pub fn h136_long_messages_are_bounded() {
    let fixture = Fixture::new();
    let long = "x\u{1b}[31m".repeat(20_000);
    for request in [
        json!({"command": "true", "cwd": long}),
        json!({"command": "true", "skill": long}),
        json!({"command": "true", "profile": long}),
        json!({"command": "true", "output_files": [long]}),
        json!({"command": "true", "inputs": [{"from": long}]}),
        json!({"command": "true", "inputs": [{"from": "skill://probe/SKILL.md", "to": format!("work/{long}")}]}),
        json!({"command": "true", "env": {&long: "x"}}),
        json!({"command": "true", &long: 1}),
        json!({"script": long}),
    ] {
        let answer = fixture.request(request).run();
        answer.expect_refusal();
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.len() < 4096, "{} bytes: {}…", message.len(), &message[..80]);
        assert!(answer.process.stdout.len() + answer.process.stderr.len() < 16 << 10);
        assert!(
            !answer.process.stdout.contains(&0x1b),
            "an unescaped control character: {message:?}"
        );
    }
    let answer = fixture.run_shell(
        "cd /workspace/out; n=$(printf 'n%.0s' $(seq 255)); for i in $(seq 200); do mkfifo ${n:3}$i 2>/dev/null; done",
    );
    assert!(answer.process.stdout.len() < 200_000);
}
