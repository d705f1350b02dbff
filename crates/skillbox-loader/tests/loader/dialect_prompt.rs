//! Snapshots of every dialect's prompt section: without and with a loaded skill and document.

use serde_json::json;
use skillbox_loader::{Dialect, PolicyKind, PromptFrame, PromptTemplate, SourceView, Tool};

use crate::library::{Host, Library, settings};

/// The prompt with the temporary path replaced.
fn shown(host: &Host, library: &Library) -> String {
    host.prompt()
        .replace(&library.path().display().to_string(), "/srv/team/skills")
}

fn host(library: &Library, dialect: Dialect) -> Host {
    library.host_with(settings(dialect, |settings| {
        settings.sources = vec![
            SourceView::from_path("/home/me/.agents/skills"),
            SourceView::from_path("/srv/team/skills"),
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

/// A template with the placeholders of Spring AI Alibaba, and load instructions of the host.
#[test]
fn a_host_replaces_the_template_and_the_load_instructions() {
    let template = PromptTemplate::parse("Skills:\n{skills_list}\nLoading:\n{skills_load_instructions}End.").unwrap();
    for dialect in Dialect::ALL {
        let library = sample();
        let with = |load_instructions: Option<&str>| {
            library.host_with(settings(*dialect, |settings| {
                settings.prompt_frame = PromptFrame::Template(template.clone());
                settings.load_instructions = load_instructions.map(str::to_owned);
            }))
        };
        let own = with(Some("Ask me.")).prompt();
        assert!(
            own.starts_with("Skills:\n") && own.ends_with("\nLoading:\nAsk me.\nEnd."),
            "{dialect}: {own}"
        );
        assert!(own.contains("pdf"), "{dialect}: {own}");
        let of_dialect = with(None).prompt();
        let load_tool = dialect.tool_name(Tool::Load);
        let names_tool = load_tool.is_none_or(|tool| of_dialect.contains(&format!("`{tool}`")));
        assert!(names_tool, "{dialect}: {of_dialect}");
    }
    let library = sample();
    for dialect in [Dialect::Skillbox, Dialect::Trpc, Dialect::Saa] {
        let host = library.host_with(settings(dialect, |settings| {
            settings.load_instructions = Some("Ask me.".to_owned());
        }));
        let prompt = host.prompt();
        assert!(
            prompt.contains("Ask me.\n") && !prompt.contains("never call"),
            "{dialect}: {prompt}"
        );
    }
}
