//! Settings: flags override the environment, which overrides the config file, which overrides defaults; and their errors.

use crate::cli::Cli;

/// The names of the skills that `list` shows.
fn skill_names(cli: &Cli, line: &str) -> Vec<String> {
    let list = cli.run(line).expect_code(0).json();
    list["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|skill| skill["name"].as_str().unwrap().to_owned())
        .collect()
}

fn cli_with_skills() -> Cli {
    let cli = Cli::new();
    for layer in ["flag", "other", "variable", "config", "user"] {
        cli.add_skill(&format!("{layer}/from-{layer}"), "One of many.");
    }
    cli
}

#[test]
fn the_highest_settings_layer_wins() {
    let mut cli = cli_with_skills();
    cli.write_file("skillbox.toml", "skills = [\"config\"]\n");
    assert_eq!(skill_names(&cli, "list --json"), ["from-config"]);
    cli.set_variable("SKILLBOX_SKILLS", "variable:other");
    assert_eq!(skill_names(&cli, "list --json"), ["from-variable", "from-other"]);
    assert_eq!(skill_names(&cli, "list --json --skills flag"), ["from-flag"]);
}

#[test]
fn a_repeated_flag_counts_on_both_sides_of_the_command() {
    let cli = cli_with_skills();
    assert_eq!(
        skill_names(&cli, "--skills flag list --json --skills other"),
        ["from-flag", "from-other"]
    );
    assert_eq!(
        skill_names(&cli, "--json list --skills=other --skills flag"),
        ["from-other", "from-flag"]
    );
}

#[test]
fn config_files_have_an_order_of_precedence() {
    let mut cli = cli_with_skills();
    let users = cli.home_dir().join(".config/skillbox");
    std::fs::create_dir_all(&users).unwrap();
    std::fs::write(
        users.join("skillbox.toml"),
        format!("skills = [{:?}]\n", cli.work_dir().join("user")),
    )
    .unwrap();
    assert_eq!(skill_names(&cli, "list --json"), ["from-user"]);
    cli.write_file("skillbox.toml", "skills = \"config\"\n");
    assert_eq!(skill_names(&cli, "list --json"), ["from-config"]);
    // Relative paths are relative to the file.
    cli.write_file("deep/er/mine.toml", "skills = [\"../../other\"]\n");
    assert_eq!(
        skill_names(&cli, "list --json --config deep/er/mine.toml"),
        ["from-other"]
    );
    cli.set_variable("SKILLBOX_CONFIG", "deep/er/mine.toml");
    assert_eq!(skill_names(&cli, "list --json"), ["from-other"]);
}

#[test]
fn invalid_config_files_are_errors_with_a_position_and_a_hint() {
    let check = |text: &str, expected: &str| {
        let cli = Cli::new();
        cli.write_file("skillbox.toml", text);
        let output = cli.run("list").expect_code(2);
        assert_eq!(output.stdout, "");
        assert_eq!(output.stderr.replace("\n       ", " "), expected, "{text}");
    };
    check(
        "# mine\nskils = \"x\"\n",
        "error: [TEMP]/work/skillbox.toml:2:1: unknown key `skils`\nhint:  did you mean `skills`?\n",
    );
    check(
        "max_directories = \"many\"\n",
        "error: [TEMP]/work/skillbox.toml:1:1: \"many\" is not a whole number\n\
         hint:  run `skillbox help settings` for all settings and their values\n",
    );
    check(
        "skills = {a = 1}\n",
        "error: [TEMP]/work/skillbox.toml:1:1: `skills` cannot be of type table\n\
         hint:  run `skillbox help settings` for all settings and their values\n",
    );
}

#[test]
fn a_named_config_file_must_exist() {
    let cli = Cli::new();
    let output = cli.run("list --config nowhere.toml --json").expect_code(2);
    assert!(
        output.json()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("nowhere.toml")
    );
    // The control: without `--config` no file is needed.
    cli.run("list").expect_code(0);
}

#[test]
fn a_misspelt_variable_is_reported() {
    let mut cli = Cli::new();
    cli.set_variable("SKILLBOX_SKILS", "x");
    assert!(cli.run("list").expect_code(0).stderr.contains("SKILLBOX_SKILLS?"));
    assert_eq!(cli.run("list -q").expect_code(0).stderr, "");
}

#[test]
fn help_settings_lists_values_and_origins() {
    let mut cli = Cli::new();
    cli.set_variable("SKILLBOX_STATE_DIR", "/var/lib/skillbox")
        .write_file("skillbox.toml", "max_directories = 7\n");
    let settings = cli.run("help settings --json --profiles p").expect_code(0).json();
    let value_and_origin = |key: &str| {
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
    assert_eq!(value_and_origin("skills"), "(none) from default");
    assert_eq!(value_and_origin("profiles"), "p from --profiles");
    assert_eq!(
        value_and_origin("state_dir"),
        "/var/lib/skillbox from SKILLBOX_STATE_DIR"
    );
    assert_eq!(
        value_and_origin("max_directories"),
        "7 from [TEMP]/work/skillbox.toml:1:1"
    );
}

#[test]
fn config_show_lists_every_value_and_its_origin() {
    let mut cli = Cli::new();
    let state = cli.home_dir().join("state").display().to_string();
    cli.set_variable("SKILLBOX_STATE_DIR", &state)
        .set_variable("SKILLBOX_EXECUTOR", "docker")
        .write_file("skillbox.toml", "artifacts = \"s3://bucket/x\"\nbudget = 7\n");
    cli.run("config trust").expect_code(0);
    let shown = cli.run("config show --json --max-loaded 3").expect_code(0).json();
    assert_eq!(shown["config_file"], "[TEMP]/work/skillbox.toml");
    let value_and_origin = |key: &str| {
        let settings = shown["settings"].as_array().unwrap();
        let found = settings.iter().find(|setting| setting["key"] == key).unwrap();
        format!(
            "{} from {}",
            found["value"].as_str().unwrap(),
            found["origin"].as_str().unwrap()
        )
    };
    assert_eq!(
        value_and_origin("state_dir"),
        "[TEMP]/home/state from SKILLBOX_STATE_DIR"
    );
    assert_eq!(
        value_and_origin("artifacts"),
        "s3://bucket/x from [TEMP]/work/skillbox.toml:1:1"
    );
    assert_eq!(value_and_origin("executor"), "docker from SKILLBOX_EXECUTOR");
    assert_eq!(value_and_origin("budget"), "7 from [TEMP]/work/skillbox.toml:2:1");
    assert_eq!(value_and_origin("max_loaded"), "3 from --max-loaded");
    assert_eq!(value_and_origin("dialect"), "skillbox from default");
    // The help lists the same settings, and text output has the same values.
    let help = cli.run("help settings --json --max-loaded 3");
    assert_eq!(help.code, Some(2), "a flag of some commands only");
    let help = cli.run("help settings --json").expect_code(0).json();
    assert_eq!(
        help.as_array().unwrap().len(),
        shown["settings"].as_array().unwrap().len()
    );
    let text = cli.run("config show").expect_code(0).stdout;
    assert!(text.contains("config file: [TEMP]/work/skillbox.toml"), "{text}");
    assert!(
        text.contains("  executor            docker (SKILLBOX_EXECUTOR)"),
        "{text}"
    );
}

#[test]
fn config_show_refuses_invalid_config_files() {
    let cli = Cli::new();
    cli.write_file("skillbox.toml", "budget = 1\nartifact_endpoint = \"x\"\n");
    let error = cli.run("config show --json").expect_code(2).json()["error"].clone();
    assert_eq!(
        error["message"],
        "[TEMP]/work/skillbox.toml:2:1: unknown key `artifact_endpoint`"
    );
    assert_eq!(error["hint"], "did you mean `artifacts_endpoint`?");
    cli.write_file("skillbox.toml", "zzzz = 1\n");
    let error = cli.run("config show --json").expect_code(2).json()["error"].clone();
    assert_eq!(
        error["hint"],
        "run `skillbox help settings` for all settings and their values"
    );
}

#[test]
fn help_settings_describes_every_setting() {
    let cli = Cli::new();
    let text = cli.run("help settings").expect_code(0).stdout;
    let settings = cli.run("help settings --json").expect_code(0).json();
    for setting in settings.as_array().unwrap() {
        for field in ["flag", "variable", "key"] {
            let word = setting[field].as_str().unwrap();
            assert!(text.contains(word), "{word}: {text}");
        }
        for field in ["group", "type", "default", "about"] {
            assert!(!setting[field].as_str().unwrap().is_empty(), "{setting}");
        }
    }
}

#[test]
fn the_settings_reference_does_not_depend_on_the_host() {
    let mut cli = Cli::new();
    let reference = cli.run("help settings --markdown").expect_code(0).stdout;
    for row in [
        "| `budget` | `--budget N` | `SKILLBOX_BUDGET` | number | `16000` | ",
        "| `max_loaded` | `--max-loaded N` | `SKILLBOX_MAX_LOADED` | number | `10`; none in the dialect `saa` | ",
    ] {
        assert!(reference.contains(row), "{row}: {reference}");
    }
    cli.set_variable("SKILLBOX_MAX_LOADED", "3")
        .set_variable("SKILLBOX_BUDGET", "3")
        .set_variable("SKILLBOX_STATE_DIR", "/var/lib/skillbox")
        .set_variable("DOCKER_HOST", "tcp://127.0.0.1:2375");
    assert_eq!(cli.run("help settings --markdown").expect_code(0).stdout, reference);
    cli.run("help errors --markdown").expect_code(2);
}
