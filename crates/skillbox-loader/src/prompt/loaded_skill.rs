//! Renders the texts of loaded skills.

use std::fmt::Write as _;

use crate::sanitize::{escape_closing_tag, sanitize_markdown_line, sanitize_xml_line};

/// The texts of a loaded skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoadedSkillText {
    pub(crate) name: String,
    pub(crate) directory: String,
    /// Its instructions, or why they can no longer be read.
    pub(crate) instructions: Result<String, String>,
    pub(crate) allowed_tools: Vec<String>,
    pub(crate) docs: Vec<PromptDoc>,
}

/// The text of a selected document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PromptDoc {
    pub(crate) path: String,
    pub(crate) text: String,
    /// Size of the whole document, if `text` is only its beginning.
    pub(crate) truncated_from: Option<u64>,
}

const SKILL_TAG: &str = "skill_content";
const DOC_TAG: &str = "skill_doc";

/// Renders a loaded skill between tags that its texts cannot close.
pub(crate) fn render_tagged(skill: &LoadedSkillText) -> String {
    let mut block = String::new();
    let (name, directory) = (sanitize_xml_line(&skill.name), sanitize_xml_line(&skill.directory));
    let _ = writeln!(block, "<{SKILL_TAG} name=\"{name}\" directory=\"{directory}\">");
    if !skill.allowed_tools.is_empty() {
        let tools: Vec<_> = skill
            .allowed_tools
            .iter()
            .map(|tool| sanitize_markdown_line(tool))
            .collect();
        let _ = writeln!(block, "Tools for this skill: {}\n", tools.join(", "));
    }
    match &skill.instructions {
        Ok(text) => push_lines(&mut block, &escape_tags(text)),
        Err(reason) => push_lines(&mut block, &unreadable_note(&skill.name, reason)),
    }
    push_tagged_docs(&mut block, &skill.docs);
    let _ = writeln!(block, "</{SKILL_TAG}>");
    block
}

/// Renders documents, each between tags that its text cannot close.
pub(crate) fn render_tagged_docs(docs: &[PromptDoc]) -> String {
    let mut block = String::new();
    push_tagged_docs(&mut block, docs);
    block
}

fn push_tagged_docs(block: &mut String, docs: &[PromptDoc]) {
    for doc in docs {
        let _ = writeln!(block, "<{DOC_TAG} path=\"{}\">", sanitize_xml_line(&doc.path));
        push_lines(block, &escape_tags(&doc.text));
        push_truncation_mark(block, doc);
        let _ = writeln!(block, "</{DOC_TAG}>");
    }
}

/// Renders a loaded skill under a plain heading.
pub(crate) fn render_plain(skill: &LoadedSkillText) -> String {
    let mut block = String::new();
    let _ = writeln!(block, "[Loaded] {}\n", sanitize_markdown_line(&skill.name));
    match &skill.instructions {
        Ok(text) => push_lines(&mut block, text.trim_start_matches(['\r', '\n'])),
        Err(reason) => push_lines(&mut block, &unreadable_note(&skill.name, reason)),
    }
    push_plain_docs(&mut block, &skill.docs);
    block
}

/// Renders documents, each under a plain heading.
pub(crate) fn render_plain_docs(docs: &[PromptDoc]) -> String {
    let mut block = String::new();
    push_plain_docs(&mut block, docs);
    block
}

fn push_plain_docs(block: &mut String, docs: &[PromptDoc]) {
    for doc in docs {
        let _ = writeln!(block, "\n[Doc] {}\n", sanitize_markdown_line(&doc.path));
        push_lines(block, &doc.text);
        push_truncation_mark(block, doc);
    }
}

fn escape_tags(text: &str) -> String {
    let text = text.trim_start_matches(['\r', '\n']);
    let text = escape_closing_tag(text, SKILL_TAG);
    escape_closing_tag(&text, DOC_TAG).into_owned()
}

fn unreadable_note(name: &str, reason: &str) -> String {
    format!(
        "(The instructions of {} can no longer be read: {}.)",
        sanitize_markdown_line(name),
        sanitize_markdown_line(reason)
    )
}

fn push_lines(block: &mut String, text: &str) {
    block.push_str(text);
    if !text.ends_with('\n') {
        block.push('\n');
    }
}

fn push_truncation_mark(block: &mut String, doc: &PromptDoc) {
    if let Some(size) = doc.truncated_from {
        let shown = doc.text.len();
        let _ = writeln!(block, "[truncated: the first {shown} of {size} bytes are shown]");
    }
}
