//! Converts the keys of the frontmatter to the metadata of a skill.

use serde_json::{Map, Value};
use skillbox_model::SkillName;

use super::allowed_tools::{ALLOWED_TOOLS_KEYS, read_allowed_tools};
use super::file_diagnostics::FileDiagnostics;
use super::frontmatter::Frontmatter;
use super::json::{key_text, to_json, to_source_text};
use super::metadata_fallback::MetadataFallback;
use super::name_rules::{find_name_violations, normalize_name};
use super::python_text::python_strip;
use super::skill_meta::{InvocationSettings, SkillMeta};
use super::yaml::{Content, Node};
use crate::diagnostics::{Hint, ParseCode};

const MAX_DESCRIPTION_CHARS: usize = 1024;
const MAX_COMPATIBILITY_CHARS: usize = 500;

/// Reads the fields; `None` if the skill cannot be used.
pub(super) fn read_fields(
    frontmatter: &Frontmatter<'_>,
    directory: &str,
    fallback: Option<MetadataFallback<'_>>,
    diagnostics: &mut FileDiagnostics<'_>,
) -> Option<SkillMeta> {
    let empty = Vec::new();
    let pairs = match frontmatter.root.as_ref().map(|root| (root, &root.content)) {
        None => &empty,
        Some((_, Content::Mapping(pairs))) => pairs,
        Some((root, _)) if root.is_null() => &empty,
        Some((root, _)) => {
            let message = format!("the frontmatter is {}, not a mapping of keys to values", root.kind());
            let hint = "write one `key: value` on each line";
            diagnostics.add(
                ParseCode::NotAMapping,
                frontmatter.file_offset(root.start()),
                message,
                hint,
            );
            return None;
        }
    };
    let reader = FieldReader {
        frontmatter,
        pairs,
        fallback,
    };
    let name = reader.read_name(directory, diagnostics);
    let description = reader.read_description(diagnostics);
    Some(SkillMeta {
        name: name?,
        description: description?,
        license: reader.read_text("license", diagnostics).map(|(text, _)| text.into()),
        compatibility: reader.read_compatibility(diagnostics),
        metadata: reader.read_metadata(diagnostics),
        allowed_tools: reader.read_allowed_tools(diagnostics),
        invocation: reader.read_invocation(diagnostics),
        extra: reader.read_extra(diagnostics),
    })
}

/// Reads the values of keys and reports the odd ones.
struct FieldReader<'r, 's> {
    frontmatter: &'r Frontmatter<'s>,
    pairs: &'r [(Node<'s>, Node<'s>)],
    fallback: Option<MetadataFallback<'r>>,
}

/// Keys with a field of their own, except those of the allowed tools.
const KNOWN_KEYS: [&str; 11] = [
    "name",
    "description",
    "license",
    "compatibility",
    "metadata",
    "disable-model-invocation",
    "user-invocable",
    "argument-hint",
    "model",
    "context",
    "hooks",
];

impl<'r, 's> FieldReader<'r, 's> {
    fn get(&self, key: &str) -> Option<&'r Node<'s>> {
        let pair = self.pairs.iter().rfind(|(name, _)| name.as_text() == Some(key));
        pair.map(|(_, value)| value)
    }

    fn report(
        &self,
        diagnostics: &mut FileDiagnostics<'_>,
        code: ParseCode,
        node: &Node<'_>,
        message: String,
        hint: impl Into<Hint>,
    ) {
        self.report_at(diagnostics, code, node.start(), message, hint);
    }

    /// Reports something about the value that begins at an offset of the frontmatter.
    fn report_at(
        &self,
        diagnostics: &mut FileDiagnostics<'_>,
        code: ParseCode,
        offset: usize,
        message: String,
        hint: impl Into<Hint>,
    ) {
        diagnostics.add(code, self.frontmatter.file_offset(offset), message, hint);
    }

    fn read_name(&self, directory: &str, diagnostics: &mut FileDiagnostics<'_>) -> Option<SkillName> {
        let (name, start) = self.read_required("name", ParseCode::MissingName, diagnostics)?;
        let name = match SkillName::parse(name) {
            Ok(name) => name,
            Err(error) => {
                let hint = "a name is lower-case letters, digits and single hyphens";
                self.report_at(diagnostics, ParseCode::UnsafeName, start, error.to_string(), hint);
                return None;
            }
        };
        let violations = find_name_violations(name.as_str());
        if !violations.is_empty() {
            let reasons: Vec<String> = violations.iter().map(ToString::to_string).collect();
            let message = format!("the name {:?} breaks the rules: {}", name.as_str(), reasons.join("; "));
            let hint = "a name is at most 64 lower-case letters, digits and single hyphens";
            self.report_at(diagnostics, ParseCode::NameBreaksRules, start, message, hint);
        }
        if !directory.is_empty() && normalize_name(directory) != normalize_name(name.as_str()) {
            let message = format!(
                "the name {:?} differs from the directory name {directory:?}",
                name.as_str()
            );
            let hint = "rename one of them; the skill uses the name in the file";
            self.report_at(diagnostics, ParseCode::NameMismatch, start, message, hint);
        }
        Some(name)
    }

