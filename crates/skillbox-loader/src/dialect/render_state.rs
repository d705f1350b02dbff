//! Renders the state under the keys that a dialect's hosts use.

use serde_json::{Map, Value, json};

use super::dialects::Dialect;
use crate::agent::AgentName;
use crate::skill_view::SkillView;
use crate::state::{DocSelection, SkillsState};

/// Renders an agent's state under the keys under which the dialect's hosts store it.
pub fn render_state(dialect: Dialect, state: &SkillsState, agent: &AgentName) -> Map<String, Value> {
    let mut keys = render_state_without_skills(dialect, state, agent);
    if dialect == Dialect::Deepagents && state.snapshot().is_some() {
        let skills: Vec<Value> = state.visible(agent).map(|skill| render_metadata(skill)).collect();
        keys.insert("skills_metadata".to_owned(), json!(skills));
    }
    keys
}

/// Renders everything but the list of skills, which is long and rarely changes.
fn render_state_without_skills(dialect: Dialect, state: &SkillsState, agent: &AgentName) -> Map<String, Value> {
    match dialect {
        Dialect::Deepagents => render_deepagents(state, agent),
        Dialect::Trpc => render_trpc(state, agent),
        Dialect::Saa => render_saa(state, agent),
        Dialect::Skillbox | Dialect::Agentskills => render_skillbox(state, agent),
    }
}

/// Renders the keys whose values differ between two states; a removed key has the value null.
pub fn render_state_changes(
    dialect: Dialect,
    before: &SkillsState,
    after: &SkillsState,
    agent: &AgentName,
) -> Map<String, Value> {
    let render = if before.snapshot() == after.snapshot() {
        render_state_without_skills
    } else {
        render_state
    };
    let (old, new) = (render(dialect, before, agent), render(dialect, after, agent));
    let removed = old
        .keys()
        .filter(|key| !new.contains_key(*key))
        .map(|key| (key.clone(), Value::Null));
    let changed = new.iter().filter(|(key, value)| old.get(*key) != Some(value));
    let changed = changed.map(|(key, value)| (key.clone(), value.clone()));
    changed.chain(removed).collect()
}

/// Before the first turn the keys are absent, because the host checks for their existence.
fn render_deepagents(state: &SkillsState, agent: &AgentName) -> Map<String, Value> {
    let mut keys = Map::new();
    let Some(snapshot) = state.snapshot() else { return keys };
    let loaded: Vec<&str> = state.loaded(agent).map(|loaded| loaded.skill.as_str()).collect();
    let resources: Map<String, Value> = loaded
        .iter()
        .filter_map(|name| snapshot.get(name))
        .filter_map(|skill| Some((skill.name.to_string(), render_resources(state, skill)?)))
        .collect();
    keys.insert("skills_loaded".to_owned(), json!(loaded));
    keys.insert("skill_resources".to_owned(), Value::Object(resources));
    keys
}

fn render_metadata(skill: &SkillView) -> Value {
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

fn render_resources(state: &SkillsState, skill: &SkillView) -> Option<Value> {
    let found = state.resources(&skill.name)?.iter().map(|resource| {
        let path = format!("{}/{}", skill.directory(), resource.path);
        json!({"path": path, "type": resource.kind, "skill_name": skill.name})
    });
    Some(found.collect())
}

/// All values are strings in this dialect: "1", "*", or an array serialised as JSON.
fn render_trpc(state: &SkillsState, agent: &AgentName) -> Map<String, Value> {
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

fn render_saa(state: &SkillsState, agent: &AgentName) -> Map<String, Value> {
    let read: Vec<&str> = state.loaded(agent).map(|loaded| loaded.skill.as_str()).collect();
    let mut keys = Map::new();
    keys.insert("read_skills".to_owned(), json!(read));
    keys.insert("disabled_skills".to_owned(), json!(state.disabled()));
    keys
}

fn render_skillbox(state: &SkillsState, agent: &AgentName) -> Map<String, Value> {
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
