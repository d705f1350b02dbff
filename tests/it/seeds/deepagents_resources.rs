//! Resources that cannot be listed, and the log of discovery.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::{Value, json};

use crate::cli::{Cli, CommandOutput};

/// Runs the program without root's right to read every file.
fn run_unprivileged(cli: &Cli, line: &str) -> CommandOutput {
    let program = env!("CARGO_BIN_EXE_skillbox");
    let words: Vec<&str> = line.split_whitespace().collect();
    if !rustix::process::geteuid().is_root() {
        return cli.run_program(Path::new(program), &words, "");
    }
    let launcher = ["--bounding-set=-dac_override,-dac_read_search", program];
    cli.run_program(Path::new("setpriv"), &[&launcher[..], &words].concat(), "")
}

fn log_lines(output: &CommandOutput) -> Vec<Value> {
    let lines = output.stderr.lines();
    lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[track_caller]
fn assert_logged(output: &CommandOutput, level: &str, message: &str) {
    let lines = log_lines(output);
    let found = lines
        .iter()
        .any(|line| line["level"] == level && line["message"] == message);
    assert!(found, "no {level} {message:?} in {}", output.transcript());
}

const LOAD: &str =
    "call load_skill {\"skill_name\":\"deploy\"} --skills skills --dialect deepagents --session s --log info";

#[test]
fn seed_000_section_6_1_a_resource_directory_that_cannot_be_listed_is_a_warning() {
    let cli = Cli::new();
    cli.add_skill("skills/deploy", "Deploys.");
    cli.write_file("skills/deploy/references/guide.md", "Guide.\n");
    // A link to itself cannot be opened, by root neither.
    symlink("scripts", cli.work_dir().join("skills/deploy/scripts")).unwrap();
    let loaded = cli.run(LOAD).expect_code(0);
    assert_logged(
        &loaded,
        "WARN",
        "Failed to list resources in [TEMP]/work/skills/deploy/scripts",
    );
    let resources = &loaded.json()["state_delta"]["skill_resources"]["deploy"];
    assert_eq!(resources.as_array().unwrap().len(), 1, "{resources}");
    let listed = cli.run("list --skills skills").expect_code(0);
    assert!(
        listed.stderr.contains("warning[resources_unreadable]"),
        "{}",
        listed.stderr
    );
    let info = cli.run("info deploy --skills skills --json").expect_code(0).json();
    assert_eq!(info["resources"]["reference"], json!(["references/guide.md"]));
    assert!(
        info["diagnostics"].to_string().contains("resources_unreadable"),
        "{info}"
    );
}

#[test]
fn seed_000_section_6_1_a_skill_directory_that_cannot_be_listed_loads_without_resources() {
    let cli = Cli::new();
    cli.add_skill("skills/deploy", "Deploys.");
    cli.write_file("skills/deploy/scripts/run.py", "print()\n");
    let dir = cli.work_dir().join("skills/deploy");
    let with_all = run_unprivileged(&cli, LOAD).expect_code(0).json();
    assert_eq!(
        with_all["state_delta"]["skill_resources"]["deploy"]
            .as_array()
            .unwrap()
            .len(),
        1,
        "control"
    );

    fs::set_permissions(&dir, fs::Permissions::from_mode(0o311)).unwrap();
    fs::set_permissions(dir.join("scripts"), fs::Permissions::from_mode(0o311)).unwrap();
    let loaded = run_unprivileged(&cli, &LOAD.replace("--session s", "--session t"));
    for path in [dir.clone(), dir.join("scripts")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let loaded = loaded.expect_code(0);
    let message = "Failed to list resources for skill 'deploy' at [TEMP]/work/skills/deploy";
    assert_logged(&loaded, "WARN", message);
    let result = loaded.json();
    assert_eq!(result["state_delta"]["skill_resources"], json!({"deploy": []}));
    assert_eq!(result["state_delta"]["skills_loaded"], json!(["deploy"]));
    assert!(result["content"].as_str().unwrap().ends_with("# deploy\n"), "{result}");
}

#[test]
fn seed_000_section_10_6_log_messages() {
    let cli = Cli::new();
    cli.add_skill("one/deploy", "Deploys.")
        .add_skill("two/web-research", "Researches.");
    cli.write_file("two/web-research/scripts/a.py", "");
    let run = |line: &str| {
        cli.run(&format!(
            "{line} --skills one --skills two --dialect deepagents --session s --log info"
        ))
    };
    let started = run("call before_agent").expect_code(0);
    assert_logged(&started, "INFO", "Discovered 2 skills from 2 sources");
    let loaded = run("call load_skill {\"skill_name\":\"web-research\"}").expect_code(0);
    assert_logged(&loaded, "INFO", "Skill 'web-research' loaded (1 resources discovered)");
    let limited = run("call load_skill {\"skill_name\":\"deploy\"} --max-loaded 1").expect_code(1);
    assert_logged(&limited, "WARN", "Skill loading limit reached (1/1)");
    let prompt = run("prompt --budget 10").expect_code(0);
    assert_logged(&prompt, "WARN", "Description budget exceeded, 1 skills excluded");
    // The scan reads only the frontmatter, so the invalid byte is found when the skill is loaded.
    let frontmatter = b"---\nname: deploy\ndescription: d\n---\n";
    cli.write_file(
        "one/deploy/SKILL.md",
        [&frontmatter[..], &[b'x'; 20_000], b"\xff"].concat(),
    );
    let unreadable = run("call load_skill {\"skill_name\":\"deploy\"}").expect_code(1);
    assert_logged(
        &unreadable,
        "ERROR",
        "Failed to read SKILL.md at [TEMP]/work/one/deploy/SKILL.md",
    );
}

/// The missing directory among the default sources is not counted.
#[test]
fn seed_000_section_10_6_sources_that_do_not_exist_are_not_counted() {
    let cli = Cli::new();
    cli.add_skill("skills/deploy", "Deploys.");
    let started = cli
        .run("call before_agent --dialect deepagents --log info")
        .expect_code(0);
    assert_logged(&started, "INFO", "Discovered 8 skills from 2 sources");
}
