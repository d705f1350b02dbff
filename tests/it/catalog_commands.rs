//! `list`, `info` and `search`, as text and as JSON.

use std::os::unix::fs::symlink;

use crate::cli::Cli;

/// Valid, unusual and broken skills, with resources and documents.
fn cli_with_mixed_skills() -> Cli {
    let cli = Cli::new();
    cli.add_skill(
        "skills/alpha",
        "Counts letters of the Greek alphabet. Use when somebody asks for alpha.",
    )
    .write_file("skills/alpha/scripts/count.py", "print(24)\n")
    .write_file("skills/alpha/references/letters.md", "alpha\n")
    .write_file("skills/alpha/references/deep/more.txt", "beta\n")
    .write_file("skills/alpha/LICENSE", "free\n")
    .add_skill("skills/group/beta", "Second of the letters.")
    .write_file(
        "skills/colon/SKILL.md",
        "---\nname: colon\ndescription: Use when: a colon is not quoted\n---\n",
    )
    .write_file(
        "skills/wrong/SKILL.md",
        "---\nname: right\ndescription: Another name than its directory.\n---\n",
    )
    .write_file("skills/bare/SKILL.md", "# no frontmatter\n")
    .write_file("skills/nameless/SKILL.md", "---\ndescription: Has no name.\n---\n")
    .write_file(
        "skills/broken/SKILL.md",
        "---\nname: broken\ndescription: [never closed\n---\n",
    )
    .write_file(
        "skills/latin/SKILL.md",
        b"---\nname: latin\ndescription: caf\xe9\n---\n",
    )
    .write_file("skills/README.md", "not a skill\n");
    cli
}

