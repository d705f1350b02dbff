//! Renders the state under the keys that a dialect's hosts use.

use serde_json::{Map, Value, json};

use super::kind::Dialect;
use crate::agent::AgentName;
use crate::skill_view::SkillView;
use crate::state::{DocSelection, SkillsState};

/// Renders an agent's state as the dialect's host would store it.
pub fn state_keys(dialect: Dialect, state: &SkillsState, agent: &AgentName) -> Map<String, Value> {
    let mut keys = session_keys(dialect, state, agent);
    if dialect == Dialect::Deepagents && state.snapshot().is_some() {
        let skills: Vec<Value> = state.visible(agent).map(|skill| metadata(skill)).collect();
        keys.insert("skills_metadata".to_owned(), json!(skills));
    }
    keys
}

/// Renders everything but the list of skills, which is long and rarely changes.
fn session_keys(dialect: Dialect, state: &SkillsState, agent: &AgentName) -> Map<String, Value> {
    match dialect {
        Dialect::Deepagents => deepagents(state, agent),
        Dialect::Trpc => trpc(state, agent),
        Dialect::Saa => saa(state, agent),
        Dialect::Skillbox | Dialect::Agentskills => skillbox(state, agent),
    }
}

/// Renders the keys whose values differ between two states; a removed key has the value null.
pub fn changed_keys(
    dialect: Dialect,
    before: &SkillsState,
    after: &SkillsState,
    agent: &AgentName,
) -> Map<String, Value> {
    let keys = if before.snapshot() == after.snapshot() {
        session_keys
    } else {
        state_keys
    };
    let (old, new) = (keys(dialect, before, agent), keys(dialect, after, agent));
    let removed = old
        .keys()
        .filter(|key| !new.contains_key(*key))
        .map(|key| (key.clone(), Value::Null));
    let changed = new.iter().filter(|(key, value)| old.get(*key) != Some(value));
    let changed = changed.map(|(key, value)| (key.clone(), value.clone()));
    changed.chain(removed).collect()
}

/// Before the first turn the keys are absent, because the host checks for their existence.
fn deepagents(state: &SkillsState, agent: &AgentName) -> Map<String, Value> {
    let mut keys = Map::new();
    let Some(snapshot) = state.snapshot() else { return keys };
    let loaded: Vec<&str> = state.loaded(agent).map(|loaded| loaded.skill.as_str()).collect();
    let resources: Map<String, Value> = loaded
        .iter()
        .filter_map(|name| snapshot.get(name))
        .filter_map(|skill| Some((skill.name.to_string(), resources(state, skill)?)))
        .collect();
    keys.insert("skills_loaded".to_owned(), json!(loaded));
    keys.insert("skill_resources".to_owned(), Value::Object(resources));
    keys
}

fn metadata(skill: &SkillView) -> Value {
    json!({
        "path": skill.path,
        "name": skill.name,
        "description": skill.description,
        "license": skill.license,
        "compatibility": skill.compatibility,
        "metadata": skill.metadata,
        "allowed_tools": skill.allowed_tools,
    })
}

fn resources(state: &SkillsState, skill: &SkillView) -> Option<Value> {
    let found = state.resources(&skill.name)?.iter().map(|resource| {
        let path = format!("{}/{}", skill.directory(), resource.path);
        json!({"path": path, "type": resource.kind, "skill_name": skill.name})
    });
    Some(found.collect())
}

/// All values are strings in this dialect: "1", "*", or an array serialised as JSON.
fn trpc(state: &SkillsState, agent: &AgentName) -> Map<String, Value> {
    let mut keys = Map::new();
    for loaded in state.loaded(agent) {
        keys.insert(format!("temp:skill:loaded:{}", loaded.skill), json!("1"));
    }
    for skill in state.visible(agent) {
        let value = match state.docs(agent, &skill.name) {
            None => continue,
            Some(DocSelection::All) => "*".to_owned(),
            Some(DocSelection::Chosen(docs)) => json!(docs).to_string(),
        };
        keys.insert(format!("temp:skill:docs:{}", skill.name), json!(value));
    }
    keys
}

fn saa(state: &SkillsState, agent: &AgentName) -> Map<String, Value> {
    let read: Vec<&str> = state.loaded(agent).map(|loaded| loaded.skill.as_str()).collect();
    let mut keys = Map::new();
    keys.insert("read_skills".to_owned(), json!(read));
    keys.insert("disabled_skills".to_owned(), json!(state.disabled()));
    keys
}

fn skillbox(state: &SkillsState, agent: &AgentName) -> Map<String, Value> {
    let loaded: Vec<Value> = state
        .loaded(agent)
        .map(|loaded| {
            let docs = state.docs(agent, &loaded.skill).cloned().unwrap_or_default();
            let mut entry = json!({"skill": loaded.skill, "mode": loaded.mode, "docs": docs});
            if let Some(arguments) = &loaded.arguments {
                entry["arguments"] = json!(arguments);
            }
            entry
        })
        .collect();
    let mut keys = Map::new();
    keys.insert("loaded".to_owned(), json!(loaded));
    keys.insert("disabled".to_owned(), json!(state.disabled()));
    keys
}
