//! The step of the tour that discloses skills to an agent, layer by layer, and measures the size of the prompt.

use std::sync::Arc;

use serde_json::json;
use skillbox_model::ErrorCode;
use skillbox_repository::{Catalog, SkillReadError};
use skillbox_runtime::{
    AgentName, AgentOptions, AgentSession, AgentSpec, Dialect, HistoryCompleteness, Runtime, ToolCall,
};

use super::tour::{PromptLayer, Tour};
use crate::commands::agent_session::tool_failure;
use crate::failure::Failure;
use crate::render::{Page, Span, Tone, plural};

/// The skill that the agent loads, and the document that it selects.
const SKILL: &str = "csv-report";
const DOCUMENT: &str = "references/report.md";

/// The total size of all skills, in characters.
struct CatalogSize {
    bodies: usize,
    documents: usize,
    document_count: usize,
}

impl Tour<'_> {
    /// Has an agent load a skill and select a document, and measures its prompt each time.
    pub(super) fn disclose_to_agent(&mut self, runtime: Runtime, catalog: &Catalog) -> Result<(), Failure> {
        let purpose = "An agent first sees the description of each skill. Loading a skill adds its instructions to the \
                   prompt, selecting a document adds that document, and nothing else is added.";
        let command = format!(
            "skillbox call skill_load '{{\"skill\": \"{SKILL}\"}}' --session tour\n\
             skillbox call skill_select_docs --session tour \\\n    \
             '{{\"skill\": \"{SKILL}\", \"docs\": [\"{DOCUMENT}\"]}}'\n\
             skillbox prompt --session tour"
        );
        self.start_step("Disclose skills to an agent, layer by layer", &command, purpose)?;
        let size = catalog_size(catalog).map_err(|error| Failure::from_error(ErrorCode::SkillUnreadable, &error))?;
        let (layers, prompt) = measure_layers(runtime, catalog, &size)?;
        let disclosed: usize = layers.iter().map(|layer| layer.characters).sum();
        let total = layers[0].characters + size.bodies + size.documents;
        self.print(|page| {
            for line in prompt.lines().filter(|line| is_skill_line(line, catalog)) {
                page.labelled_summary(2, Span::plain("-"), 4, 1, line.trim_start_matches("- "));
            }
            page.blank_line();
            for (number, layer) in (1..).zip(&layers) {
                render_layer(
                    page,
                    &format!("{number} {}", layer.layer),
                    layer.characters,
                    &layer.description,
                );
            }
            render_layer(
                page,
                "  prompt",
                disclosed,
                &format!("instead of {} for everything", group_thousands(total)),
            );
        })?;
        self.record_layers(layers);
        Ok(())
    }
}

/// Measures the size of each layer, and returns the prompt with all layers.
fn measure_layers(
    runtime: Runtime,
    catalog: &Catalog,
    size: &CatalogSize,
) -> Result<(Vec<PromptLayer>, String), Failure> {
    let options = AgentOptions::new(Dialect::Skillbox);
    let session = AgentSession::open(Arc::new(runtime), options).map_err(|error| internal_failure(&error))?;
    let failure = |error| tool_failure(&error, &session);
    let agent = AgentName::default();
    session.before_agent(&AgentSpec::main()).map_err(failure)?;
    let prompt = || -> Result<String, Failure> {
        let section = session
            .modify_request(&agent, HistoryCompleteness::Complete)
            .map_err(failure)?;
        Ok(section.map(|section| section.text).unwrap_or_default())
    };
    let call = |tool: &str, arguments| session.call(&ToolCall::new(tool, arguments)).map_err(failure);
    let overview = prompt()?;
    call("skill_load", json!({"skill": SKILL}))?;
    let with_body = prompt()?;
    call("skill_select_docs", json!({"skill": SKILL, "docs": [DOCUMENT]}))?;
    let with_document = prompt()?;
    let sizes = [&overview, &with_body, &with_document].map(|prompt| prompt.chars().count());
    if sizes[0] == 0 || sizes[0] >= sizes[1] || sizes[1] >= sizes[2] {
        let message = format!("the prompt does not grow with each layer: {sizes:?} characters");
        return Err(Failure::new(ErrorCode::Internal, message));
    }
    let layer = |layer, characters, description| PromptLayer {
        layer,
        characters,
        description,
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
                "of one skill; {} characters in all {}",
                group_thousands(size.bodies),
                catalog.len()
            ),
        ),
        layer(
            "documents",
            sizes[2] - sizes[1],
            format!(
                "one document; {} characters in all {}",
                group_thousands(size.documents),
                size.document_count
            ),
        ),
    ];
    Ok((layers, with_document))
}

fn catalog_size(catalog: &Catalog) -> Result<CatalogSize, SkillReadError> {
    let mut size = CatalogSize {
        bodies: 0,
        documents: 0,
        document_count: 0,
    };
    for entry in catalog.skills() {
        let dir = entry.open()?;
        size.bodies += dir.read_skill_md()?.body.chars().count();
        for document in dir.docs()? {
            let text = dir.read_file(&document, 1 << 20)?;
            size.documents += String::from_utf8_lossy(&text).chars().count();
            size.document_count += 1;
        }
    }
    Ok(size)
}

/// Whether a line of the prompt lists a skill.
fn is_skill_line(line: &str, catalog: &Catalog) -> bool {
    let name = line.strip_prefix("- ").and_then(|rest| rest.split([':', ' ']).next());
    name.is_some_and(|name| catalog.get(name).is_some())
}

fn render_layer(page: &mut Page, layer: &str, characters: usize, description: &str) {
    let label = format!("{layer:<16}{:>7} characters", group_thousands(characters));
    page.labelled(2, Span::new(Tone::Name, label), 38, Tone::Dim, description);
}

/// A number with separated thousands.
fn group_thousands(number: usize) -> String {
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

fn internal_failure(error: &dyn std::error::Error) -> Failure {
    Failure::from_error(ErrorCode::Internal, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        let check = |number: usize, expected: &str| assert_eq!(group_thousands(number), expected);
        check(0, "0");
        check(999, "999");
        check(1_000, "1,000");
        check(1_234_567, "1,234,567");
    }
}
