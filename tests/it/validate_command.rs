//! `skillbox validate` beyond what the reference does: several paths, JSON, our own findings.

use crate::program::World;

fn world() -> World {
    let world = World::new();
    world
        .skill("good", "A fine skill.")
        .skill("fine", "Another.")
        .write(
            "bad/SKILL.md",
            "---\nname: Bad_Name\ndescription: Use when: unquoted\nextra: 1\n---\n",
        )
        .write(
            "odd/SKILL.md",
            "---\nname: odd\ndescription: Odd but usable.\nextra: [1, 2]\n---\n",
        )
        .write(
            "broken/SKILL.md",
            "---\nname: broken\ndescription: [never closed\n---\n",
        );
    std::fs::create_dir(world.work().join("empty")).unwrap();
    world
}

#[test]
fn several_paths_are_checked_one_after_the_other() {
    let world = world();
    insta::assert_snapshot!(world.run("validate good odd fine empty").whole(), @r#"
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
    world.run("validate good fine/SKILL.md").expect_code(0);
}

#[test]
fn a_path_that_is_not_there_stops_everything() {
    let world = world();
    for line in [
        "validate good nowhere",
        "validate --lenient good nowhere",
        "to-prompt good nowhere",
        "read-properties nowhere",
    ] {
        let ran = world.run(line).expect_code(2);
        assert_eq!(ran.stdout, "", "{line}");
        assert!(
            ran.stderr.contains("'nowhere' does not exist"),
            "{line}: {}",
            ran.stderr
        );
    }
    let error = world.run("validate nowhere --json").expect_code(2).json();
    assert_eq!(error["error"]["code"], "invalid_request");
}

#[test]
fn programs_get_the_same_verdicts_as_json() {
    let world = world();
    let verdicts = world.run("validate good odd --json").expect_code(1).json();
    assert_eq!(verdicts["valid"], false);
    assert_eq!(
        verdicts["results"][0],
        serde_json::json!({"path": "good", "valid": true, "errors": []})
    );
    assert_eq!(verdicts["results"][1]["valid"], false);
    assert_eq!(verdicts["results"][1]["errors"].as_array().unwrap().len(), 1);
    assert_eq!(world.run("validate good --json").expect_code(0).json()["valid"], true);

    let prompt = world.run("to-prompt good --json").expect_code(0).json();
    assert!(
        prompt["prompt"]
            .as_str()
            .unwrap()
            .starts_with("<available_skills>\n<skill>\n<name>\ngood\n")
    );
    let error = world.run("read-properties broken --json").expect_code(1).json();
    assert_eq!(error["error"]["code"], "skill_unreadable");
    assert!(
        error["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with("Invalid YAML in frontmatter")
    );
}

#[test]
fn lenient_findings_come_with_place_excerpt_and_hint() {
    let world = world();
    insta::assert_snapshot!(world.run("validate --lenient bad broken").whole(), @r#"
    exit code 1
    --- stdout
    warning[name_breaks_rules]: the name "Bad_Name" breaks the rules: it is not
                                lower-case; it contains '_', which is neither a
                                letter nor a digit nor a hyphen
     --> ./bad/SKILL.md:2:7
      |
    2 | name: Bad_Name
      |       ^^^^^^^^
      |
      = help: a name is at most 64 lower-case letters, digits and single hyphens

    warning[name_mismatch]: the name "Bad_Name" is not that of the directory, "bad"
     --> ./bad/SKILL.md:2:7
      |
    2 | name: Bad_Name
      |       ^^^^^^^^
      |
      = help: rename one of them; the skill is known by the name in the file

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
    insta::assert_snapshot!(world.run("validate --lenient good").whole(), @"
    exit code 0
    --- stdout
    ok good: 1 skill loaded
    --- stderr
    ");
    insta::assert_snapshot!(world.run("validate --lenient empty").whole(), @"
    exit code 1
    --- stdout
    error[no_skill]: has no SKILL.md, neither itself nor below
    --> empty
     = help: name a skill's directory, or a directory of skills

    FAILED empty: 0 skills loaded, 1 error
    --- stderr
    ");
}

#[test]
fn lenient_takes_a_directory_of_skills_and_fails_only_for_errors() {
    let world = world();
    let all = world.run("validate --lenient . --json").expect_code(1).json();
    assert_eq!(
        all["results"][0]["skills"],
        serde_json::json!(["Bad_Name", "fine", "good", "odd"])
    );
    // What is merely odd is loaded, and told.
    let odd = world.run("validate --lenient bad --json").expect_code(0).json();
    let codes: Vec<_> = odd["results"][0]["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["code"].as_str().unwrap())
        .collect();
    assert_eq!(codes, ["name_breaks_rules", "name_mismatch", "unquoted_value"]);
    assert_eq!(odd["results"][0]["diagnostics"][2]["line"], 3);
}

#[test]
fn lenient_reads_the_whole_file() {
    let world = World::new();
    world.write(
        "long/SKILL.md",
        format!("---\nname: long\ndescription: Long.\n---\n{}", "line\n".repeat(600)),
    );
    let result = world.run("validate --lenient long --json").expect_code(0).json();
    assert_eq!(result["results"][0]["diagnostics"][0]["code"], "long_body");
    assert_eq!(result["results"][0]["diagnostics"][0]["severity"], "info");
}
