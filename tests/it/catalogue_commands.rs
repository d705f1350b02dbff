//! `list`, `info` and `search`, for people and for programs.

use std::os::unix::fs::symlink;

use crate::program::World;

/// Good, odd and broken skills side by side, with resources and documents.
fn mixed_world() -> World {
    let world = World::new();
    world
        .skill(
            "skills/alpha",
            "Counts letters of the Greek alphabet. Use when somebody asks for alpha.",
        )
        .write("skills/alpha/scripts/count.py", "print(24)\n")
        .write("skills/alpha/references/letters.md", "alpha\n")
        .write("skills/alpha/references/deep/more.txt", "beta\n")
        .write("skills/alpha/LICENSE", "free\n")
        .skill("skills/group/beta", "Second of the letters.")
        .write(
            "skills/colon/SKILL.md",
            "---\nname: colon\ndescription: Use when: a colon is not quoted\n---\n",
        )
        .write(
            "skills/wrong/SKILL.md",
            "---\nname: right\ndescription: Another name than its directory.\n---\n",
        )
        .write("skills/bare/SKILL.md", "# no frontmatter\n")
        .write("skills/nameless/SKILL.md", "---\ndescription: Has no name.\n---\n")
        .write(
            "skills/broken/SKILL.md",
            "---\nname: broken\ndescription: [never closed\n---\n",
        )
        .write(
            "skills/latin/SKILL.md",
            b"---\nname: latin\ndescription: caf\xe9\n---\n",
        )
        .write("skills/README.md", "not a skill\n");
    world
}

