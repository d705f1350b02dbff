//! The step of the tour that shows what an agent is told of skills, layer by layer, and what that costs.

use std::sync::Arc;

use serde::Serialize;
use serde_json::json;
use skillbox_model::ErrorCode;
use skillbox_repository::{Catalog, SkillReadError};
use skillbox_runtime::{AgentName, AgentOptions, AgentSession, AgentStart, Dialect, History, Runtime, ToolCall};

use super::agent::refused;
use super::demo::Tour;
use crate::failure::Failure;
use crate::render::{Page, Span, Tone, plural};

/// The skill that the tour's agent loads, and the document that it chooses.
const SKILL: &str = "csv-report";
const DOCUMENT: &str = "references/report.md";

/// What one layer adds to the prompt.
#[derive(Serialize)]
pub(super) struct Layer {
    layer: &'static str,
    characters: usize,
    #[serde(skip)]
    about: String,
}

/// Characters of everything that the skills could tell.
struct Volume {
    bodies: usize,
    documents: usize,
    document_count: usize,
}

impl Tour<'_> {
    /// Lets an agent load a skill and choose a document, and measures its prompt each time.
    pub(super) fn disclose(&mut self, runtime: Runtime, catalog: &Catalog) -> Result<(), Failure> {
        let why = "An agent first sees what each skill is for. The instructions come when it loads a skill, a document \
                   when it chooses it; nothing else enters its prompt.";
        let command = format!(
            "skillbox call skill_load '{{\"skill\": \"{SKILL}\"}}' --session tour\n\
             skillbox call skill_select_docs --session tour \\\n    \
             '{{\"skill\": \"{SKILL}\", \"docs\": [\"{DOCUMENT}\"]}}'\n\
             skillbox prompt --session tour"
        );
        self.step("Give them to an agent, layer by layer", &command, why)?;
        let volume = volume(catalog).map_err(|error| Failure::from_error(ErrorCode::SkillUnreadable, &error))?;
        let (layers, prompt) = layers(runtime, catalog, &volume)?;
        let shown: usize = layers.iter().map(|layer| layer.characters).sum();
        let all = layers[0].characters + volume.bodies + volume.documents;
        self.tell(|page| {
            for line in prompt.lines().filter(|line| is_entry(line, catalog)) {
                page.summary(2, Span::plain("-"), 4, 1, line.trim_start_matches("- "));
            }
            page.gap();
            for (number, layer) in (1..).zip(&layers) {
                table_row(
                    page,
                    &format!("{number} {}", layer.layer),
                    layer.characters,
                    &layer.about,
                );
            }
            table_row(
                page,
                "  prompt",
                shown,
                &format!("instead of {} with everything in it", grouped(all)),
            );
        })?;
        self.keep_layers(layers);
        Ok(())
    }
}

/// Each layer with its size, and the prompt that they make together.
fn layers(runtime: Runtime, catalog: &Catalog, volume: &Volume) -> Result<(Vec<Layer>, String), Failure> {
    let options = AgentOptions::new(Dialect::Skillbox);
    let session = AgentSession::open(Arc::new(runtime), options).map_err(|error| internal(&error))?;
    let told = |error| refused(&error, &session);
    let agent = AgentName::default();
    session.before_agent(&AgentStart::main()).map_err(told)?;
    let prompt = || -> Result<String, Failure> {
        let section = session.modify_request(&agent, History::Whole).map_err(told)?;
        Ok(section.map(|section| section.text).unwrap_or_default())
    };
    let call = |tool: &str, arguments| session.call(&ToolCall::new(tool, arguments)).map_err(told);
    let overview = prompt()?;
    call("skill_load", json!({"skill": SKILL}))?;
    let with_body = prompt()?;
    call("skill_select_docs", json!({"skill": SKILL, "docs": [DOCUMENT]}))?;
    let with_document = prompt()?;
    let sizes = [&overview, &with_body, &with_document].map(|prompt| prompt.chars().count());
    if sizes[0] == 0 || sizes[0] >= sizes[1] || sizes[1] >= sizes[2] {
        let message = format!("the layers of a prompt do not add up: {sizes:?} characters");
        return Err(Failure::new(ErrorCode::Internal, message));
    }
    let layer = |layer, characters, about| Layer {
        layer,
        characters,
        about,
    };
    let layers = vec![
        layer(
            "overview",
            sizes[0],
            format!("{}, and how to use them", plural(catalog.len(), "skill")),
        ),
        layer(
            "instructions",
            sizes[1] - sizes[0],
            format!(
                "one skill, of {} characters in {}",
                grouped(volume.bodies),
                catalog.len()
            ),
        ),
        layer(
            "documents",
            sizes[2] - sizes[1],
            format!(
                "one, of {} characters in {}",
                grouped(volume.documents),
                volume.document_count
            ),
        ),
    ];
    Ok((layers, with_document))
}

fn volume(catalog: &Catalog) -> Result<Volume, SkillReadError> {
    let mut volume = Volume {
        bodies: 0,
        documents: 0,
        document_count: 0,
    };
    for entry in catalog.skills() {
        let dir = entry.open()?;
        volume.bodies += dir.instructions()?.body.chars().count();
        for document in dir.docs()? {
            let text = dir.read(&document, 1 << 20)?;
            volume.documents += String::from_utf8_lossy(&text).chars().count();
            volume.document_count += 1;
        }
    }
    Ok(volume)
}

/// Whether a line of the prompt lists a skill.
fn is_entry(line: &str, catalog: &Catalog) -> bool {
    let name = line.strip_prefix("- ").and_then(|rest| rest.split([':', ' ']).next());
    name.is_some_and(|name| catalog.get(name).is_some())
}

fn table_row(page: &mut Page, layer: &str, characters: usize, about: &str) {
    let label = format!("{layer:<16}{:>7} characters", grouped(characters));
    page.beside(2, Span::new(Tone::Name, label), 38, Tone::Dim, about);
}

/// A number with its thousands set apart.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn internal(error: &dyn std::error::Error) -> Failure {
    Failure::from_error(ErrorCode::Internal, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        let check = |number: usize, expected: &str| assert_eq!(grouped(number), expected);
        check(0, "0");
        check(999, "999");
        check(1_000, "1,000");
        check(1_234_567, "1,234,567");
    }
}
