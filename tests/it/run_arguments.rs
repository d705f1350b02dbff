//! What `skillbox run` accepts: skills by name and by path, requests with options, and inputs with odd names.

use std::fs;

use serde_json::{Value, json};

use crate::cli::Cli;

fn report(cli: &Cli, words: &[&str]) -> Value {
    let line = [&["run", "--json"], words].concat();
    cli.run_args(&line).expect_code(0).json()
}

#[test]
fn a_created_skill_runs_from_the_same_directory() {
    let cli = Cli::new();
    cli.run("create my-skill").expect_code(0);
    let command = ["--script", "scripts/count.sh", "--", "SKILL.md"];
    let by_name = report(&cli, &[&["my-skill"][..], &command].concat());
    assert_eq!(
        (&by_name["skill"], &by_name["exit_code"]),
        (&json!("my-skill"), &json!(0))
    );
    for path in ["./my-skill", "my-skill/", "../work/my-skill"] {
        let by_path = report(&cli, &[&[path][..], &command].concat());
        assert_eq!(by_path["stdout"], by_name["stdout"], "{path}");
    }
    let refused = cli.run("run ./missing --json -- true").expect_code(125).json();
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["field"]),
        (&json!("unknown_skill"), &json!("skill"))
    );
    // Configured sources are the only ones; the error names the path.
    cli.write_file("other/x/SKILL.md", "---\nname: x\ndescription: d\n---\n");
    let refused = cli
        .run("run my-skill --skills other --json -- true")
        .expect_code(125)
        .json();
    let hint = refused["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("skillbox run ./my-skill"), "{hint}");
}

#[test]
fn a_path_wins_over_a_name_and_a_name_over_the_directory() {
    let cli = Cli::new();
    cli.write_file(
        "python-math/SKILL.md",
        "---\nname: python-math\ndescription: mine\n---\n",
    );
    let is_mine = |skill: &str| {
        let report = report(&cli, &[skill, "--", "ls scripts || echo none"]);
        report["stdout"].as_str().unwrap().contains("none")
    };
    assert!(!is_mine("python-math"), "the built-in skill has the name");
    assert!(is_mine("./python-math"));
}

#[test]
fn without_a_command_the_scripts_are_shown() {
    let cli = Cli::new();
    let shown = cli.run("run python-math").expect_code(125);
    for text in ["scripts/fib.py", "--script scripts/", "no command is given"] {
        assert!(shown.stderr.contains(text), "{text} in {}", shown.stderr);
    }
    assert_eq!(shown.stdout, "");
    let refused = cli.run("run python-math --json").expect_code(125).json();
    assert_eq!(refused["error"]["field"], "command");
    assert!(refused["error"]["hint"].as_str().unwrap().contains("scripts/fib.py"));
    let unknown = cli.run("run python-mat --json").expect_code(125).json();
    assert_eq!(unknown["error"]["code"], "unknown_skill");
}

#[test]
fn a_skill_of_the_project_that_replaces_another_is_reported() {
    let cli = Cli::new();
    cli.add_skill("skills/python-math", "replaces the built-in one");
    let line = "run python-math -- true";
    let warning = "`python-math` is the skill of this project";
    assert!(cli.run(line).expect_code(0).stderr.contains(warning));
    let warnings = report(&cli, &["python-math", "--", "true"])["warnings"].to_string();
    assert!(warnings.contains(warning), "{warnings}");
    // Control: nothing is reported about a skill that replaces none.
    assert!(
        !cli.run("run csv-report -- true")
            .expect_code(0)
            .stderr
            .contains("this project")
    );
}

