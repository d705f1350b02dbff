//! First-seen order: a skill that overrides another keeps its position, everywhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use skillbox_repository::{Repository, ScanOptions, Scope, Source};
use skillbox_runtime::{
    AgentName, AgentSession, AgentSpec, Dialect, HistoryCompleteness, Runtime, RuntimeSettings, Settings, SourceView,
    ToolCall, render_state,
};
use skillbox_sandbox::Profiles;

use super::deepagents_transcription::{Metadata, Middleware};

const CATALOGS: u64 = 200;
const NAMES: [&str; 8] = ["alpha", "alpha-two", "bravo", "charlie", "delta", "echo", "fox", "golf"];

/// A generator of numbers, so that a failing catalog can be made again.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % limit
    }

    fn one_in(&mut self, limit: u64) -> bool {
        self.below(limit) == 0
    }

    fn name(&mut self) -> &'static str {
        NAMES[usize::try_from(self.below(NAMES.len() as u64)).unwrap()]
    }
}

/// Writes sources of skills, several of which have the same names. A directory may have another name than its skill.
fn write_sources(root: &Path, random: &mut Random) -> Vec<(PathBuf, Vec<Metadata>)> {
    let mut sources = Vec::new();
    for number in 0..1 + random.below(4) {
        let source = root.join(format!("s{number}"));
        fs::create_dir(&source).unwrap();
        let mut skills = Vec::new();
        // The listing of a source is sorted, component by component.
        for dir_name in NAMES {
            if random.one_in(2) {
                let name = if random.one_in(5) { random.name() } else { dir_name };
                skills.push(write_skill(&source.join(dir_name), name, random));
            }
        }
        sources.push((source, skills));
    }
    sources
}

