//! The words of loaded skills.

use std::fmt::Write as _;

use crate::one_line::{one_line, without_closing_tag, xml_line};

/// What a loaded skill says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BodyText {
    pub(crate) name: String,
    pub(crate) directory: String,
    /// Its instructions, or why they cannot be read any more.
    pub(crate) text: Result<String, String>,
    pub(crate) allowed_tools: Vec<String>,
    pub(crate) docs: Vec<DocBody>,
}

/// What one of its documents says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DocBody {
    pub(crate) path: String,
    pub(crate) text: String,
    /// Size of the whole document, where `text` is only its beginning.
    pub(crate) cut_from: Option<u64>,
}

const SKILL_TAG: &str = "skill_content";
const DOC_TAG: &str = "skill_doc";

/// A loaded skill between tags that its words cannot close.
pub(crate) fn loaded_block(body: &BodyText) -> String {
    let mut block = String::new();
    let (name, directory) = (xml_line(&body.name), xml_line(&body.directory));
    let _ = writeln!(block, "<{SKILL_TAG} name=\"{name}\" directory=\"{directory}\">");
    if !body.allowed_tools.is_empty() {
        let tools: Vec<_> = body.allowed_tools.iter().map(|tool| one_line(tool)).collect();
        let _ = writeln!(block, "Tools for this skill: {}\n", tools.join(", "));
    }
    match &body.text {
        Ok(text) => push_lines(&mut block, &harmless(text)),
        Err(reason) => push_lines(&mut block, &gone(&body.name, reason)),
    }
    for doc in &body.docs {
        let _ = writeln!(block, "<{DOC_TAG} path=\"{}\">", xml_line(&doc.path));
        push_lines(&mut block, &harmless(&doc.text));
        push_cut_mark(&mut block, doc);
        let _ = writeln!(block, "</{DOC_TAG}>");
    }
    let _ = writeln!(block, "</{SKILL_TAG}>");
    block
}

/// A loaded skill under a plain heading.
pub(crate) fn loaded_plain(body: &BodyText) -> String {
    let mut block = String::new();
    let _ = writeln!(block, "[Loaded] {}\n", one_line(&body.name));
    match &body.text {
        Ok(text) => push_lines(&mut block, text.trim_start_matches(['\r', '\n'])),
        Err(reason) => push_lines(&mut block, &gone(&body.name, reason)),
    }
    for doc in &body.docs {
        let _ = writeln!(block, "\n[Doc] {}\n", one_line(&doc.path));
        push_lines(&mut block, &doc.text);
        push_cut_mark(&mut block, doc);
    }
    block
}

fn harmless(text: &str) -> String {
    let text = text.trim_start_matches(['\r', '\n']);
    let text = without_closing_tag(text, SKILL_TAG);
    without_closing_tag(&text, DOC_TAG).into_owned()
}

fn gone(name: &str, reason: &str) -> String {
    format!(
        "(The instructions of {} cannot be read any more: {}.)",
        one_line(name),
        one_line(reason)
    )
}

fn push_lines(block: &mut String, text: &str) {
    block.push_str(text);
    if !text.ends_with('\n') {
        block.push('\n');
    }
}

fn push_cut_mark(block: &mut String, doc: &DocBody) {
    if let Some(size) = doc.cut_from {
        let shown = doc.text.len();
        let _ = writeln!(block, "[cut: the first {shown} of {size} bytes are shown]");
    }
}