#[test]
fn options_change_single_fields_of_a_request() {
    let cli = Cli::new();
    let request = json!({
        "skill": "python-math", "command": "echo from the file", "env": {"A": "file", "B": "file"}, "timeout": 50,
        "inputs": [{"from": "data:text/plain,one", "to": "one.txt"}], "output_files": ["out/a"], "profile": "strict",
    });
    cli.write_file("request.json", request.to_string());
    cli.write_file("two.txt", "two");
    let base = ["--request", "request.json"];
    assert_eq!(report(&cli, &base)["stdout"], "from the file\n");
    let changed = report(
        &cli,
        &[
            &base[..],
            &[
                "--env",
                "A=option",
                "--input",
                "two.txt",
                "--output",
                "out/b",
                "--profile",
                "default",
            ],
            &["--", "echo $A $B; cat inputs/one.txt inputs/two.txt; touch out/a out/b"],
        ]
        .concat(),
    );
    assert_eq!(changed["stdout"], "option file\nonetwo", "{changed}");
    assert_eq!(changed["profile"], "default");
    let names: Vec<&str> = changed["output_files"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|file| file["name"].as_str())
        .collect();
    assert_eq!(names, ["out/a", "out/b"]);
    let script = report(&cli, &[&base[..], &["--script", "scripts/fib.py", "--", "5"]].concat());
    assert_eq!(script["exit_code"], 0, "the script replaces the command: {script}");
    let timed_out = cli.run_args(&[&["run", "--json"], &base[..], &["--timeout", "0.2", "--", "sleep 60"]].concat());
    assert_eq!(timed_out.code, Some(124));
}

#[test]
fn names_of_inputs_may_contain_the_separators() {
    let cli = Cli::new();
    for name in ["a=b.txt", "c,link", r"d\e.txt"] {
        cli.write_file(name, name);
    }
    let read = |input: &str, name: &str| {
        let command = format!("cat 'inputs/{name}'");
        report(&cli, &["python-math", "--input", input, "--", &command])["stdout"].clone()
    };
    assert_eq!(read(r"a\=b.txt", "a=b.txt"), "a=b.txt");
    assert_eq!(read(r"a\=b.txt=plain", "plain"), "a=b.txt");
    assert_eq!(read(r"c\,link", "c,link"), "c,link");
    assert_eq!(read(r"d\e.txt", r"d\e.txt"), r"d\e.txt");
    assert_eq!(read(r#"{"from": "a=b.txt", "to": "x=y,link"}"#, "x=y,link"), "a=b.txt");
    let refused = cli
        .run_args(&[
            "run",
            "python-math",
            "--json",
            "--input",
            r#"{"form": "x"}"#,
            "--",
            "true",
        ])
        .expect_code(125)
        .json();
    assert_eq!(refused["error"]["field"], "inputs[0]", "{refused}");
}

#[test]
fn a_prefix_of_saved_names_is_a_directory() {
    let cli = Cli::new();
    for (prefix, expected) in [("reports", "reports/out/x"), ("deep/er/", "deep/er/out/x")] {
        let line = [
            "python-math",
            "--output",
            "out/x",
            "--save",
            prefix,
            "--",
            "touch out/x",
        ];
        assert_eq!(report(&cli, &line)["artifact_files"][0]["name"], expected);
    }
    let listed = cli.run("artifacts list").expect_code(0).stdout;
    assert!(
        listed.contains("reports/out/x@0") && listed.contains("run 0"),
        "{listed}"
    );
}

#[test]
fn search_ignores_words_that_say_nothing() {
    let cli = Cli::new();
    cli.add_skill("skills/chart-maker", "Draws charts.");
    cli.add_skill("skills/poem", "A poem of the sea and of the wind, for you and me.");
    let found = cli
        .run("search --skills skills draw a chart of the data for me --json")
        .json();
    let names: Vec<&Value> = found["hits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| &hit["name"])
        .collect();
    assert_eq!(names, ["chart-maker"], "{found}");
    // Nothing but such words still finds them.
    let found = cli.run("search --skills skills of the --json").json();
    assert_eq!(found["hits"][0]["name"], "poem", "{found}");
}

#[test]
fn a_request_and_a_name_must_agree() {
    let cli = Cli::new();
    fs::write(
        cli.work_dir().join("r.json"),
        r#"{"skill": "python-math", "command": "true"}"#,
    )
    .unwrap();
    let refused = cli
        .run("run csv-report --request r.json --json")
        .expect_code(125)
        .json();
    assert_eq!(refused["error"]["field"], "skill");
}
