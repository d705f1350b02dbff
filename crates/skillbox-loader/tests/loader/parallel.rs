//! Parallel calls give the same state in any order.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use skillbox_loader::{
    AgentName, CallContext, Caller, CatalogSnapshotCache, Dialect, LoadInput, SelectDocsInput, Settings, SkillInput,
    SkillsState, StateDelta, TurnTextCache, compute_skills_update,
};
use skillbox_repository::Catalog;

use crate::library::{Host, Library};

const SKILLS: [&str; 5] = ["a", "b", "c", "d", "e"];

fn library() -> Library {
    let library = Library::new();
    for name in SKILLS {
        library
            .skill(name, "description: d", "body")
            .file(&format!("{name}/one.md"), "1")
            .file(&format!("{name}/two.md"), "2");
    }
    library
}

fn first_turn(catalog: &Catalog) -> SkillsState {
    let mut state = SkillsState::default();
    let operation = compute_skills_update(&state, &CatalogSnapshotCache::default().snapshot(catalog)).unwrap();
    state.apply(&operation.into());
    state
}

/// A call that a model may make in parallel with others.
#[derive(Clone, Debug)]
enum Call {
    Load(usize),
    LoadWith(usize, &'static str),
    AddDoc(usize, &'static str),
    Disable(usize),
}

fn call() -> impl Strategy<Value = Call> {
    let skill = 0..SKILLS.len() - 1;
    let doc = prop_oneof![Just("one.md"), Just("two.md")];
    prop_oneof![
        skill.clone().prop_map(Call::Load),
        skill.clone().prop_map(|skill| Call::LoadWith(skill, "one.md")),
        (skill, doc).prop_map(|(skill, doc)| Call::AddDoc(skill, doc)),
        // The last skill is only ever disabled: whether a call could load it would depend on the order.
        Just(Call::Disable(SKILLS.len() - 1)),
    ]
}

/// The delta of a call against the state before all calls.
fn delta(context: &CallContext<'_>, call: &Call) -> StateDelta {
    let name = |skill: &usize| SKILLS[*skill].to_owned();
    match call {
        Call::Load(skill) => {
            context
                .load(&LoadInput {
                    skill: name(skill),
                    ..Default::default()
                })
                .unwrap()
                .delta
        }
        Call::LoadWith(skill, doc) => {
            let docs = Some(vec![(*doc).to_owned()]);
            context
                .load(&LoadInput {
                    skill: name(skill),
                    docs,
                    ..Default::default()
                })
                .unwrap()
                .delta
        }
        Call::AddDoc(skill, doc) => {
            let input = SelectDocsInput {
                skill: name(skill),
                docs: Some(vec![(*doc).to_owned()]),
                include_all_docs: None,
                mode: Some(skillbox_loader::DocsMode::Add),
            };
            context.select_docs(&input).unwrap().delta
        }
        Call::Disable(skill) => context.disable(&SkillInput { skill: name(skill) }).unwrap().delta,
    }
}

/// What must not depend on the order: the loaded and the disabled skills.
fn loaded_and_disabled(state: &SkillsState) -> (Vec<String>, Vec<String>) {
    let agent = AgentName::default();
    let mut loaded: Vec<_> = state.loaded(&agent).map(|loaded| loaded.skill.to_string()).collect();
    loaded.sort();
    (loaded, state.disabled().iter().map(ToString::to_string).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_interleaving_of_parallel_loads_gives_the_same_set(
        calls in proptest::collection::vec(call(), 1..6),
        order in Just((0..6).collect::<Vec<usize>>()).prop_shuffle(),
    ) {
        let library = library();
        let catalog = library.catalog();
        let settings = Settings::new(Dialect::Skillbox);
        let base = first_turn(&catalog);
        let texts = TurnTextCache::default();
        let context = CallContext {
            settings: &settings,
            catalog: &catalog,
            state: &base,
            texts: &texts,
            agent: &AgentName::default(),
            caller: Caller::Model,
        };
        let deltas: Vec<StateDelta> = calls.iter().map(|call| delta(&context, call)).collect();
        let mut in_order = base.clone();
        deltas.iter().for_each(|delta| in_order.apply(delta));
        let mut shuffled = base.clone();
        order.iter().filter_map(|at| deltas.get(*at)).for_each(|delta| shuffled.apply(delta));
        prop_assert_eq!(loaded_and_disabled(&in_order), loaded_and_disabled(&shuffled));
        // Every load of the batch took effect.
        for call in &calls {
            if let Call::Load(skill) | Call::LoadWith(skill, _) = call {
                prop_assert!(loaded_and_disabled(&shuffled).0.iter().any(|name| name == SKILLS[*skill]));
            }
        }
    }
}

/// Two parallel calls that add documents both take effect.
#[test]
fn parallel_additions_lose_nothing() {
    let library = library();
    let host = library.host(Dialect::Skillbox);
    host.ok("skill_load", json!({"skill": "a"}));
    let base = host.state();
    let settings = Settings::new(Dialect::Skillbox);
    let texts = TurnTextCache::default();
    let context = CallContext {
        settings: &settings,
        catalog: &host.catalog,
        state: &base,
        texts: &texts,
        agent: &host.agent,
        caller: Caller::Model,
    };
    let one = delta(&context, &Call::AddDoc(0, "one.md"));
    let two = delta(&context, &Call::AddDoc(0, "two.md"));
    host.session.apply(&two);
    host.session.apply(&one);
    let prompt = host.prompt();
    assert!(
        prompt.contains("path=\"one.md\"") && prompt.contains("path=\"two.md\""),
        "{prompt}"
    );
}

/// Threads that share a session lose no load and do not exceed the limit.
#[test]
fn threads_share_a_session() {
    let library = library();
    let mut settings = Settings::new(Dialect::Skillbox);
    settings.max_loaded = Some(3);
    let host = Arc::new(Host::before_first_turn(library.catalog(), settings));
    host.start_turn();
    let refused: usize = std::thread::scope(|scope| {
        let load = |name: &'static str| {
            let host = host.clone();
            scope.spawn(move || usize::from(host.call("skill_load", json!({"skill": name})).is_err()))
        };
        let threads: Vec<_> = SKILLS.into_iter().map(load).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((host.loaded().len(), refused), (3, 2));
}