#[test]
fn list_shows_usable_skills_and_one_finding_for_each_faulty_one() {
    let cli = cli_with_mixed_skills();
    let list = cli.run("list --json --skills skills").expect_code(0).json();
    let texts = |key: &str, field: &str| -> Vec<String> {
        list[key]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item[field].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(texts("skills", "name"), ["alpha", "colon", "beta", "right"]);
    let mut findings: Vec<_> = texts("diagnostics", "path")
        .into_iter()
        .zip(texts("diagnostics", "code"))
        .collect();
    findings.sort();
    let path = |name: &str| format!("[TEMP]/work/skills/{name}/SKILL.md");
    let expected = [
        ("bare", "no_frontmatter"),
        ("broken", "invalid_yaml"),
        ("colon", "unquoted_value"),
        ("latin", "not_utf8"),
        ("nameless", "missing_name"),
        ("wrong", "name_mismatch"),
    ];
    assert_eq!(findings, expected.map(|(name, code)| (path(name), code.to_owned())));
    for finding in list["diagnostics"].as_array().unwrap() {
        assert!(
            finding["message"].is_string() && finding["hint"].is_string(),
            "{finding}"
        );
        assert!(
            ["info", "warning", "error"].contains(&finding["severity"].as_str().unwrap()),
            "{finding}"
        );
    }
    assert_eq!(list["shadowed"].as_array().unwrap().len(), 0);
    let alpha = &list["skills"][0];
    assert_eq!(
        alpha["resources"],
        serde_json::json!({"script": 1, "reference": 1, "asset": 0, "other": 1})
    );
    assert_eq!(alpha["path"], path("alpha"));
    assert_eq!(alpha["source"], "skills");
    assert_eq!(alpha.get("digest"), None);
}

#[test]
fn list_prints_text() {
    let cli = cli_with_mixed_skills();
    insta::assert_snapshot!(cli.run("list --skills skills").transcript(), @r#"
    exit code 0
    --- stdout
    skills
      alpha  Counts letters of the Greek alphabet. Use when somebody asks for alpha.
             1 script, 1 reference, 1 other file
      colon  Use when: a colon is not quoted
      beta   Second of the letters.
      right  Another name than its directory.

    4 skills
    2 more skills would load with --metadata-fallback: the name or the description
    is missing
    --- stderr
    error[no_frontmatter] ./skills/bare/SKILL.md:1:1
      the file has no frontmatter
      hint: begin it with a line of three dashes, `name: …`, `description: …` and
            three dashes again

    error[invalid_yaml] ./skills/broken/SKILL.md:3:14
      the frontmatter is not valid YAML: unclosed bracket '['
      hint: close the bracket, or put the value in quotes if it is text

    warning[unquoted_value] ./skills/colon/SKILL.md:3:14
      the value of `description` needs quotes; it was read as if it had them
      hint: write description: 'Use when: a colon is not quoted'

    error[not_utf8] ./skills/latin/SKILL.md:3:17
      the file is not UTF-8 text from here on
      hint: save the file as UTF-8

    error[missing_name] ./skills/nameless/SKILL.md:2:1
      the frontmatter has no name
      hint: add a line `name: …`

    warning[name_mismatch] ./skills/wrong/SKILL.md:2:7
      the name "right" differs from the directory name "wrong"
      hint: rename one of them; the skill uses the name in the file
    "#);
}

#[test]
fn findings_follow_the_verbosity() {
    let cli = cli_with_mixed_skills();
    let findings = |line: &str| {
        let stderr = cli.run(line).expect_code(0).stderr;
        (stderr.matches("error[").count(), stderr.matches("warning[").count())
    };
    assert_eq!(findings("list --skills skills"), (4, 2));
    assert_eq!(findings("list --skills skills -q"), (4, 0));
    assert_eq!(cli.run("list --skills skills --json").stderr, "");
}

#[test]
fn a_later_source_overrides_and_hidden_skills_are_reported() {
    let cli = Cli::new();
    cli.add_skill("low/twin", "The low one.")
        .add_skill("high/twin", "The high one.")
        .add_skill("low/other", "Only here.");
    let list = cli.run("list --json --skills low --skills high").expect_code(0).json();
    let descriptions: Vec<_> = list["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|skill| skill["description"].as_str().unwrap())
        .collect();
    assert_eq!(descriptions, ["Only here.", "The high one."]);
    let shadowed = &list["shadowed"][0];
    assert_eq!(
        (shadowed["name"].as_str(), shadowed["source"].as_str()),
        (Some("twin"), Some("low"))
    );
    assert_eq!(shadowed["by_path"], "[TEMP]/work/high/twin/SKILL.md");
    assert!(
        cli.run("list --skills low --skills high")
            .stdout
            .contains("shadows the one in low")
    );

    let info = cli
        .run("info twin --json --skills low --skills high")
        .expect_code(0)
        .json();
    assert_eq!(info["description"], "The high one.");
    assert_eq!(info["overrides"][0]["path"], "[TEMP]/work/low/twin/SKILL.md");
    assert!(
        cli.run("info twin --skills low --skills high")
            .stdout
            .contains("shadows  ./low/twin/SKILL.md")
    );
    let other_way = cli.run("info twin --json --skills high --skills low").json();
    assert_eq!(other_way["description"], "The low one.");
}

#[test]
fn default_sources_have_an_order_of_precedence() {
    let mut cli = Cli::new();
    let home = cli.home_dir().display().to_string();
    cli.add_skill("../home/.agents/skills/csv-report", "1");
    let winner = |cli: &Cli| cli.run("info csv-report --json").expect_code(0).json()["description"].clone();
    assert_eq!(winner(&cli), "1", "a home directory overrides the built-in skills");
    for (number, dir) in [
        (2, "../home/.claude/skills"),
        (3, ".claude/skills"),
        (4, ".agents/skills"),
        (5, "skills"),
        (6, "root-a"),
        (7, "root-b"),
    ] {
        cli.add_skill(&format!("{dir}/csv-report"), &number.to_string());
        if dir.starts_with("root") {
            cli.set_variable("SKILLS_ROOT", "root-a:root-b");
        }
        if number != 6 {
            assert_eq!(winner(&cli), number.to_string(), "{dir} below {home}");
        }
    }
    let hidden = cli.run("info csv-report --json").json()["overrides"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(hidden, 7, "six directories and the built-in one");
}

#[test]
fn a_single_skill_directory_is_a_source() {
    let cli = cli_with_mixed_skills();
    let list = cli.run("list --json --skills skills/alpha").expect_code(0).json();
    assert_eq!(list["skills"][0]["name"], "alpha");
    assert_eq!(list["skills"].as_array().unwrap().len(), 1);
}

#[test]
fn a_missing_source_is_reported_and_the_others_load() {
    let cli = cli_with_mixed_skills();
    let list = cli
        .run("list --json --skills nowhere --skills skills/alpha")
        .expect_code(0)
        .json();
    assert_eq!(list["diagnostics"][0]["code"], "source_missing");
    assert_eq!(list["skills"].as_array().unwrap().len(), 1);
    insta::assert_snapshot!(cli.run("list --skills nowhere").transcript(), @"
    exit code 0
    --- stdout
    no skills found
    create one with `skillbox create NAME --dir skills`, or search elsewhere with
    --skills PATH
    --- stderr
    warning[source_missing] ./nowhere
      the source does not exist
      hint: check its path
    ");
}

#[test]
fn info_shows_every_field() {
    let cli = Cli::new();
    cli.write_file(
        "skills/full/SKILL.md",
        "---\nname: full\ndescription: Has every field.\nlicense: MIT\ncompatibility: needs git\n\
         allowed-tools: Bash(git add *), Read\nmetadata:\n  version: 1.0\n  author: me\nargument-hint: FILE\n\
         disable-model-invocation: true\nrisk: low\n---\n",
    );
    cli.write_file("skills/full/scripts/run.sh", "")
        .write_file("skills/full/references/a.md", "")
        .write_file("skills/full/docs/b.txt", "");
    insta::assert_snapshot!(cli.run("info full --skills skills").transcript(), @"
    exit code 0
    --- stdout
    full
      Has every field.

    source   skills
    path     ./skills/full/SKILL.md
    digest   sha256:cfff9211e66119be3f30a21ec8d4fd1d9802db6550ac12a683dd826d4dc8bc33
    license  MIT
    needs    needs git
    tools    Bash(git add *), Read
    argument FILE
    invoked  by users only

    metadata
      version           1.0
      author            me

    other fields
      risk              low

    scripts
      scripts/run.sh

    references
      references/a.md

    documents
      docs/b.txt
      references/a.md
    --- stderr
    ");
    let info = cli.run("info full --skills skills --json").expect_code(0).json();
    assert_eq!(info["allowed_tools"], serde_json::json!(["Bash(git add *)", "Read"]));
    assert_eq!(info["docs"], serde_json::json!(["docs/b.txt", "references/a.md"]));
    assert_eq!(info["resources"]["script"], serde_json::json!(["scripts/run.sh"]));
    assert_eq!(info["metadata"]["version"], "1.0");
    let digest = info["digest"].as_str().unwrap();
    assert!(digest.starts_with("sha256:") && digest.len() == 71, "{digest}");
    assert_eq!(
        cli.run("list --skills skills --json --digest").json()["skills"][0]["digest"],
        digest
    );
    cli.write_file("skills/full/docs/b.txt", "changed");
    assert_ne!(cli.run("info full --skills skills --json").json()["digest"], digest);
}

#[test]
fn an_unknown_skill_error_names_the_nearest_skills() {
    let cli = cli_with_mixed_skills();
    let output = cli.run("info alhpa --skills skills").expect_code(1);
    insta::assert_snapshot!(output.transcript(), @"
    exit code 1
    --- stdout
    --- stderr
    error: unknown skill `alhpa`
    hint:  similar names: `alpha`, `beta`, `colon`; run `skillbox list` for all
    ");
    let error = cli.run("info alhpa --skills skills --json").expect_code(1).json();
    assert_eq!(error["error"]["code"], "unknown_skill");
}

#[test]
fn links_that_leave_a_skill_are_not_followed() {
    let cli = Cli::new();
    cli.add_skill("skills/leaky", "Has links.")
        .write_file("secret.md", "secret words")
        .write_file("skills/leaky/references/own.md", "");
    let inside = cli.work_dir().join("skills/leaky/references");
    symlink(cli.work_dir().join("secret.md"), inside.join("leak.md")).unwrap();
    symlink("own.md", inside.join("alias.md")).unwrap();
    symlink(cli.work_dir(), cli.work_dir().join("skills/leaky/scripts")).unwrap();
    let info = cli.run("info leaky --skills skills --json").expect_code(0);
    let info = info.json();
    // The control: a link that stays in the skill is shown.
    let shown = serde_json::json!(["references/alias.md", "references/own.md"]);
    assert_eq!((&info["docs"], &info["resources"]["reference"]), (&shown, &shown));
    assert_eq!(info["resources"]["script"], serde_json::json!([]));
    assert_eq!(
        cli.run("search secret --skills skills --json").json()["hits"],
        serde_json::json!([])
    );

    // A SKILL.md that is a link out of its directory is ignored; a link to a whole skill directory is followed.
    std::fs::create_dir(cli.work_dir().join("skills/fake")).unwrap();
    cli.add_skill("elsewhere/real", "Real.");
    symlink(
        cli.work_dir().join("elsewhere/real/SKILL.md"),
        cli.work_dir().join("skills/fake/SKILL.md"),
    )
    .unwrap();
    symlink(
        cli.work_dir().join("elsewhere/real"),
        cli.work_dir().join("skills/linked"),
    )
    .unwrap();
    let list = cli.run("list --skills skills --json").expect_code(0).json();
    let paths: Vec<_> = list["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|skill| skill["path"].as_str().unwrap())
        .collect();
    assert_eq!(
        paths,
        [
            "[TEMP]/work/skills/leaky/SKILL.md",
            "[TEMP]/work/skills/linked/SKILL.md"
        ]
    );
}

#[test]
fn search_ranks_names_over_descriptions_over_bodies() {
    let cli = Cli::new();
    cli.add_skill("skills/body", "Something else.")
        .write_file(
            "skills/body/SKILL.md",
            "---\nname: body\ndescription: Something else.\n---\n\nHow to bake bread at home.\n",
        )
        .add_skill("skills/baker", "Knows all about bread.")
        .add_skill("skills/bread-oven", "Heats.")
        .add_skill("skills/bread", "The thing itself.")
        .add_skill("skills/brot", "表格数据汇总。");
    let names = |query: &str| -> Vec<String> {
        let hits = cli
            .run_args(&["search", query, "--json", "--skills", "skills"])
            .expect_code(0)
            .json();
        hits["hits"]
            .as_array()
            .unwrap()
            .iter()
            .map(|hit| hit["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names("bread"), ["bread", "bread-oven", "baker", "body"]);
    assert_eq!(names("数据"), ["brot"], "text without blanks is found");
    assert_eq!(names("zzzzz"), Vec::<String>::new());
    let limited = cli.run("search bread --limit 2 --json --skills skills").json();
    assert_eq!(limited["hits"].as_array().unwrap().len(), 2);
    insta::assert_snapshot!(cli.run("search bread --skills skills").transcript(), @"
    exit code 0
    --- stdout
      bread       The thing itself.
                  exact name · skills
      bread-oven  Heats.
                  start of the name · skills
      baker       Knows all about bread.
                  description or path · skills
      body        Something else.
                  instructions: How to bake bread at home. · skills
    --- stderr
    ");
    insta::assert_snapshot!(cli.run("search zzzzz --skills skills").transcript(), @"
    exit code 0
    --- stdout
    no skill matches zzzzz
    try fewer words, or run `skillbox list` for all skills
    --- stderr
    ");
}

#[test]
fn built_in_skills_are_available_without_any_directory() {
    let cli = Cli::new();
    let list = cli.run("list --json").expect_code(0).json();
    let names: Vec<_> = list["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|skill| skill["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "archive-inspect",
            "csv-report",
            "dir-report",
            "json-query",
            "log-triage",
            "python-math",
            "text-stats"
        ]
    );
    assert_eq!(list["skills"][0]["scope"], "built_in");
    assert_eq!(list["diagnostics"], serde_json::json!([]));
    // The same files on disk have the same digest.
    let on_disk = crate::workspace::root().join("skills");
    let on_disk = cli
        .run_args(&["list", "--json", "--digest", "--skills", on_disk.to_str().unwrap()])
        .json();
    let embedded = cli.run("list --json --digest").json();
    for (a, b) in embedded["skills"]
        .as_array()
        .unwrap()
        .iter()
        .zip(on_disk["skills"].as_array().unwrap())
    {
        assert_eq!((&a["name"], &a["digest"]), (&b["name"], &b["digest"]));
    }
}
