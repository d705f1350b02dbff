//! Twenty skills with descriptions of 1,000 characters, in a budget of 4,000.

use serde_json::json;
use skillbox_loader::{Dialect, Settings};

use crate::library::{Host, Library, settings};

fn library(skills: usize) -> Library {
    let library = Library::new();
    for n in 0..skills {
        library.skill(
            &format!("skill-{n:03}"),
            &format!("description: {}", "word ".repeat(200).trim_end()),
            "body",
        );
    }
    library
}

fn host(dialect: Dialect, skills: usize, budget: usize) -> Host {
    library(skills).host_with(settings(dialect, |settings| settings.max_list_chars = budget))
}

/// The part of a prompt that the budget limits.
fn list(dialect: Dialect, prompt: &str) -> &str {
    let (from, to) = match dialect {
        Dialect::Skillbox => ("### Available skills\n\n", "\n### Loaded"),
        Dialect::Trpc => ("Available skills:\n", "\nTooling"),
        Dialect::Deepagents => ("**Available Skills:**\n\n", "\n\n**How to Use"),
        Dialect::Saa => ("### Available Skills\n\n", "\n### How to"),
        Dialect::Agentskills => ("<available_skills>\n", "</available_skills>"),
    };
    let rest = &prompt[prompt.find(from).unwrap() + from.len()..];
    rest.find(to).map_or(rest, |end| &rest[..end])
}

fn count_named(list: &str, skills: usize) -> usize {
    (0..skills).filter(|n| list.contains(&format!("skill-{n:03}"))).count()
}

fn load(host: &Host, dialect: Dialect, skill: &str) {
    match dialect {
        Dialect::Skillbox | Dialect::Trpc => drop(host.ok("skill_load", json!({"skill": skill}))),
        Dialect::Deepagents => drop(host.ok("load_skill", json!({"skill_name": skill}))),
        Dialect::Saa => drop(host.ok("read_skill", json!({"skill_name": skill}))),
        Dialect::Agentskills => {
            let operation = json!([{"op": "load", "skill": skill, "mode": "session"}]);
            host.session.apply(&serde_json::from_value(operation).unwrap());
        }
    }
}

/// Outside deepagents, all twenty skills are listed, with shorter descriptions.
#[test]
fn descriptions_are_shortened_first() {
    for dialect in [Dialect::Skillbox, Dialect::Trpc, Dialect::Agentskills] {
        let prompt = host(dialect, 20, 4000).prompt();
        let list = list(dialect, &prompt);
        assert_eq!(count_named(list, 20), 20, "{dialect} {list}");
        let chars = list.chars().count();
        assert!((3800..=4000).contains(&chars), "{dialect}: {chars} characters");
        assert_eq!(list.matches('…').count(), 20, "{dialect} {list}");
    }
}

/// With long paths in every entry, the same budget is enough for names only.
#[test]
fn then_only_names_are_listed() {
    for (dialect, budget) in [(Dialect::Saa, 2500), (Dialect::Skillbox, 600), (Dialect::Trpc, 500)] {
        let prompt = host(dialect, 20, budget).prompt();
        let list = list(dialect, &prompt);
        assert_eq!(count_named(list, 20), 20, "{dialect} {list}");
        assert!(!list.contains("word"), "{dialect} {list}");
        assert!(list.chars().count() <= budget, "{dialect}");
    }
    let prompt = host(Dialect::Saa, 20, 4000).prompt();
    assert_eq!(count_named(list(Dialect::Saa, &prompt), 20), 20);
}

#[test]
fn then_the_rest_is_counted_with_a_way_to_find_it() {
    for (dialect, budget, way) in [
        (Dialect::Skillbox, 200, "find them with `skill_search`"),
        (Dialect::Saa, 250, "find them with `search_skills`"),
        (Dialect::Trpc, 200, "`skill_load` accepts their names too"),
        (Dialect::Agentskills, 600, "ask for them by name"),
    ] {
        let prompt = host(dialect, 20, budget).prompt();
        let list = list(dialect, &prompt);
        let shown = count_named(list, 20);
        assert!((1..20).contains(&shown), "{dialect} {shown} {list}");
        assert!(
            list.contains(&format!("({} more skills are not listed: {way}.)", 20 - shown)),
            "{dialect} {list}"
        );
        assert!(list.chars().count() <= budget, "{dialect} {}", list.chars().count());
    }
}

/// deepagents shows as many complete entries as fit, and counts the others.
#[test]
fn deepagents_shows_complete_entries() {
    let prompt = host(Dialect::Deepagents, 20, 4000).prompt();
    let list = list(Dialect::Deepagents, &prompt);
    assert_eq!(count_named(list, 20), 3, "{list}");
    assert!(
        list.contains("(17 additional skill(s) not shown due to description budget limit."),
        "{list}"
    );
}

#[test]
fn loaded_skills_are_never_dropped_and_omitted_ones_still_load() {
    for dialect in Dialect::ALL.iter().copied() {
        let host = host(dialect, 20, 1);
        let before = host.prompt();
        assert_eq!(count_named(list(dialect, &before), 20), 0, "{dialect} {before}");
        load(&host, dialect, "skill-013");
        let after = host.prompt();
        let list = list(dialect, &after);
        assert!(
            list.contains("skill-013") && count_named(list, 20) == 1,
            "{dialect} {list}"
        );
        assert!(list.contains("19 "), "{dialect} {list}");
        assert_eq!(host.loaded(), ["skill-013"]);
    }
}

#[test]
fn descriptions_within_the_budget_are_complete() {
    for dialect in Dialect::ALL.iter().copied() {
        let prompt = Library::sample().host_with(Settings::new(dialect)).prompt();
        assert!(
            prompt.contains("Extract text from PDFs.") && !prompt.contains('…'),
            "{dialect} {prompt}"
        );
    }
}
