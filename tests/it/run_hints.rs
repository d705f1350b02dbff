//! Failing scripts, one for each cause, and the hint that each report and the terminal show.

use serde_json::{Value, json};

use crate::harness::Fixture;

/// A command, the profile it runs under, and words of its hint.
const CASES: &[(&str, &str, &[&str])] = &[
    (
        "python3 -c 'import yaml_missing'",
        "default",
        &["`yaml-missing`", "--with yaml-missing"],
    ),
    (
        "node -e 'require(\"xlsx-missing\")'",
        "default",
        &["`xlsx-missing`", "package.json"],
    ),
    (
        "echo x > /usr/report.md",
        "default",
        &["`/usr/report.md`", "read-only", "out/"],
    ),
    (
        "python3 -c 'import urllib.request as u; u.urlopen(\"http://example.com\")'",
        "default",
        &["no network", "--input"],
    ),
    (
        "curl -sS http://example.com",
        "default",
        &["no network", "`example.com`"],
    ),
    (
        "no-such-program",
        "default",
        &["`no-such-program`", "filesystem.visible"],
    ),
    (
        "printf 'echo x' > $WORK_DIR/x.sh; $WORK_DIR/x.sh",
        "default",
        &["execute permission", "--script"],
    ),
    ("cat /root/data.csv", "default", &["/root/data.csv", "--input"]),
    ("exec sleep 60", "brief", &["time limit of 1 s", "--timeout"]),
    (
        "python3 -c 'x = bytearray(300 << 20)'",
        "small",
        &["128 MiB", "`limits.memory`"],
    ),
    (
        "python3 -c 'l = [open(\"/dev/null\") for i in range(99)]'",
        "small",
        &["64 open files", "`limits.open_files`"],
    ),
    (
        "python3 -c 'open(\"/workspace/out/x\", \"wb\").write(bytes(3 << 20))'",
        "small",
        &["2 MiB", "`limits.file`"],
    ),
    (
        "python3 -c 'import subprocess as s; l = [s.Popen([\"sleep\", \"9\"]) for i in range(50)]'",
        "small",
        &["20 processes", "`limits.pids`"],
    ),
];

#[test]
fn each_cause_has_its_hint() {
    let fixture = Fixture::new();
    let limits = [
        ("memory", "128 MiB"),
        ("workspace", "32 MiB"),
        ("open_files", "64"),
        ("file", "2 MiB"),
        ("pids", "20"),
    ];
    fixture.add_profile("small", &limits);
    fixture.add_profile("brief", &[("wall", "1 s")]);
    for (command, profile, words) in CASES {
        let program = command.split(' ').next().unwrap_or_default();
        if ["node", "curl"].contains(&program) && !std::path::Path::new("/usr/bin").join(program).exists() {
            continue;
        }
        let answer = fixture
            .request(json!({"command": command, "profile": profile}))
            .run()
            .expect_report();
        let hint = answer["hint"].as_str().unwrap_or_default();
        for word in *words {
            assert!(
                hint.contains(word),
                "{command}: {word:?} is not in {hint:?}\n{}",
                answer.describe()
            );
        }
        let is_missing_package = command.contains("_missing") || command.contains("-missing");
        let warnings = answer["warnings"].as_array().unwrap();
        assert_eq!(
            warnings.contains(&json!(hint)),
            is_missing_package,
            "{}",
            answer.describe()
        );
    }
    let succeeded = fixture.run_shell("echo 'ModuleNotFoundError: No module named yaml' >&2");
    assert_eq!(succeeded["hint"], Value::Null);
}

#[test]
fn a_program_without_a_shell_has_its_hint() {
    let fixture = Fixture::new();
    let answer = fixture
        .request(json!({"argv": ["no-such-program", "x"]}))
        .run()
        .expect_report();
    assert_eq!(answer["exit_code"], 127);
    assert!(
        answer["hint"]
            .as_str()
            .is_some_and(|hint| hint.contains("`no-such-program`")),
        "{}",
        answer.describe()
    );
}

#[test]
fn people_and_models_read_the_hint() {
    let fixture = Fixture::new();
    let answer = fixture
        .command(&["run", "probe", "--", "python3 -c 'import yaml_missing'"])
        .run();
    let stderr = String::from_utf8_lossy(&answer.process.stderr).into_owned();
    assert_eq!(stderr.matches("--with yaml-missing").count(), 1, "{stderr}");
    assert!(stderr.contains("hint:"), "{stderr}");
    let quiet = fixture
        .command(&["-q", "run", "probe", "--", "python3 -c 'import yaml_missing'"])
        .run();
    assert!(!String::from_utf8_lossy(&quiet.process.stderr).contains("hint:"));

    let call = r#"{"skill": "probe", "command": "python3 -c 'import yaml_missing'"}"#;
    let answer = fixture.command(&["call", "skill_run", call, "--session", "s"]).run();
    assert!(
        answer["hint"]
            .as_str()
            .is_some_and(|hint| hint.contains("yaml-missing")),
        "{}",
        answer.describe()
    );
}