fn write_skill(dir: &Path, name: &str, random: &mut Random) -> Metadata {
    let skill = Metadata {
        name: name.to_owned(),
        description: format!(
            "Does {} things, {}.",
            random.below(100),
            "well ".repeat(usize::from(random.one_in(3)) * 20)
        )
        .replace(" .", "."),
        license: random.one_in(4).then(|| "MIT".to_owned()),
        compatibility: random.one_in(5).then(|| "Needs Linux".to_owned()),
        allowed_tools: if random.one_in(3) {
            vec!["Read".to_owned(), "Bash(git:*)".to_owned()]
        } else {
            Vec::new()
        },
        dir: dir.to_owned(),
    };
    let mut text = format!("---\nname: {name}\ndescription: {}\n", skill.description);
    for (key, value) in [("license", &skill.license), ("compatibility", &skill.compatibility)] {
        if let Some(value) = value {
            text += &format!("{key}: {value}\n");
        }
    }
    if !skill.allowed_tools.is_empty() {
        text += &format!("allowed-tools: {}\n", skill.allowed_tools.join(" "));
    }
    fs::create_dir(dir).unwrap();
    fs::write(dir.join("SKILL.md"), text + "---\n\n# Steps\n").unwrap();
    for file in [
        "scripts/a.py",
        "scripts/b.sh",
        "references/r.md",
        "assets/x.png",
        "NOTES.txt",
    ] {
        if random.one_in(3) {
            let path = dir.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
    }
    skill
}

fn open_session(sources: &[PathBuf], state: &Path, budget: usize, max_loaded: usize) -> AgentSession {
    let source = |path: &PathBuf| Source::Directory {
        path: path.clone(),
        scope: Scope::Project,
    };
    let repository = Repository::open(sources.iter().map(source).collect(), ScanOptions::default());
    let runtime = Runtime::new(
        repository.into(),
        Profiles::shipped(),
        Vec::new(),
        RuntimeSettings::with_state_dir(state),
    );
    let settings = Settings {
        max_list_chars: budget,
        max_loaded: Some(max_loaded),
        sources: sources
            .iter()
            .map(|path| SourceView::from_path(path.to_str().unwrap()))
            .collect(),
        ..Settings::new(Dialect::Deepagents)
    };
    AgentSession::open(Arc::new(runtime), settings.into()).unwrap()
}

/// Compares state keys, enumeration and prompt.
#[track_caller]
fn assert_same(session: &AgentSession, expected: &Middleware, catalog: u64) {
    let agent = AgentName::default();
    let keys = render_state(Dialect::Deepagents, &session.state().unwrap(), &agent);
    assert_eq!(
        Value::Object(keys),
        Value::Object(expected.state_keys()),
        "catalog {catalog}"
    );
    let tools = session.tools(&agent).unwrap();
    let names = &tools[0].input_schema["properties"]["skill_name"]["enum"];
    if !expected.names().is_empty() {
        assert_eq!(names, &json!(expected.names()), "catalog {catalog}");
    }
    let section = session
        .modify_request(&agent, HistoryCompleteness::Complete)
        .unwrap()
        .unwrap();
    assert_eq!(section.text, expected.skills_section(), "catalog {catalog}");
}

#[test]
fn seed_000_sections_3_3_to_3_5_random_catalogs_with_overrides_equal_the_transcription() {
    let mut overrides = 0;
    for catalog in 1..=CATALOGS {
        let mut random = Random(catalog.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let dir = tempfile::tempdir().unwrap();
        let sources = write_sources(dir.path(), &mut random);
        let paths: Vec<PathBuf> = sources.iter().map(|(path, _)| path.clone()).collect();
        let budget = if random.one_in(3) { 600 } else { 16_000 };
        let max_loaded = 1 + usize::try_from(random.below(4)).unwrap();
        let mut expected = Middleware {
            sources: paths.clone(),
            max_description_budget: budget,
            max_loaded_skills: max_loaded,
            skills_metadata: Vec::new(),
            skills_loaded: Vec::new(),
            skill_resources: serde_json::Map::new(),
        };
        expected.before_agent(|source| sources.iter().find(|(path, _)| path == source).unwrap().1.clone());
        overrides += sources.iter().map(|(_, skills)| skills.len()).sum::<usize>() - expected.names().len();
        let session = open_session(&paths, &dir.path().join("state"), budget, max_loaded);
        session.before_agent(&AgentSpec::main()).unwrap();
        assert_same(&session, &expected, catalog);
        for _ in 0..6 {
            let name = if random.one_in(6) { "unknown" } else { random.name() };
            let answer = match session.call(&ToolCall::new("load_skill", json!({"skill_name": name}))) {
                Ok(outcome) => outcome.text,
                Err(error) => error.body(Dialect::Deepagents).message,
            };
            assert_eq!(answer, expected.load_skill(name), "catalog {catalog}");
            assert_same(&session, &expected, catalog);
        }
    }
    assert!(overrides > 500, "only {overrides} skills were overridden");
}

/// All skills of the first source are overridden by the last one, with another source in between.
#[test]
fn seed_000_section_3_3_an_overridden_source_keeps_its_position() {
    let cli = crate::cli::Cli::new();
    for (source, name) in [("one", "zeta"), ("two", "beta"), ("three", "zeta"), ("three", "alpha")] {
        cli.add_skill(&format!("{source}/{name}"), &format!("From {source}."));
    }
    let sources = "--skills one --skills two --skills three --dialect deepagents";
    let args = |line: &str| cli.run(&format!("{line} {sources}")).expect_code(0);
    let order = ["zeta", "beta", "alpha"];

    let started = args("call before_agent --session s").json();
    let metadata = started["state_delta"]["skills_metadata"].as_array().unwrap();
    let names: Vec<&str> = metadata.iter().map(|skill| skill["name"].as_str().unwrap()).collect();
    assert_eq!(names, order);
    assert_eq!(metadata[0]["description"], "From three.", "the last source wins");

    let tools = args("tools --session s").json();
    assert_eq!(
        tools[0]["inputSchema"]["properties"]["skill_name"]["enum"],
        json!(order)
    );

    let refused = cli
        .run(&format!(
            "call load_skill {{\"skill_name\":\"x\"}} --session s {sources}"
        ))
        .expect_code(1);
    assert_eq!(
        refused.json()["error"]["message"],
        "Error: Skill 'x' not found. Available skills: zeta, beta, alpha"
    );
    let prompt = args("prompt --session s").stdout;
    let positions: Vec<_> = order
        .iter()
        .map(|name| prompt.find(&format!("- **{name}**")).unwrap())
        .collect();
    assert!(positions.is_sorted(), "{prompt}");
}
