//! Spring AI Alibaba: its tools, reads without a limit, and its log lines.

use serde_json::{Value, json};

use crate::cli::Cli;
use crate::disclosure::{call_ok, call_refused, cli_with_skills, write_skill};

const READ_SKILL: &str = "\
Reads the full content of a skill from the SkillRegistry.
You can use this tool to read the complete content of any skill by providing its name or path.

Usage:
- Provide either skill_name or skill_path
- If both are provided, they must refer to the same skill
- The tool returns the full content of the skill file (e.g., SKILL.md) without frontmatter
- If the skill is not found, an error will be returned

Example:
- read_skill(\"pdf-extractor\")";

const SEARCH_SKILLS: &str = "\
Searches the current SkillRegistry by skill name, description, or skill path.

Usage:
- Provide a query to search the locally registered skills
- Matching is performed against name, description, and path
- Returns matching skills with their descriptions and paths";

const DISABLE_SKILL: &str = "\
Disables a skill in the current SkillRegistry instance without deleting any files.

Usage:
- Provide either skill_name or skill_path
- If both are provided, they must refer to the same skill
- Disabled skills are hidden from the current registry's listings and reads";

#[test]
fn seed_003_skills_agent_hook_describes_its_tools() {
    let cli = cli_with_skills();
    let tools = cli
        .run("--skills skills tools --dialect saa --format anthropic")
        .expect_code(0)
        .json();
    let description = |name: &str| {
        let tool = tools
            .as_array()
            .unwrap()
            .iter()
            .find(|tool| tool["name"] == name)
            .unwrap();
        tool["description"].as_str().unwrap().to_owned()
    };
    assert_eq!(description("read_skill"), READ_SKILL);
    assert_eq!(
        description("search_skills"),
        format!("{SEARCH_SKILLS}\n- A blank query lists all skills")
    );
    assert_eq!(description("disable_skill"), DISABLE_SKILL);
}

#[test]
fn seed_003_read_skill_takes_a_name_or_a_path() {
    let cli = cli_with_skills();
    let directory = cli.work_dir().join("skills/pdf");
    let path = directory.to_str().unwrap();
    let body = "# PDF\n\nThe body of pdf.\n";
    for arguments in [
        json!({"skill_name": "pdf"}),
        json!({"skill_path": path}),
        json!({"skill_path": format!("{path}/")}),
        json!({"skill_path": format!("{path}/SKILL.md")}),
        json!({"skill_path": path.replacen("/skills/", "//skills/./", 1)}),
        json!({"skill_name": "pdf", "skill_path": path}),
    ] {
        let read = call_ok(&cli, "read_skill", &arguments, "--dialect saa");
        assert_eq!(read["content"], body, "{arguments}");
    }
    for (arguments, expected) in [
        (
            json!({"skill_name": "git", "skill_path": path}),
            "skill_name and skill_path must refer to the same skill",
        ),
        (json!({}), "skill_name or skill_path is required"),
        (json!({"skill_name": "pdx"}), "Skill not found: pdx"),
        (json!({"skill_path": format!("{path}x")}), "Skill not found: "),
        (json!({"skill_path": format!("{path}/scripts")}), "Skill not found: "),
    ] {
        let error = call_refused(&cli, "read_skill", &arguments, "--dialect saa");
        assert!(
            error["message"].as_str().unwrap().contains(expected),
            "{arguments}: {error}"
        );
    }
}

/// deepagents limits loaded skills to ten; Spring AI Alibaba does not limit reads.
#[test]
fn seed_003_reads_are_not_limited() {
    let cli = Cli::new();
    let names: Vec<String> = (0..12).map(|number| format!("skill-{number:02}")).collect();
    for name in &names {
        write_skill(&cli, name, "description: One of many.", "Body.\n");
    }
    let (first_ten, others) = names.split_at(10);
    for name in first_ten {
        call_ok(
            &cli,
            "load_skill",
            &json!({"skill_name": name}),
            "--dialect deepagents --session d",
        );
    }
    let eleventh = json!({"skill_name": others[0]});
    let refused = call_refused(&cli, "load_skill", &eleventh, "--dialect deepagents --session d");
    assert_eq!(refused["code"], "load_limit");
    let mut last = Value::Null;
    for name in &names {
        last = call_ok(
            &cli,
            "read_skill",
            &json!({"skill_name": name}),
            "--dialect saa --session s",
        );
    }
    assert_eq!(last["state_delta"]["read_skills"], json!(names));
    let limited = call_refused(
        &cli,
        "read_skill",
        &eleventh,
        "--dialect saa --session t --max-loaded 0",
    );
    assert_eq!(limited["code"], "load_limit", "a limit that the host sets holds");
}

#[test]
fn seed_003_the_log_names_the_level_of_each_source() {
    let cli = Cli::new();
    for (path, name) in [(".claude/skills/one", "one"), (".claude/skills/two", "two")] {
        let directory = cli.home_dir().join(path);
        std::fs::create_dir_all(&directory).unwrap();
        let text = format!("---\nname: {name}\ndescription: Of the user.\n---\n");
        std::fs::write(directory.join("SKILL.md"), text).unwrap();
    }
    cli.add_skill("skills/two", "Of the project.");
    let log = cli
        .run("--log info call search_skills {\"query\":\"\"} --dialect saa")
        .expect_code(0);
    let messages: Vec<String> = log
        .stderr
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["message"].to_string())
        .collect();
    let position = |text: &str| {
        let found = messages.iter().position(|message| message.contains(text));
        found.unwrap_or_else(|| panic!("no {text:?} in {messages:#?}"))
    };
    let user = position("Loaded 2 user-level skills from [TEMP]/home/.claude/skills");
    let project = position("Loaded 1 project-level skills from ./skills");
    let total = position("Skills reloaded: ");
    assert!(user < project && project < total, "{messages:#?}");
    let missing = messages.iter().any(|message| message.contains(".agents/skills"));
    assert!(!missing, "a directory that does not exist is not logged: {messages:#?}");
}