    fn read_description(&self, diagnostics: &mut FileDiagnostics<'_>) -> Option<Box<str>> {
        let (text, start) = self.read_required("description", ParseCode::MissingDescription, diagnostics)?;
        Some(self.truncate(
            text,
            MAX_DESCRIPTION_CHARS,
            "description",
            ParseCode::DescriptionTooLong,
            start,
            diagnostics,
        ))
    }

    fn read_compatibility(&self, diagnostics: &mut FileDiagnostics<'_>) -> Option<Box<str>> {
        let (text, node) = self.read_text("compatibility", diagnostics)?;
        Some(self.truncate(
            text,
            MAX_COMPATIBILITY_CHARS,
            "compatibility",
            ParseCode::CompatibilityTooLong,
            node.start(),
            diagnostics,
        ))
    }

    fn truncate(
        &self,
        mut text: String,
        limit: usize,
        field: &str,
        code: ParseCode,
        start: usize,
        diagnostics: &mut FileDiagnostics<'_>,
    ) -> Box<str> {
        // The number of bytes is an upper bound for the number of characters.
        if text.len() > limit
            && let Some((end, _)) = text.char_indices().nth(limit)
        {
            let length = text.chars().count();
            let message = format!("the {field} has {length} characters; only the first {limit} are used");
            let hint = format!("shorten it to {limit} characters");
            self.report_at(diagnostics, code, start, message, hint);
            text.truncate(end);
        }
        text.into_boxed_str()
    }

    /// Reads a text field that the skill must have, and returns it with its offset.
    fn read_required(
        &self,
        key: &str,
        code: ParseCode,
        diagnostics: &mut FileDiagnostics<'_>,
    ) -> Option<(String, usize)> {
        if let Some((text, node)) = self.read_text(key, diagnostics) {
            return Some((text, node.start()));
        }
        let start = self.get(key).map_or(0, Node::start);
        if let Some(text) = self.read_fallback(key) {
            let message = format!(
                "the frontmatter has no {key}; it was read as `{}`",
                truncate_for_message(&text)
            );
            let hint = format!("add a line `{key}: …`");
            self.report_at(diagnostics, ParseCode::MetadataFallback, start, message, hint);
            return Some((text, start));
        }
        match self.get(key) {
            Some(node) => {
                let message = format!("the {key} is empty");
                self.report(diagnostics, code, node, message, format!("give the skill a {key}"));
            }
            None => {
                let similar = self.pairs.iter().find_map(|(name, _)| {
                    let text = name.as_text()?;
                    text.trim().eq_ignore_ascii_case(key).then_some((name, text))
                });
                let (offset, hint) = match similar {
                    Some((node, text)) => (node.start(), format!("write the key as `{key}`, not as `{text}`")),
                    None => (0, format!("add a line `{key}: …`")),
                };
                let message = format!("the frontmatter has no {key}");
                diagnostics.add(code, self.frontmatter.file_offset(offset), message, hint);
            }
        }
        None
    }

    /// The value that the directory or the body provides for a missing field.
    fn read_fallback(&self, key: &str) -> Option<String> {
        match key {
            "name" => self.fallback?.name(),
            _ => self.fallback?.description(),
        }
    }

    /// Reads a text field without surrounding blanks; `None` if it is null or blank.
    fn read_text(&self, key: &str, diagnostics: &mut FileDiagnostics<'_>) -> Option<(String, &'r Node<'s>)> {
        let node = self.get(key).filter(|node| !node.is_null())?;
        let text = match node.as_text() {
            Some(text) => python_strip(text).to_owned(),
            None => {
                let text = self.source_text(node);
                let message = format!(
                    "`{key}` should be text, not {}; it was read as `{}`",
                    node.kind(),
                    truncate_for_message(&text)
                );
                self.report(
                    diagnostics,
                    ParseCode::NotText,
                    node,
                    message,
                    "put the value in quotes",
                );
                text
            }
        };
        (!text.is_empty()).then_some((text, node))
    }

