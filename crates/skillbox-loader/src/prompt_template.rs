//! A host's own template for the prompt section.

/// A text with placeholders.
///
/// `{skills_list}` is required. `{skills_load_instructions}`, `{skills_locations}` and `{skills_load_warnings}` are
/// optional. Any other brace is plain text.
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
    Placeholder(Placeholder),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placeholder {
    Locations,
    LoadWarnings,
    List,
    LoadInstructions,
}

/// The texts that replace the placeholders.
pub(crate) struct TemplateValues<'t> {
    pub(crate) locations: &'t str,
    pub(crate) load_warnings: &'t str,
    pub(crate) list: &'t str,
    pub(crate) load_instructions: &'t str,
}

impl Placeholder {
    const ALL: [Self; 4] = [Self::Locations, Self::LoadWarnings, Self::List, Self::LoadInstructions];

    fn as_str(self) -> &'static str {
        match self {
            Self::Locations => "{skills_locations}",
            Self::LoadWarnings => "{skills_load_warnings}",
            Self::List => "{skills_list}",
            Self::LoadInstructions => "{skills_load_instructions}",
        }
    }
}

impl PromptTemplate {
    /// Parses a template.
    ///
    /// ```
    /// # use skillbox_loader::PromptTemplate;
    /// assert!(PromptTemplate::parse("Skills:\n{skills_list}\n{skills_load_instructions}").is_ok());
    /// assert_eq!(PromptTemplate::parse("Skills:").unwrap_err().placeholder, "{skills_list}");
    /// ```
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let required = Placeholder::List.as_str();
        if !text.contains(required) {
            return Err(TemplateError { placeholder: required });
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((at, placeholder)) = next_placeholder(rest) {
            parts.push(Part::Text(rest[..at].to_owned()));
            parts.push(Part::Placeholder(placeholder));
            rest = &rest[at + placeholder.as_str().len()..];
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Self { parts })
    }

    /// Replaces the placeholders. Inserted text is not searched for placeholders.
    pub(crate) fn fill(&self, values: &TemplateValues<'_>) -> String {
        let texts = self.parts.iter().map(|part| match part {
            Part::Text(text) => text.as_str(),
            Part::Placeholder(Placeholder::Locations) => values.locations,
            Part::Placeholder(Placeholder::LoadWarnings) => values.load_warnings,
            Part::Placeholder(Placeholder::List) => values.list,
            Part::Placeholder(Placeholder::LoadInstructions) => values.load_instructions,
        });
        texts.collect()
    }
}

/// Finds the first placeholder and its offset.
fn next_placeholder(text: &str) -> Option<(usize, Placeholder)> {
    let found = Placeholder::ALL
        .into_iter()
        .filter_map(|placeholder| text.find(placeholder.as_str()).map(|at| (at, placeholder)));
    found.min_by_key(|(at, _)| *at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_list_is_required() {
        let missing = |text: &str| PromptTemplate::parse(text).unwrap_err().placeholder;
        assert_eq!(missing("x"), "{skills_list}");
        assert_eq!(missing("{skills_locations}"), "{skills_list}");
        let template = PromptTemplate::parse(
            "a {x} {skills_locations}{skills_load_warnings}: {skills_list}. {skills_load_instructions}",
        )
        .unwrap();
        let values = TemplateValues {
            locations: "L {skills_list}",
            load_warnings: "",
            list: "S",
            load_instructions: "I",
        };
        assert_eq!(template.fill(&values), "a {x} L {skills_list}: S. I");
    }
}
