//! Lists of skills that exceed the description budget.

use serde_json::json;

use super::{call_ok, prompt, write_skill};
use crate::cli::Cli;

const BUDGET: usize = 4000;

/// Twenty skills with descriptions of 1,000 characters.
fn cli_with_long_descriptions() -> Cli {
    let cli = Cli::new();
    for number in 10..30 {
        let description = format!("Describes number {number}. {}", "many words ".repeat(200));
        write_skill(
            &cli,
            &format!("skill-{number}"),
            &format!("description: {}", &description[..1000]),
            "Body.\n",
        );
    }
    cli
}

/// The lines of a prompt that list skills.
fn entries(prompt: &str) -> Vec<&str> {
    prompt
        .lines()
        .filter(|line| line.starts_with("- skill-") || line.starts_with("- **skill-"))
        .collect()
}

#[test]
fn descriptions_are_shortened_before_skills_are_dropped() {
    let cli = cli_with_long_descriptions();
    for (dialect, load, key) in [
        ("skillbox", "skill_load", "skill"),
        ("trpc", "skill_load", "skill"),
        ("saa", "read_skill", "skill_name"),
    ] {
        let flags = format!("--dialect {dialect} --budget {BUDGET} --session {dialect}");
        let shown = prompt(&cli, &flags);
        let listed = entries(&shown);
        assert_eq!(listed.len(), 20, "{dialect}: {shown}");
        let size: usize = listed.iter().map(|line| line.chars().count() + 1).sum();
        assert!(size <= BUDGET && size > BUDGET / 2, "{dialect}: {size}");
        assert!(
            listed[0].contains("Describes number 10") && listed[0].contains('…'),
            "{dialect}: {}",
            listed[0]
        );
        call_ok(&cli, load, &json!({key: "skill-29"}), &flags);
        assert_eq!(entries(&prompt(&cli, &flags)).len(), 20, "{dialect}");
    }
}

/// This dialect has no search tool, so locations are kept as long as they fit.
#[test]
fn the_agentskills_list_shortens_descriptions_before_dropping_skills() {
    let cli = cli_with_long_descriptions();
    let block = |budget: usize| prompt(&cli, &format!("--dialect agentskills --budget {budget}"));
    let shown = block(BUDGET);
    assert!(
        shown.chars().count() <= BUDGET + 50,
        "the frame does not count: {shown}"
    );
    assert_eq!(shown.matches("<location>").count(), 20, "{shown}");
    assert_eq!(shown.matches("Describes number").count(), 20, "{shown}");
    let place = cli.work_dir().join("skills/skill-10/SKILL.md");
    let place = place.display();
    let bare = format!("<skill>\n<name>\nskill-10\n</name>\n<location>\n{place}\n</location>\n</skill>\n");
    let shown = block(20 * bare.chars().count());
    assert_eq!(shown.matches("<location>").count(), 20, "{shown}");
    assert!(!shown.contains("Describes number"), "{shown}");
    let shown = block(10 * bare.chars().count());
    let listed = shown.matches("<location>").count();
    let note = format!(
        "<!-- ({} more skills are not listed: ask for them by name.) -->",
        20 - listed
    );
    assert!((1..20).contains(&listed) && shown.contains(&note), "{shown}");
    let loaded = prompt(&cli, "--dialect agentskills --budget 0 --loaded skill-29");
    assert_eq!(loaded.matches("<location>").count(), 1, "{loaded}");
    assert!(loaded.contains("skill-29/SKILL.md"), "{loaded}");
}

#[test]
fn a_small_budget_lists_names_only_then_a_count() {
    let cli = cli_with_long_descriptions();
    let shown = prompt(&cli, "--budget 260");
    let listed = entries(&shown);
    assert_eq!(listed.len(), 20, "{shown}");
    assert!(listed.iter().all(|line| !line.contains("Describes")), "{shown}");
    let shown = prompt(&cli, "--budget 100");
    let listed = entries(&shown).len();
    assert!((1..20).contains(&listed), "{shown}");
    assert!(
        shown.contains(&format!(
            "({} more skills are not listed: find them with `skill_search`.)",
            20 - listed
        )),
        "{shown}"
    );
}

#[test]
fn deepagents_skips_entries_that_do_not_fit_and_counts_them() {
    let cli = cli_with_long_descriptions();
    let flags = format!("--dialect deepagents --budget {BUDGET} --session s");
    let shown = prompt(&cli, &flags);
    assert_eq!(entries(&shown).len(), 3, "{shown}");
    assert!(shown.contains("17 "), "the others are counted: {shown}");
    assert!(!shown.contains("skill-29"));
    // A skill that is not listed can be loaded by its name, and is listed afterwards.
    call_ok(&cli, "load_skill", &json!({"skill_name": "skill-29"}), &flags);
    let shown = prompt(&cli, &flags);
    assert!(entries(&shown)[0].starts_with("- **skill-29** [Loaded]"), "{shown}");
}

#[test]
fn loaded_skills_are_always_listed() {
    let cli = cli_with_long_descriptions();
    for (dialect, load, key) in [
        ("skillbox", "skill_load", "skill"),
        ("trpc", "skill_load", "skill"),
        ("deepagents", "load_skill", "skill_name"),
        ("saa", "read_skill", "skill_name"),
    ] {
        let flags = format!("--dialect {dialect} --budget 0 --session {dialect}");
        for name in ["skill-12", "skill-25", "skill-29"] {
            call_ok(&cli, load, &json!({key: name}), &flags);
        }
        let shown = prompt(&cli, &flags);
        for name in ["skill-12", "skill-25", "skill-29"] {
            assert!(
                entries(&shown).iter().any(|line| line.contains(name)),
                "{dialect}: {name}: {shown}"
            );
        }
        assert_eq!(entries(&shown).len(), 3, "{dialect}: {shown}");
    }
}