    /// The source text of a value, on one line.
    fn source_text(&self, node: &Node<'_>) -> String {
        let written = self.frontmatter.text.get(node.span()).unwrap_or_default();
        match &node.content {
            Content::Sequence(items) if !written.starts_with('[') => {
                let items: Vec<String> = items.iter().map(to_source_text).collect();
                items.join(", ")
            }
            _ => {
                let lines: Vec<&str> = written.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
                lines.join(" ")
            }
        }
    }

    fn read_metadata(&self, diagnostics: &mut FileDiagnostics<'_>) -> Vec<(Box<str>, Box<str>)> {
        match self.get("metadata") {
            None => Vec::new(),
            Some(node) if node.is_null() => Vec::new(),
            Some(Node {
                content: Content::Mapping(pairs),
                ..
            }) => {
                let to_text = |node: &Node<'_>| to_source_text(node).into_boxed_str();
                pairs
                    .iter()
                    .map(|(key, value)| (to_text(key), to_text(value)))
                    .collect()
            }
            Some(node) => {
                let message = format!("the metadata is {}, not a mapping, and is ignored", node.kind());
                let hint = "write `key: value` lines below `metadata:`";
                self.report(diagnostics, ParseCode::MetadataNotAMapping, node, message, hint);
                Vec::new()
            }
        }
    }

    fn read_allowed_tools(&self, diagnostics: &mut FileDiagnostics<'_>) -> Option<Vec<Box<str>>> {
        let node = self.get(self.allowed_tools_key()?)?;
        let tools = read_allowed_tools(node);
        for (offset, message) in tools.errors {
            let hint = "write a list of tools, or their names separated by blanks";
            diagnostics.add(
                ParseCode::AllowedTools,
                self.frontmatter.file_offset(offset),
                message,
                hint,
            );
        }
        tools.names
    }

    /// The key from which the allowed tools are read.
    fn allowed_tools_key(&self) -> Option<&'static str> {
        ALLOWED_TOOLS_KEYS.into_iter().find(|key| self.get(key).is_some())
    }

    fn read_invocation(&self, diagnostics: &mut FileDiagnostics<'_>) -> Option<Box<InvocationSettings>> {
        let mut text = |key| self.read_text(key, diagnostics).map(|(text, _)| text.into_boxed_str());
        let (model, context) = (text("model"), text("context"));
        let invocation = InvocationSettings {
            disable_model_invocation: self.read_boolean("disable-model-invocation", diagnostics),
            user_invocable: self.read_boolean("user-invocable", diagnostics),
            argument_hint: self.read_argument_hint(),
            model,
            context,
            hooks: self.get("hooks").filter(|node| !node.is_null()).map(to_json),
        };
        (invocation != InvocationSettings::default()).then(|| Box::new(invocation))
    }

    /// Authors commonly write hints in brackets, `[file]`, which YAML reads as a list. This is accepted without a
    /// diagnostic.
    fn read_argument_hint(&self) -> Option<Box<str>> {
        let node = self.get("argument-hint").filter(|node| !node.is_null())?;
        let text = node
            .as_text()
            .map_or_else(|| self.source_text(node), |text| python_strip(text).to_owned());
        (!text.is_empty()).then(|| text.into_boxed_str())
    }

    fn read_boolean(&self, key: &str, diagnostics: &mut FileDiagnostics<'_>) -> Option<bool> {
        let node = self.get(key).filter(|node| !node.is_null())?;
        let text = node.as_text().map(|text| text.trim().to_ascii_lowercase());
        match text.as_deref() {
            Some("true" | "yes" | "on") => Some(true),
            Some("false" | "no" | "off") => Some(false),
            _ => {
                let message = format!("`{key}` should be true or false, and is ignored");
                self.report(diagnostics, ParseCode::NotABoolean, node, message, ());
                None
            }
        }
    }

    fn read_extra(&self, diagnostics: &mut FileDiagnostics<'_>) -> Option<Box<Map<String, Value>>> {
        let tools_key = self.allowed_tools_key();
        let mut extra = Map::new();
        for (key, value) in self.pairs {
            match key.as_text() {
                Some(text) if KNOWN_KEYS.contains(&text) || tools_key == Some(text) => continue,
                Some(text) if ALLOWED_TOOLS_KEYS.contains(&text) => {
                    let message = format!(
                        "`{text}` is ignored, because `{}` is present",
                        tools_key.unwrap_or_default()
                    );
                    self.report(diagnostics, ParseCode::AllowedTools, key, message, "remove one of them");
                }
                _ => {}
            }
            extra.insert(key_text(key), to_json(value));
        }
        (!extra.is_empty()).then(|| Box::new(extra))
    }
}

/// Truncates a text for use in a message.
fn truncate_for_message(text: &str) -> String {
    let mut truncated: String = text.chars().take(80).collect();
    if truncated.len() < text.len() {
        truncated.push('…');
    }
    truncated
}
