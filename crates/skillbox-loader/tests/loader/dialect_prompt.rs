//! Snapshots of every dialect's prompt section: without and with a loaded skill and document.

use serde_json::json;
use skillbox_loader::{Dialect, PolicyKind, SourceView};

use crate::library::{Host, Library, settings};

/// The prompt with the temporary path replaced.
fn shown(host: &Host, library: &Library) -> String {
    host.prompt()
        .replace(&library.path().display().to_string(), "/srv/team/skills")
}

fn host(library: &Library, dialect: Dialect) -> Host {
    library.host_with(settings(dialect, |settings| {
        settings.sources = vec![
            SourceView::at("/home/me/.agents/skills"),
            SourceView::at("/srv/team/skills"),
        ];
        settings.policy = PolicyKind::Recommend;
    }))
}

fn sample() -> Library {
    let library = Library::sample();
    library.skill("release", "description: \"Publish a <version>.\\nCarefully.\"\ndisable-model-invocation: true\nargument-hint: \"[version]\"\ncompatibility: needs git", "x");
    library
}

#[test]
fn before_anything_is_loaded() {
    for dialect in Dialect::ALL {
        let library = sample();
        insta::assert_snapshot!(
            format!("{dialect}_overview"),
            shown(&host(&library, *dialect), &library)
        );
    }
}

#[test]
fn with_a_skill_and_a_document() {
    for dialect in Dialect::ALL {
        let library = sample();
        let host = host(&library, *dialect);
        match dialect {
            Dialect::Skillbox | Dialect::Trpc => {
                host.ok("skill_load", json!({"skill": "pdf", "docs": ["references/forms.md"]}));
            }
            Dialect::Deepagents => drop(host.ok("load_skill", json!({"skill_name": "pdf"}))),
            Dialect::Saa => drop(host.ok("read_skill", json!({"skill_name": "pdf"}))),
            Dialect::Agentskills => host
                .session
                .apply(&serde_json::from_value(json!([{"op": "load", "skill": "pdf", "mode": "session"}])).unwrap()),
        }
        insta::assert_snapshot!(format!("{dialect}_loaded"), shown(&host, &library));
    }
}
