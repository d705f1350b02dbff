//! A list of skills that would be too long.

use serde_json::json;

use super::{ok, prompt, skill};
use crate::program::World;

const BUDGET: usize = 4000;

/// Twenty skills with descriptions of 1,000 characters.
fn wordy() -> World {
    let world = World::new();
    for number in 10..30 {
        let description = format!("Describes number {number}. {}", "many words ".repeat(200));
        skill(
            &world,
            &format!("skill-{number}"),
            &format!("description: {}", &description[..1000]),
            "Body.\n",
        );
    }
    world
}

/// The lines that list skills.
fn entries(prompt: &str) -> Vec<&str> {
    prompt
        .lines()
        .filter(|line| line.starts_with("- skill-") || line.starts_with("- **skill-"))
        .collect()
}

#[test]
fn descriptions_shorten_before_skills_are_left_out() {
    let world = wordy();
    for (dialect, load, key) in [
        ("skillbox", "skill_load", "skill"),
        ("trpc", "skill_load", "skill"),
        ("saa", "read_skill", "skill_name"),
    ] {
        let words = format!("--dialect {dialect} --budget {BUDGET} --session {dialect}");
        let shown = prompt(&world, &words);
        let listed = entries(&shown);
        assert_eq!(listed.len(), 20, "{dialect}: {shown}");
        let size: usize = listed.iter().map(|line| line.chars().count() + 1).sum();
        assert!(size <= BUDGET && size > BUDGET / 2, "{dialect}: {size}");
        assert!(
            listed[0].contains("Describes number 10") && listed[0].contains('…'),
            "{dialect}: {}",
            listed[0]
        );
        ok(&world, load, &json!({key: "skill-29"}), &words);
        assert_eq!(entries(&prompt(&world, &words)).len(), 20, "{dialect}");
    }
}

/// The format's list has no tool to search with, so every location stays as long as it fits.
#[test]
fn the_list_of_the_reference_shortens_descriptions_too() {
    let world = wordy();
    let block = |budget: usize| prompt(&world, &format!("--dialect agentskills --budget {budget}"));
    let shown = block(BUDGET);
    assert!(
        shown.chars().count() <= BUDGET + 50,
        "the frame is not counted: {shown}"
    );
    assert_eq!(shown.matches("<location>").count(), 20, "{shown}");
    assert_eq!(shown.matches("Describes number").count(), 20, "{shown}");
    let place = world.work().join("skills/skill-10/SKILL.md");
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
    let loaded = prompt(&world, "--dialect agentskills --budget 0 --loaded skill-29");
    assert_eq!(loaded.matches("<location>").count(), 1, "{loaded}");
    assert!(loaded.contains("skill-29/SKILL.md"), "{loaded}");
}

#[test]
fn then_names_alone_then_a_count_with_how_to_search() {
    let world = wordy();
    let shown = prompt(&world, "--budget 260");
    let listed = entries(&shown);
    assert_eq!(listed.len(), 20, "{shown}");
    assert!(listed.iter().all(|line| !line.contains("Describes")), "{shown}");
    let shown = prompt(&world, "--budget 100");
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
fn deepagents_passes_over_what_does_not_fit_and_counts_it() {
    let world = wordy();
    let words = format!("--dialect deepagents --budget {BUDGET} --session s");
    let shown = prompt(&world, &words);
    assert_eq!(entries(&shown).len(), 3, "{shown}");
    assert!(shown.contains("17 "), "the others are counted: {shown}");
    assert!(!shown.contains("skill-29"));
    // One that is not listed still loads by its name, and is listed from then on.
    ok(&world, "load_skill", &json!({"skill_name": "skill-29"}), &words);
    let shown = prompt(&world, &words);
    assert!(entries(&shown)[0].starts_with("- **skill-29** [Loaded]"), "{shown}");
}

#[test]
fn loaded_skills_are_never_left_out() {
    let world = wordy();
    for (dialect, load, key) in [
        ("skillbox", "skill_load", "skill"),
        ("trpc", "skill_load", "skill"),
        ("deepagents", "load_skill", "skill_name"),
        ("saa", "read_skill", "skill_name"),
    ] {
        let words = format!("--dialect {dialect} --budget 0 --session {dialect}");
        for name in ["skill-12", "skill-25", "skill-29"] {
            ok(&world, load, &json!({key: name}), &words);
        }
        let shown = prompt(&world, &words);
        for name in ["skill-12", "skill-25", "skill-29"] {
            assert!(
                entries(&shown).iter().any(|line| line.contains(name)),
                "{dialect}: {name}: {shown}"
            );
        }
        assert_eq!(entries(&shown).len(), 3, "{dialect}: {shown}");
    }
}
