//! Spring AI Alibaba: the template of the system prompt and the load instructions can be replaced.

use serde_json::{Value, json};

use crate::cli::Cli;
use crate::disclosure::{cli_with_skills, prompt};
use crate::harness::HttpServer;

/// The template of the document, as it stands.
const TEMPLATE: &str = include_str!("saa_system_prompt.txt");
const INSTRUCTIONS: &str = "Ask the librarian for a skill by its name.";

/// Checks a prompt that was rendered from the template, with the dialect's load instructions or with these.
#[track_caller]
fn check_prompt(prompt: &str, skill: &str, instructions: &str) {
    let (before, rest) = TEMPLATE.split_once("{skills_list}").unwrap();
    let (between, after) = rest.split_once("{skills_load_instructions}").unwrap();
    assert!(prompt.starts_with(before), "{prompt}");
    let rest = &prompt[before.len()..];
    let (list, rest) = rest.split_once(between).unwrap_or_else(|| panic!("{prompt}"));
    assert!(list.contains("**Project Skills:**\n") && list.contains(skill), "{list}");
    let (shown, _) = rest.split_once(after).unwrap_or_else(|| panic!("{prompt}"));
    assert!(shown.contains(instructions), "{shown}");
    assert!(!prompt.contains("{skills_"), "{prompt}");
}

#[test]
fn seed_003_the_template_is_set_by_flag_variable_and_file() {
    let mut cli = cli_with_skills();
    cli.write_file("template.txt", TEMPLATE)
        .write_file("how.txt", INSTRUCTIONS);
    let skill = "- **pdf**: Reads PDFs.";
    check_prompt(
        &prompt(&cli, "--dialect saa --prompt-template template.txt"),
        skill,
        "- Call `read_skill` with `skill_name`",
    );
    check_prompt(
        &prompt(
            &cli,
            "--dialect saa --prompt-template template.txt --load-instructions how.txt",
        ),
        skill,
        INSTRUCTIONS,
    );
    let own_frame = prompt(&cli, "--dialect saa --load-instructions how.txt");
    assert!(
        own_frame.contains(INSTRUCTIONS) && !own_frame.contains("- Call `read_skill`"),
        "{own_frame}"
    );
    cli.write_file(
        "templates.toml",
        "dialect = \"saa\"\nprompt_template = \"template.txt\"\nload_instructions = \"how.txt\"\n",
    );
    check_prompt(&prompt(&cli, "--config templates.toml"), skill, INSTRUCTIONS);
    cli.set_variable("SKILLBOX_PROMPT_TEMPLATE", "template.txt")
        .set_variable("SKILLBOX_LOAD_INSTRUCTIONS", "how.txt");
    check_prompt(&prompt(&cli, "--dialect saa"), skill, INSTRUCTIONS);
}

#[test]
fn seed_003_an_unusable_template_is_refused() {
    let cli = cli_with_skills();
    cli.write_file("empty.txt", "No placeholder.");
    cli.write_file("large.txt", format!("{{skills_list}}{}", "x".repeat(300 << 10)));
    for (flags, expected) in [
        ("--prompt-template none.txt", "prompt_template: cannot read"),
        ("--prompt-template empty.txt", "lacks the placeholder `{skills_list}`"),
        ("--prompt-template large.txt", "larger than 262144 bytes"),
        ("--load-instructions none.txt", "load_instructions: cannot read"),
    ] {
        let output = cli.run(&format!("--skills skills prompt --dialect saa {flags}"));
        assert_ne!(output.code, Some(0), "{flags}");
        // Messages are wrapped to the width of a terminal.
        let message = output.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(message.contains(expected), "{flags}: {message}");
    }
}

#[test]
fn seed_003_the_template_is_a_field_of_a_request_over_http() {
    let cli = Cli::new();
    let skills = cli.work_dir().join("skills");
    cli.add_skill("skills/pdf", "Reads PDFs.");
    let (server, _) = HttpServer::start(&["--skills", skills.to_str().unwrap()], &[]);
    let post = |path: &str, body: &Value| server.request_json("", "POST", path, Some(body));
    post("/v1/sessions", &json!({"id": "s"})).expect_status(201);
    let texts = json!({"prompt_template": TEMPLATE, "load_instructions": INSTRUCTIONS});
    let answer = post("/v1/sessions/s/prompt?dialect=saa", &texts).expect_status(200);
    check_prompt(
        answer["prompt"].as_str().unwrap(),
        "- **pdf**: Reads PDFs.",
        INSTRUCTIONS,
    );
    let unchanged = server
        .request_json("", "GET", "/v1/sessions/s/prompt?dialect=saa", None)
        .expect_status(200);
    assert!(
        !unchanged["prompt"].as_str().unwrap().contains(INSTRUCTIONS),
        "a request changes only its own prompt"
    );
    let refused = post("/v1/sessions/s/prompt", &json!({"prompt_template": "none"}));
    assert_eq!(refused.error(), (400, "invalid_request".to_owned()));
    assert_eq!(refused.json()["error"]["field"], "prompt_template");
    assert_eq!(
        post("/v1/sessions/s/prompt", &json!({"template": "x"})).json()["error"]["field"],
        "template"
    );
    let values_in_field_order = post("/v1/sessions/s/prompt", &json!([null, null]));
    assert_eq!(values_in_field_order.error(), (400, "invalid_request".to_owned()));
    post("/v1/sessions/s/prompt", &json!({"prompt_template": null})).expect_status(200);
}
