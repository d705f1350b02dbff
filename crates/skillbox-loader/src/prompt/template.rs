//! A frame for the prompt section that the host brings along.

/// A text with places for what we know.
///
/// `{skills_locations}` and `{skills_list}` must stand in it, `{skills_load_warnings}` may. Other braces are
/// text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptTemplate {
    parts: Vec<Part>,
}

/// Why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the prompt template has no place for `{slot}`")]
pub struct TemplateError {
    /// The place that is missing.
    pub slot: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Slot(usize),
}

const SLOTS: [&str; 3] = ["{skills_locations}", "{skills_load_warnings}", "{skills_list}"];

impl PromptTemplate {
    /// Reads a template.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        for slot in [SLOTS[0], SLOTS[2]] {
            if !text.contains(slot) {
                return Err(TemplateError { slot });
            }
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((at, slot)) = next_slot(rest) {
            parts.push(Part::Text(rest[..at].to_owned()));
            parts.push(Part::Slot(slot));
            rest = &rest[at + SLOTS[slot].len()..];
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Self { parts })
    }

    /// Fills the places. What is filled in is not searched for places again.
    pub(crate) fn fill(&self, locations: &str, warnings: &str, list: &str) -> String {
        let values = [locations, warnings, list];
        let texts = self.parts.iter().map(|part| match part {
            Part::Text(text) => text.as_str(),
            Part::Slot(slot) => values[*slot],
        });
        texts.collect()
    }
}

fn next_slot(text: &str) -> Option<(usize, usize)> {
    let found = SLOTS
        .iter()
        .enumerate()
        .filter_map(|(slot, name)| text.find(name).map(|at| (at, slot)));
    found.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_needs_its_places() {
        let missing = |text: &str| PromptTemplate::parse(text).unwrap_err().slot;
        assert_eq!(missing("x"), "{skills_locations}");
        assert_eq!(missing("{skills_locations}"), "{skills_list}");
        let template = PromptTemplate::parse("a {x} {skills_locations}{skills_load_warnings}: {skills_list}.").unwrap();
        assert_eq!(template.fill("L {skills_list}", "", "S"), "a {x} L {skills_list}: S.");
    }
}
