//! Settings: flags over environment over config file over defaults, and what is said about bad ones.

use crate::program::World;

/// The names that `list` finds.
fn names(world: &World, line: &str) -> Vec<String> {
    let list = world.run(line).expect_code(0).json();
    list["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|skill| skill["name"].as_str().unwrap().to_owned())
        .collect()
}

fn world_with_skills() -> World {
    let world = World::new();
    for layer in ["flag", "other", "variable", "config", "user"] {
        world.skill(&format!("{layer}/from-{layer}"), "One of many.");
    }
    world
}

#[test]
fn the_highest_layer_wins() {
    let mut world = world_with_skills();
    world.write("skillbox.toml", "skills = [\"config\"]\n");
    assert_eq!(names(&world, "list --json"), ["from-config"]);
    world.set("SKILLBOX_SKILLS", "variable:other");
    assert_eq!(names(&world, "list --json"), ["from-variable", "from-other"]);
    assert_eq!(names(&world, "list --json --skills flag"), ["from-flag"]);
}

#[test]
fn a_repeated_flag_counts_on_both_sides_of_the_command() {
    let world = world_with_skills();
    assert_eq!(
        names(&world, "--skills flag list --json --skills other"),
        ["from-flag", "from-other"]
    );
    assert_eq!(
        names(&world, "--json list --skills=other --skills flag"),
        ["from-other", "from-flag"]
    );
}

#[test]
fn config_files_in_the_order_of_their_places() {
    let mut world = world_with_skills();
    let users = world.home().join(".config/skillbox");
    std::fs::create_dir_all(&users).unwrap();
    std::fs::write(
        users.join("skillbox.toml"),
        format!("skills = [{:?}]\n", world.work().join("user")),
    )
    .unwrap();
    assert_eq!(names(&world, "list --json"), ["from-user"]);
    world.write("skillbox.toml", "skills = \"config\"\n");
    assert_eq!(names(&world, "list --json"), ["from-config"]);
    // Relative paths start at the file, wherever it is.
    world.write("deep/er/mine.toml", "skills = [\"../../other\"]\n");
    assert_eq!(names(&world, "list --json --config deep/er/mine.toml"), ["from-other"]);
    world.set("SKILLBOX_CONFIG", "deep/er/mine.toml");
    assert_eq!(names(&world, "list --json"), ["from-other"]);
}

#[test]
fn bad_config_files_are_errors_with_a_place_and_a_hint() {
    let check = |text: &str, expected: &str| {
        let world = World::new();
        world.write("skillbox.toml", text);
        let ran = world.run("list").expect_code(2);
        assert_eq!(ran.stdout, "");
        assert_eq!(ran.stderr.replace("\n       ", " "), expected, "{text}");
    };
    check(
        "# mine\nskils = \"x\"\n",
        "error: [WORLD]/work/skillbox.toml:2:1: unknown key `skils`\nhint:  did you mean `skills`?\n",
    );
    check(
        "max_directories = \"many\"\n",
        "error: [WORLD]/work/skillbox.toml:1:1: \"many\" is not a whole number\n\
         hint:  `skillbox help settings` lists every setting and its value\n",
    );
    check(
        "skills = {a = 1}\n",
        "error: [WORLD]/work/skillbox.toml:1:1: `skills` cannot be table\n\
         hint:  `skillbox help settings` lists every setting and its value\n",
    );
}

#[test]
fn a_config_file_that_was_asked_for_must_be_there() {
    let world = World::new();
    let ran = world.run("list --config nowhere.toml --json").expect_code(2);
    assert!(
        ran.json()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("nowhere.toml")
    );
    // The control: without asking, no config file is fine.
    world.run("list").expect_code(0);
}

#[test]
fn a_misspelt_variable_is_told() {
    let mut world = World::new();
    world.set("SKILLBOX_SKILS", "x");
    assert!(world.run("list").expect_code(0).stderr.contains("SKILLBOX_SKILLS?"));
    assert_eq!(world.run("list -q").expect_code(0).stderr, "");
}

#[test]
fn help_settings_tells_values_and_origins() {
    let mut world = World::new();
    world
        .set("SKILLBOX_STATE_DIR", "/var/lib/skillbox")
        .write("skillbox.toml", "max_directories = 7\n");
    let settings = world.run("help settings --json --profiles p").expect_code(0).json();
    let origin = |key: &str| {
        let found = settings
            .as_array()
            .unwrap()
            .iter()
            .find(|setting| setting["key"] == key)
            .unwrap();
        format!(
            "{} from {}",
            found["value"].as_str().unwrap(),
            found["origin"].as_str().unwrap()
        )
    };
    assert_eq!(origin("skills"), "(none) from default");
    assert_eq!(origin("profiles"), "p from --profiles");
    assert_eq!(origin("state_dir"), "/var/lib/skillbox from SKILLBOX_STATE_DIR");
    assert_eq!(origin("max_directories"), "7 from [WORLD]/work/skillbox.toml:1:1");
}

#[test]
fn config_show_tells_every_value_and_its_origin() {
    let mut world = World::new();
    world
        .set("SKILLBOX_STATE_DIR", "/var/lib/skillbox")
        .set("SKILLBOX_EXECUTOR", "docker")
        .write("skillbox.toml", "artifacts = \"s3://bucket/x\"\nbudget = 7\n");
    let shown = world.run("config show --json --max-loaded 3").expect_code(0).json();
    assert_eq!(shown["config_file"], "[WORLD]/work/skillbox.toml");
    let told = |key: &str| {
        let settings = shown["settings"].as_array().unwrap();
        let found = settings.iter().find(|setting| setting["key"] == key).unwrap();
        format!(
            "{} from {}",
            found["value"].as_str().unwrap(),
            found["origin"].as_str().unwrap()
        )
    };
    assert_eq!(told("state_dir"), "/var/lib/skillbox from SKILLBOX_STATE_DIR");
    assert_eq!(told("artifacts"), "s3://bucket/x from [WORLD]/work/skillbox.toml:1:1");
    assert_eq!(told("executor"), "docker from SKILLBOX_EXECUTOR");
    assert_eq!(told("budget"), "7 from [WORLD]/work/skillbox.toml:2:1");
    assert_eq!(told("max_loaded"), "3 from --max-loaded");
    assert_eq!(told("dialect"), "skillbox from default");
    // The same facts as the help has, and the same for people.
    let help = world.run("help settings --json --max-loaded 3");
    assert_eq!(help.code, Some(2), "a flag of some commands only");
    let help = world.run("help settings --json").expect_code(0).json();
    assert_eq!(
        help.as_array().unwrap().len(),
        shown["settings"].as_array().unwrap().len()
    );
    let text = world.run("config show").expect_code(0).stdout;
    assert!(
        text.contains("config file in force: [WORLD]/work/skillbox.toml"),
        "{text}"
    );
    assert!(
        text.contains("  executor            docker (SKILLBOX_EXECUTOR)"),
        "{text}"
    );
}

#[test]
fn config_show_refuses_what_no_command_would_take() {
    let world = World::new();
    world.write("skillbox.toml", "budget = 1\nartifact_endpoint = \"x\"\n");
    let error = world.run("config show --json").expect_code(2).json()["error"].clone();
    assert_eq!(
        error["message"],
        "[WORLD]/work/skillbox.toml:2:1: unknown key `artifact_endpoint`"
    );
    assert_eq!(error["hint"], "did you mean `artifacts_endpoint`?");
    world.write("skillbox.toml", "zzzz = 1\n");
    let error = world.run("config show --json").expect_code(2).json()["error"].clone();
    assert_eq!(
        error["hint"],
        "`skillbox help settings` lists every setting and its value"
    );
}
