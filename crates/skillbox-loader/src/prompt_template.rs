//! A host's own template for the prompt section.

/// A text with placeholders.
///
/// `{skills_locations}` and `{skills_list}` are required, `{skills_load_warnings}` is optional. Any other brace is plain
/// text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptTemplate {
    parts: Vec<Part>,
}

/// A text that is not a valid template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the prompt template lacks the placeholder `{placeholder}`")]
pub struct TemplateError {
    /// The missing placeholder.
    pub placeholder: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// An index into [`PLACEHOLDERS`].
    Placeholder(usize),
}

const PLACEHOLDERS: [&str; 3] = ["{skills_locations}", "{skills_load_warnings}", "{skills_list}"];

impl PromptTemplate {
    /// Parses a template.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        for placeholder in [PLACEHOLDERS[0], PLACEHOLDERS[2]] {
            if !text.contains(placeholder) {
                return Err(TemplateError { placeholder });
            }
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((at, index)) = next_placeholder(rest) {
            parts.push(Part::Text(rest[..at].to_owned()));
            parts.push(Part::Placeholder(index));
            rest = &rest[at + PLACEHOLDERS[index].len()..];
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Self { parts })
    }

    /// Replaces the placeholders. Inserted text is not searched for placeholders.
    pub(crate) fn fill(&self, locations: &str, warnings: &str, list: &str) -> String {
        let values = [locations, warnings, list];
        let texts = self.parts.iter().map(|part| match part {
            Part::Text(text) => text.as_str(),
            Part::Placeholder(index) => values[*index],
        });
        texts.collect()
    }
}

/// Finds the first placeholder: its offset and its index.
fn next_placeholder(text: &str) -> Option<(usize, usize)> {
    let found = PLACEHOLDERS
        .iter()
        .enumerate()
        .filter_map(|(index, name)| text.find(name).map(|at| (at, index)));
    found.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_needs_its_placeholders() {
        let missing = |text: &str| PromptTemplate::parse(text).unwrap_err().placeholder;
        assert_eq!(missing("x"), "{skills_locations}");
        assert_eq!(missing("{skills_locations}"), "{skills_list}");
        let template = PromptTemplate::parse("a {x} {skills_locations}{skills_load_warnings}: {skills_list}.").unwrap();
        assert_eq!(template.fill("L {skills_list}", "", "S"), "a {x} L {skills_list}: S.");
    }
}
