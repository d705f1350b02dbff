//! Turns the keys of frontmatter into the metadata of a skill.

use serde_json::{Map, Value};
use skillbox_model::SkillName;

use super::allowed_tools::{SPELLINGS, read_tools};
use super::findings::Findings;
use super::json::{key_text, spelled, to_json};
use super::source::Frontmatter;
use crate::name_rules::{name_faults, normalise};
use crate::node::{Content, Node};
use crate::parse_code::ParseCode;
use crate::skill_meta::{SkillMeta, Steering};
use crate::strict::python::strip;

const MAX_DESCRIPTION_CHARS: usize = 1024;
const MAX_COMPATIBILITY_CHARS: usize = 500;

/// Reads the fields; nothing where the skill cannot be used.
pub(crate) fn read_fields(
    frontmatter: &Frontmatter<'_>,
    directory: &str,
    findings: &mut Findings<'_>,
) -> Option<SkillMeta> {
    let empty = Vec::new();
    let pairs = match frontmatter.root.as_ref().map(|root| (root, &root.content)) {
        None => &empty,
        Some((_, Content::Mapping(pairs))) => pairs,
        Some((root, _)) if root.is_null() => &empty,
        Some((root, _)) => {
            let message = format!("the frontmatter is {}, not a mapping of keys to values", root.kind());
            let hint = "write one `key: value` on each line";
            findings.add(ParseCode::NotAMapping, frontmatter.in_file(root.start()), message, hint);
            return None;
        }
    };
    let reader = Reader { frontmatter, pairs };
    let name = reader.name(directory, findings);
    let description = reader.description(findings);
    Some(SkillMeta {
        name: name?,
        description: description?,
        license: reader.text("license", findings).map(|(text, _)| text.into()),
        compatibility: reader.compatibility(findings),
        metadata: reader.metadata(findings),
        allowed_tools: reader.allowed_tools(findings),
        steering: reader.steering(findings),
        extra: reader.extra(findings),
    })
}

/// Looks up keys and reports what is odd about their values.
struct Reader<'r, 's> {
    frontmatter: &'r Frontmatter<'s>,
    pairs: &'r [(Node<'s>, Node<'s>)],
}

/// Keys that have a field of their own, besides those of the allowed tools.
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

impl<'r, 's> Reader<'r, 's> {
    fn get(&self, key: &str) -> Option<&'r Node<'s>> {
        let pair = self.pairs.iter().rfind(|(name, _)| name.as_text() == Some(key));
        pair.map(|(_, value)| value)
    }

    fn add(
        &self,
        findings: &mut Findings<'_>,
        code: ParseCode,
        node: &Node<'_>,
        message: String,
        hint: impl Into<super::findings::Hint>,
    ) {
        findings.add(code, self.frontmatter.in_file(node.start()), message, hint);
    }

    fn name(&self, directory: &str, findings: &mut Findings<'_>) -> Option<SkillName> {
        let (name, node) = self.required("name", ParseCode::MissingName, findings)?;
        let name = match SkillName::parse(name) {
            Ok(name) => name,
            Err(error) => {
                let hint = "a name is lower-case letters, digits and single hyphens";
                self.add(findings, ParseCode::UnsafeName, node, error.to_string(), hint);
                return None;
            }
        };
        let faults = name_faults(name.as_str());
        if !faults.is_empty() {
            let reasons: Vec<String> = faults.iter().map(ToString::to_string).collect();
            let message = format!("the name {:?} breaks the rules: {}", name.as_str(), reasons.join("; "));
            let hint = "a name is at most 64 lower-case letters, digits and single hyphens";
            self.add(findings, ParseCode::NameBreaksRules, node, message, hint);
        }
        if !directory.is_empty() && normalise(directory) != normalise(name.as_str()) {
            let message = format!(
                "the name {:?} is not that of the directory, {directory:?}",
                name.as_str()
            );
            let hint = "rename one of them; the skill is known by the name in the file";
            self.add(findings, ParseCode::NameMismatch, node, message, hint);
        }
        Some(name)
    }

    fn description(&self, findings: &mut Findings<'_>) -> Option<Box<str>> {
        let (text, node) = self.required("description", ParseCode::MissingDescription, findings)?;
        Some(self.cut(
            text,
            MAX_DESCRIPTION_CHARS,
            "description",
            ParseCode::DescriptionTooLong,
            node,
            findings,
        ))
    }

    fn compatibility(&self, findings: &mut Findings<'_>) -> Option<Box<str>> {
        let (text, node) = self.text("compatibility", findings)?;
        Some(self.cut(
            text,
            MAX_COMPATIBILITY_CHARS,
            "compatibility",
            ParseCode::CompatibilityTooLong,
            node,
            findings,
        ))
    }

    fn cut(
        &self,
        mut text: String,
        limit: usize,
        field: &str,
        code: ParseCode,
        node: &Node<'_>,
        findings: &mut Findings<'_>,
    ) -> Box<str> {
        // Bytes are an upper bound for characters, and nearly always enough to know.
        if text.len() > limit
            && let Some((end, _)) = text.char_indices().nth(limit)
        {
            let length = text.chars().count();
            let message = format!("the {field} has {length} characters; only the first {limit} are kept");
            self.add(
                findings,
                code,
                node,
                message,
                format!("shorten it to {limit} characters"),
            );
            text.truncate(end);
        }
        text.into_boxed_str()
    }