#[test]
fn list_shows_every_good_skill_and_one_finding_for_each_odd_or_broken_one() {
    let world = mixed_world();
    let list = world.run("list --json --skills skills").expect_code(0).json();
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
    let path = |name: &str| format!("[WORLD]/work/skills/{name}/SKILL.md");
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
fn list_for_people() {
    let world = mixed_world();
    insta::assert_snapshot!(world.run("list --skills skills").whole(), @r#"
    exit code 0
    --- stdout
    skills
      alpha  Counts letters of the Greek alphabet. Use when somebody asks for alpha.
             1 script, 1 reference, 1 other file
      colon  Use when: a colon is not quoted
      beta   Second of the letters.
      right  Another name than its directory.

    4 skills
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
      the name "right" is not that of the directory, "wrong"
      hint: rename one of them; the skill is known by the name in the file
    "#);
}

#[test]
fn talk_follows_the_verbosity() {
    let world = mixed_world();
    let findings = |line: &str| {
        let stderr = world.run(line).expect_code(0).stderr;
        (stderr.matches("error[").count(), stderr.matches("warning[").count())
    };
    assert_eq!(findings("list --skills skills"), (4, 2));
    assert_eq!(findings("list --skills skills -q"), (4, 0));
    assert_eq!(world.run("list --skills skills --json").stderr, "");
}

#[test]
fn a_later_source_wins_and_what_it_hides_is_told() {
    let world = World::new();
    world
        .skill("low/twin", "The low one.")
        .skill("high/twin", "The high one.")
        .skill("low/other", "Only here.");
    let list = world
        .run("list --json --skills low --skills high")
        .expect_code(0)
        .json();
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
    assert_eq!(shadowed["by_path"], "[WORLD]/work/high/twin/SKILL.md");
    assert!(
        world
            .run("list --skills low --skills high")
            .stdout
            .contains("hides the one of low")
    );

    let info = world
        .run("info twin --json --skills low --skills high")
        .expect_code(0)
        .json();
    assert_eq!(info["description"], "The high one.");
    assert_eq!(info["overrides"][0]["path"], "[WORLD]/work/low/twin/SKILL.md");
    assert!(
        world
            .run("info twin --skills low --skills high")
            .stdout
            .contains("hides    ./low/twin/SKILL.md")
    );
    let other_way = world.run("info twin --json --skills high --skills low").json();
    assert_eq!(other_way["description"], "The low one.");
}

#[test]
fn customary_places_from_low_to_high() {
    let mut world = World::new();
    let home = world.home().display().to_string();
    world.skill("../home/.agents/skills/csv-report", "1");
    let winner = |world: &World| world.run("info csv-report --json").expect_code(0).json()["description"].clone();
    assert_eq!(winner(&world), "1", "a home directory wins over the built-in skills");
    for (number, dir) in [
        (2, "../home/.claude/skills"),
        (3, ".claude/skills"),
        (4, ".agents/skills"),
        (5, "skills"),
        (6, "root-a"),
        (7, "root-b"),
    ] {
        world.skill(&format!("{dir}/csv-report"), &number.to_string());
        if dir.starts_with("root") {
            world.set("SKILLS_ROOT", "root-a:root-b");
        }
        if number != 6 {
            assert_eq!(winner(&world), number.to_string(), "{dir} below {home}");
        }
    }
    let hidden = world.run("info csv-report --json").json()["overrides"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(hidden, 7, "six directories and the built-in one");
}

#[test]
fn one_skill_directory_is_a_source() {
    let world = mixed_world();
    let list = world.run("list --json --skills skills/alpha").expect_code(0).json();
    assert_eq!(list["skills"][0]["name"], "alpha");
    assert_eq!(list["skills"].as_array().unwrap().len(), 1);
}

#[test]
fn a_source_that_is_not_there_is_told_and_the_others_load() {
    let world = mixed_world();
    let list = world
        .run("list --json --skills nowhere --skills skills/alpha")
        .expect_code(0)
        .json();
    assert_eq!(list["diagnostics"][0]["code"], "source_missing");
    assert_eq!(list["skills"].as_array().unwrap().len(), 1);
    insta::assert_snapshot!(world.run("list --skills nowhere").whole(), @"
    exit code 0
    --- stdout
    no skills found
    `skillbox create NAME --dir skills` makes one; --skills PATH looks elsewhere
    --- stderr
    warning[source_missing] ./nowhere
      the source does not exist
      hint: check its path
    ");
}

#[test]
fn info_tells_everything() {
    let world = World::new();
    world.write(
        "skills/full/SKILL.md",
        "---\nname: full\ndescription: Has every field.\nlicense: MIT\ncompatibility: needs git\n\
         allowed-tools: Bash(git add *), Read\nmetadata:\n  version: 1.0\n  author: me\nargument-hint: FILE\n\
         disable-model-invocation: true\nrisk: low\n---\n",
    );
    world
        .write("skills/full/scripts/run.sh", "")
        .write("skills/full/references/a.md", "")
        .write("skills/full/docs/b.txt", "");
    insta::assert_snapshot!(world.run("info full --skills skills").whole(), @"
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
    invoked  by people only

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
    let info = world.run("info full --skills skills --json").expect_code(0).json();
    assert_eq!(info["allowed_tools"], serde_json::json!(["Bash(git add *)", "Read"]));
    assert_eq!(info["docs"], serde_json::json!(["docs/b.txt", "references/a.md"]));
    assert_eq!(info["resources"]["script"], serde_json::json!(["scripts/run.sh"]));
    assert_eq!(info["metadata"]["version"], "1.0");
    let digest = info["digest"].as_str().unwrap();
    assert!(digest.starts_with("sha256:") && digest.len() == 71, "{digest}");
    assert_eq!(
        world.run("list --skills skills --json --digest").json()["skills"][0]["digest"],
        digest
    );
    world.write("skills/full/docs/b.txt", "changed");
    assert_ne!(world.run("info full --skills skills --json").json()["digest"], digest);
}

#[test]
fn an_unknown_skill_gets_the_nearest_names() {
    let world = mixed_world();
    let ran = world.run("info alhpa --skills skills").expect_code(1);
    insta::assert_snapshot!(ran.whole(), @"
    exit code 1
    --- stdout
    --- stderr
    error: unknown skill `alhpa`
    hint:  the nearest are `alpha`, `beta`, `colon`; `skillbox list` shows all
    ");
    let error = world.run("info alhpa --skills skills --json").expect_code(1).json();
    assert_eq!(error["error"]["code"], "unknown_skill");
}

#[test]
fn what_leads_out_of_a_skill_is_not_shown() {
    let world = World::new();
    world
        .skill("skills/leaky", "Has links.")
        .write("secret.md", "secret words")
        .write("skills/leaky/references/own.md", "");
    let inside = world.work().join("skills/leaky/references");
    symlink(world.work().join("secret.md"), inside.join("leak.md")).unwrap();
    symlink("own.md", inside.join("alias.md")).unwrap();
    symlink(world.work(), world.work().join("skills/leaky/scripts")).unwrap();
    let info = world.run("info leaky --skills skills --json").expect_code(0);
    let info = info.json();
    // The control: a link that stays inside is shown.
    let shown = serde_json::json!(["references/alias.md", "references/own.md"]);
    assert_eq!((&info["docs"], &info["resources"]["reference"]), (&shown, &shown));
    assert_eq!(info["resources"]["script"], serde_json::json!([]));
    assert_eq!(
        world.run("search secret --skills skills --json").json()["hits"],
        serde_json::json!([])
    );

    // A skill whose SKILL.md leads out is no skill; a link to a whole skill is one.
    std::fs::create_dir(world.work().join("skills/fake")).unwrap();
    world.skill("elsewhere/real", "Real.");
    symlink(
        world.work().join("elsewhere/real/SKILL.md"),
        world.work().join("skills/fake/SKILL.md"),
    )
    .unwrap();
    symlink(world.work().join("elsewhere/real"), world.work().join("skills/linked")).unwrap();
    let list = world.run("list --skills skills --json").expect_code(0).json();
    let paths: Vec<_> = list["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|skill| skill["path"].as_str().unwrap())
        .collect();
    assert_eq!(
        paths,
        [
            "[WORLD]/work/skills/leaky/SKILL.md",
            "[WORLD]/work/skills/linked/SKILL.md"
        ]
    );
}

#[test]
fn search_ranks_names_over_descriptions_over_bodies() {
    let world = World::new();
    world
        .skill("skills/body", "Something else.")
        .write(
            "skills/body/SKILL.md",
            "---\nname: body\ndescription: Something else.\n---\n\nHow to bake bread at home.\n",
        )
        .skill("skills/baker", "Knows all about bread.")
        .skill("skills/bread-oven", "Heats.")
        .skill("skills/bread", "The thing itself.")
        .skill("skills/brot", "表格数据汇总。");
    let names = |query: &str| -> Vec<String> {
        let hits = world
            .run_words(&["search", query, "--json", "--skills", "skills"])
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
    let limited = world.run("search bread --limit 2 --json --skills skills").json();
    assert_eq!(limited["hits"].as_array().unwrap().len(), 2);
    insta::assert_snapshot!(world.run("search bread --skills skills").whole(), @"
    exit code 0
    --- stdout
      bread       The thing itself.
                  is the name · skills
      bread-oven  Heats.
                  begins the name · skills
      baker       Knows all about bread.
                  in description or path · skills
      body        Something else.
                  in the instructions: How to bake bread at home. · skills
    --- stderr
    ");
    insta::assert_snapshot!(world.run("search zzzzz --skills skills").whole(), @"
    exit code 0
    --- stdout
    nothing found for zzzzz
    try fewer words; `skillbox list` shows everything
    --- stderr
    ");
}

#[test]
fn the_built_in_skills_are_there_without_any_directory() {
    let world = World::new();
    let list = world.run("list --json").expect_code(0).json();
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
    // The same tree on disk has the same digest.
    let on_disk = crate::workspace::root().join("skills");
    let on_disk = world
        .run_words(&["list", "--json", "--digest", "--skills", on_disk.to_str().unwrap()])
        .json();
    let embedded = world.run("list --json --digest").json();
    for (a, b) in embedded["skills"]
        .as_array()
        .unwrap()
        .iter()
        .zip(on_disk["skills"].as_array().unwrap())
    {
        assert_eq!((&a["name"], &a["digest"]), (&b["name"], &b["digest"]));
    }
}
