//! Built-in skills: hosts that read files by path find them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::json;

use crate::cli::Cli;
use crate::workspace::root;

/// The path on disk of a path in redacted output.
fn real_path(cli: &Cli, shown: &str) -> PathBuf {
    let dir = cli.home_dir();
    let dir = dir.parent().unwrap();
    PathBuf::from(shown.replace("[TEMP]", dir.to_str().unwrap()))
}

#[test]
fn seed_000_section_2_3_1_the_resource_paths_of_built_in_skills_can_be_opened() {
    let cli = Cli::new();
    let load = "call load_skill {\"skill_name\":\"csv-report\"} --dialect deepagents --session s";
    let loaded = cli.run(load).expect_code(0).json();
    let resources = loaded["state_delta"]["skill_resources"]["csv-report"]
        .as_array()
        .unwrap();
    assert!(!resources.is_empty(), "{loaded}");
    let text = loaded["content"].as_str().unwrap();
    for resource in resources {
        let shown = resource["path"].as_str().unwrap();
        assert!(text.contains(&format!("`{shown}`")), "{text}");
        let path = real_path(&cli, shown);
        let below = shown.split("/csv-report/").nth(1).unwrap();
        let shipped = root().join("skills/csv-report").join(below);
        assert_eq!(fs::read(&path).unwrap(), fs::read(shipped).unwrap(), "{shown}");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o222,
            0,
            "{shown} is read-only"
        );
    }
    let started = cli.run("call before_agent --dialect deepagents").expect_code(0).json();
    let metadata = &started["state_delta"]["skills_metadata"].as_array().unwrap()[1];
    assert_eq!(metadata["name"], "csv-report");
    assert!(real_path(&cli, metadata["path"].as_str().unwrap()).is_file());
    let extracted = cli.home_dir().join(".local/state/skillbox/built-in");
    let sets: Vec<_> = fs::read_dir(&extracted).unwrap().flatten().collect();
    assert_eq!(sets.len(), 1);
    assert_eq!(
        fs::read_dir(sets[0].path()).unwrap().count(),
        1,
        "only the loaded skill is written"
    );
}

#[test]
fn seed_003_built_in_skills_have_a_directory_that_can_be_opened() {
    let cli = Cli::new();
    let prompt = cli.run("prompt --dialect saa").expect_code(0).stdout;
    let line = prompt
        .lines()
        .find(|line| line.starts_with("- **csv-report**"))
        .unwrap();
    let shown = line
        .split("located at directory `")
        .nth(1)
        .unwrap()
        .split('`')
        .next()
        .unwrap();
    let directory = real_path(&cli, shown);
    assert!(
        directory.is_absolute() && !directory.exists(),
        "{shown} is written when the skill is read"
    );
    cli.run("call read_skill {\"skill_name\":\"csv-report\"} --dialect saa")
        .expect_code(0);
    assert!(directory.join("scripts/report.py").is_file(), "{shown}");
    let by_path = json!({"skill_path": directory}).to_string();
    cli.run_args(&["call", "read_skill", &by_path, "--dialect", "saa"])
        .expect_code(0);
}

/// This dialect has no tool that loads, so the list must have paths that can be opened.
#[test]
fn seed_002_locations_of_built_in_skills_can_be_opened() {
    let cli = Cli::new();
    let prompt = cli.run("prompt --dialect agentskills").expect_code(0).stdout;
    let locations = prompt.lines().filter(|line| line.ends_with("/SKILL.md"));
    let paths: Vec<PathBuf> = locations.map(|line| real_path(&cli, line)).collect();
    assert_eq!(paths.len(), 7);
    assert!(paths.iter().all(|path| path.is_file()), "{paths:?}");
}

/// The control: where tools read skills by name, nothing is written.
#[test]
fn built_in_skills_are_not_written_for_dialects_that_read_by_name() {
    let cli = Cli::new();
    cli.run("call skill_load {\"skill\":\"csv-report\"} --session s")
        .expect_code(0);
    assert!(!cli.home_dir().join(".local/state/skillbox/built-in").exists());
}