    /// A text that the skill cannot do without.
    fn required(&self, key: &str, code: ParseCode, findings: &mut Findings<'_>) -> Option<(String, &'r Node<'s>)> {
        if let Some(found) = self.text(key, findings) {
            return Some(found);
        }
        match self.get(key) {
            Some(node) => {
                let message = format!("the {key} is empty");
                self.add(findings, code, node, message, format!("give the skill a {key}"));
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
                findings.add(code, self.frontmatter.in_file(offset), message, hint);
            }
        }
        None
    }

    /// A field that should be text, without blanks around it; nothing where it is null or blank.
    fn text(&self, key: &str, findings: &mut Findings<'_>) -> Option<(String, &'r Node<'s>)> {
        let node = self.get(key).filter(|node| !node.is_null())?;
        let text = match node.as_text() {
            Some(text) => strip(text).to_owned(),
            None => {
                let text = self.source_text(node);
                let message = format!(
                    "`{key}` should be text, not {}; it was read as `{}`",
                    node.kind(),
                    shown(&text)
                );
                self.add(findings, ParseCode::NotText, node, message, "put the value in quotes");
                text
            }
        };
        (!text.is_empty()).then_some((text, node))
    }

    /// What the author wrote, on one line.
    fn source_text(&self, node: &Node<'_>) -> String {
        let written = self.frontmatter.text.get(node.span()).unwrap_or_default();
        match &node.content {
            Content::Sequence(items) if !written.starts_with('[') => {
                let items: Vec<String> = items.iter().map(spelled).collect();
                items.join(", ")
            }
            _ => {
                let lines: Vec<&str> = written.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
                lines.join(" ")
            }
        }
    }

    fn metadata(&self, findings: &mut Findings<'_>) -> Vec<(Box<str>, Box<str>)> {
        match self.get("metadata") {
            None => Vec::new(),
            Some(node) if node.is_null() => Vec::new(),
            Some(Node {
                content: Content::Mapping(pairs),
                ..
            }) => {
                let spell = |node: &Node<'_>| spelled(node).into_boxed_str();
                pairs.iter().map(|(key, value)| (spell(key), spell(value))).collect()
            }
            Some(node) => {
                let message = format!("the metadata is {}, not a mapping, and is left out", node.kind());
                let hint = "write `key: value` lines below `metadata:`";
                self.add(findings, ParseCode::MetadataNotAMapping, node, message, hint);
                Vec::new()
            }
        }
    }

    fn allowed_tools(&self, findings: &mut Findings<'_>) -> Option<Vec<Box<str>>> {
        let node = self.get(self.tools_key()?)?;
        let tools = read_tools(node);
        for (offset, message) in tools.faults {
            let hint = "list the tools, or write their names with blanks between them";
            findings.add(ParseCode::AllowedTools, self.frontmatter.in_file(offset), message, hint);
        }
        tools.names
    }

    /// The spelling that counts.
    fn tools_key(&self) -> Option<&'static str> {
        SPELLINGS.into_iter().find(|key| self.get(key).is_some())
    }

    fn steering(&self, findings: &mut Findings<'_>) -> Option<Box<Steering>> {
        let mut text = |key| self.text(key, findings).map(|(text, _)| text.into_boxed_str());
        let (model, context) = (text("model"), text("context"));
        let steering = Steering {
            disable_model_invocation: self.boolean("disable-model-invocation", findings),
            user_invocable: self.boolean("user-invocable", findings),
            argument_hint: self.argument_hint(),
            model,
            context,
            hooks: self.get("hooks").filter(|node| !node.is_null()).map(to_json),
        };
        (steering != Steering::default()).then(|| Box::new(steering))
    }

    /// Hints are customarily written in brackets, `[file]`, which makes them lists by mistake: nothing is odd then.
    fn argument_hint(&self) -> Option<Box<str>> {
        let node = self.get("argument-hint").filter(|node| !node.is_null())?;
        let text = node
            .as_text()
            .map_or_else(|| self.source_text(node), |text| strip(text).to_owned());
        (!text.is_empty()).then(|| text.into_boxed_str())
    }

    fn boolean(&self, key: &str, findings: &mut Findings<'_>) -> Option<bool> {
        let node = self.get(key).filter(|node| !node.is_null())?;
        let text = node.as_text().map(|text| text.trim().to_ascii_lowercase());
        match text.as_deref() {
            Some("true" | "yes" | "on") => Some(true),
            Some("false" | "no" | "off") => Some(false),
            _ => {
                let message = format!("`{key}` should be true or false, and is left out");
                self.add(findings, ParseCode::NotABoolean, node, message, ());
                None
            }
        }
    }

    fn extra(&self, findings: &mut Findings<'_>) -> Option<Box<Map<String, Value>>> {
        let tools_key = self.tools_key();
        let mut extra = Map::new();
        for (key, value) in self.pairs {
            match key.as_text() {
                Some(text) if KNOWN_KEYS.contains(&text) || tools_key == Some(text) => continue,
                Some(text) if SPELLINGS.contains(&text) => {
                    let message = format!(
                        "`{text}` is not read, because `{}` is there",
                        tools_key.unwrap_or_default()
                    );
                    self.add(findings, ParseCode::AllowedTools, key, message, "remove one of them");
                }
                _ => {}
            }
            extra.insert(key_text(key), to_json(value));
        }
        (!extra.is_empty()).then(|| Box::new(extra))
    }
}

/// A text short enough for a message.
fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(80).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
