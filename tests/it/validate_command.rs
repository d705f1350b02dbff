//! `skillbox validate` beyond the reference tool: several paths, JSON, lenient findings.

use crate::cli::Cli;

fn cli_with_skills() -> Cli {
    let cli = Cli::new();
    cli.add_skill("good", "A fine skill.")
        .add_skill("fine", "Another.")
        .write_file(
            "bad/SKILL.md",
            "---\nname: Bad_Name\ndescription: Use when: unquoted\nextra: 1\n---\n",
        )
        .write_file(
            "odd/SKILL.md",
            "---\nname: odd\ndescription: Odd but usable.\nextra: [1, 2]\n---\n",
        )
        .write_file(
            "broken/SKILL.md",
            "---\nname: broken\ndescription: [never closed\n---\n",
        );
    std::fs::create_dir(cli.work_dir().join("empty")).unwrap();
    cli
}

#[test]
fn several_paths_are_validated_in_order() {
    let cli = cli_with_skills();
    insta::assert_snapshot!(cli.run("validate good odd fine empty").transcript(), @r#"
    exit code 1
    --- stdout
    Valid skill: good
    Valid skill: fine
    --- stderr
    Validation failed for odd:
      - Invalid YAML in frontmatter: flow style is not allowed
      in "SKILL.md", line 4, column 8
    Validation failed for empty:
      - Missing required file: SKILL.md
    "#);
    cli.run("validate good fine/SKILL.md").expect_code(0);
}

#[test]
fn a_missing_path_is_a_usage_error() {
    let cli = cli_with_skills();
    for line in [
        "validate good nowhere",
        "validate --lenient good nowhere",
        "to-prompt good nowhere",
        "read-properties nowhere",
    ] {
        let output = cli.run(line).expect_code(2);
        assert_eq!(output.stdout, "", "{line}");
        assert!(
            output.stderr.contains("'nowhere' does not exist"),
            "{line}: {}",
            output.stderr
        );
    }
    let error = cli.run("validate nowhere --json").expect_code(2).json();
    assert_eq!(error["error"]["code"], "invalid_request");
}

#[test]
fn json_has_the_same_verdicts() {
    let cli = cli_with_skills();
    let verdicts = cli.run("validate good odd --json").expect_code(1).json();
    assert_eq!(verdicts["valid"], false);
    assert_eq!(
        verdicts["results"][0],
        serde_json::json!({"path": "good", "valid": true, "errors": []})
    );
    assert_eq!(verdicts["results"][1]["valid"], false);
    assert_eq!(verdicts["results"][1]["errors"].as_array().unwrap().len(), 1);
    assert_eq!(cli.run("validate good --json").expect_code(0).json()["valid"], true);

    let prompt = cli.run("to-prompt good --json").expect_code(0).json();
    assert!(
        prompt["prompt"]
            .as_str()
            .unwrap()
            .starts_with("<available_skills>\n<skill>\n<name>\ngood\n")
    );
    let error = cli.run("read-properties broken --json").expect_code(1).json();
    assert_eq!(error["error"]["code"], "skill_unreadable");
    assert!(
        error["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with("Invalid YAML in frontmatter")
    );
}

#[test]
fn lenient_findings_have_a_position_an_excerpt_and_a_hint() {
    let cli = cli_with_skills();
    insta::assert_snapshot!(cli.run("validate --lenient bad broken").transcript(), @r#"
    exit code 1
    --- stdout
    warning[name_breaks_rules]: the name "Bad_Name" breaks the rules: it is not
                                lower-case; it contains '_', which is not a letter,
                                a digit or a hyphen
     --> ./bad/SKILL.md:2:7
      |
    2 | name: Bad_Name
      |       ^^^^^^^^
      |
      = help: a name is at most 64 lower-case letters, digits and single hyphens

    warning[name_mismatch]: the name "Bad_Name" differs from the directory name
                            "bad"
     --> ./bad/SKILL.md:2:7
      |
    2 | name: Bad_Name
      |       ^^^^^^^^
      |
      = help: rename one of them; the skill uses the name in the file

    warning[unquoted_value]: the value of `description` needs quotes; it was read
                             as if it had them
     --> ./bad/SKILL.md:3:14
      |
    3 | description: Use when: unquoted
      |              ^^^^^^^^^^^^^^^^^^
      |
      = help: write description: 'Use when: unquoted'

    error[invalid_yaml]: the frontmatter is not valid YAML: unclosed bracket '['
     --> ./broken/SKILL.md:3:14
      |
    3 | description: [never closed
      |              ^^^^^^^^^^^^^
      |
      = help: close the bracket, or put the value in quotes if it is text

    ok bad: 1 skill loaded, 3 warnings
    FAILED broken: 0 skills loaded, 1 error
    --- stderr
    "#);
    insta::assert_snapshot!(cli.run("validate --lenient good").transcript(), @"
    exit code 0
    --- stdout
    ok good: 1 skill loaded
    --- stderr
    ");
    insta::assert_snapshot!(cli.run("validate --lenient empty").transcript(), @"
    exit code 1
    --- stdout
    error[no_skill]: contains no SKILL.md, at any depth
    --> empty
     = help: pass the directory of a skill, or a directory of skills

    FAILED empty: 0 skills loaded, 1 error
    --- stderr
    ");
}

#[test]
fn lenient_accepts_a_directory_of_skills_and_fails_only_for_errors() {
    let cli = cli_with_skills();
    let all = cli.run("validate --lenient . --json").expect_code(1).json();
    assert_eq!(
        all["results"][0]["skills"],
        serde_json::json!(["Bad_Name", "fine", "good", "odd"])
    );
    // A skill with warnings only is loaded, and the warnings are listed.
    let result = cli.run("validate --lenient bad --json").expect_code(0).json();
    let codes: Vec<_> = result["results"][0]["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["code"].as_str().unwrap())
        .collect();
    assert_eq!(codes, ["name_breaks_rules", "name_mismatch", "unquoted_value"]);
    assert_eq!(result["results"][0]["diagnostics"][2]["line"], 3);
}

#[test]
fn lenient_reads_the_whole_file() {
    let cli = Cli::new();
    cli.write_file(
        "long/SKILL.md",
        format!("---\nname: long\ndescription: Long.\n---\n{}", "line\n".repeat(600)),
    );
    let result = cli.run("validate --lenient long --json").expect_code(0).json();
    assert_eq!(result["results"][0]["diagnostics"][0]["code"], "long_body");
    assert_eq!(result["results"][0]["diagnostics"][0]["severity"], "info");
}
