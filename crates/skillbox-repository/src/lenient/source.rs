//! The frontmatter of a file as the YAML reader saw it, repaired where that helped.

use super::findings::Findings;
use super::repair::{Repaired, repair};
use crate::node::Node;
use crate::parse_code::ParseCode;
use crate::strict;
use crate::yaml::{self, Document, Problem, YamlError};

/// Repairing reads the text again and again; real frontmatter is thirty times smaller than this.
const MAX_REPAIR_BYTES: usize = 64 << 10;

/// A document, with what it takes to find its nodes in the file.
pub(crate) struct Frontmatter<'s> {
    pub root: Option<Node<'s>>,
    /// The text that was read.
    pub text: &'s str,
    /// Where it begins in the file.
    base: usize,
    /// Offsets in `text` of characters that the file does not have, in order.
    inserted: &'s [usize],
}

impl Frontmatter<'_> {
    /// The offset in the file of an offset in the text.
    pub(crate) fn in_file(&self, offset: usize) -> usize {
        let inserted_before = self.inserted.partition_point(|at| *at < offset);
        self.base + offset - inserted_before
    }
}

/// Reads frontmatter that stands at `base` of its file and hands it on; nothing if it cannot be understood.
///
/// What is no YAML is repaired if it is broken in a way that has only one meaning. What then is still none may be
/// in the reference tool's dialect: what its YAML reader accepts is not lost here.
pub(crate) fn with_frontmatter<R>(
    text: &str,
    base: usize,
    findings: &mut Findings<'_>,
    then: impl FnOnce(&Frontmatter<'_>, &mut Findings<'_>) -> R,
) -> Option<R> {
    let error = match yaml::read(text) {
        Ok(document) => return Some(hand_on(document, text, base, &[], findings, then)),
        Err(error) => error,
    };
    let is_mendable = matches!(error.problem, Problem::Syntax { .. }) && text.len() <= MAX_REPAIR_BYTES;
    if !is_mendable {
        report(&error, base, findings);
        return None;
    }
    let error = match repair(text, error) {
        Ok(repaired) => {
            report_repairs(&repaired, base, findings);
            // It was read before it was handed out.
            let document = yaml::read(&repaired.text).unwrap_or_default();
            let inserted = &repaired.inserted;
            return Some(hand_on(document, &repaired.text, base, inserted, findings, then));
        }
        Err(error) => error,
    };
    if !text.contains('\r')
        && let Ok(Some(root)) = strict::parse(text)
    {
        let message = format!("this is not YAML 1.2: {error}");
        findings.add(ParseCode::LooseYaml, base + error.offset, message, error.problem.hint());
        let document = Document {
            root: Some(root),
            ..Document::default()
        };
        return Some(hand_on(document, text, base, &[], findings, then));
    }
    report(&error, base, findings);
    None
}

fn hand_on<'s, R>(
    document: Document<'s>,
    text: &'s str,
    base: usize,
    inserted: &'s [usize],
    findings: &mut Findings<'_>,
    then: impl FnOnce(&Frontmatter<'_>, &mut Findings<'_>) -> R,
) -> R {
    let frontmatter = Frontmatter {
        root: document.root,
        text,
        base,
        inserted,
    };
    for offset in document.replacing_keys {
        let message = "this key stands twice; the later value counts";
        findings.add(
            ParseCode::DuplicateKey,
            frontmatter.in_file(offset),
            message,
            "remove one of them",
        );
    }
    then(&frontmatter, findings)
}

fn report_repairs(repaired: &Repaired, base: usize, findings: &mut Findings<'_>) {
    for repair in &repaired.repairs {
        let message = format!(
            "the value of `{}` needs quotes; it was read as if it had them",
            repair.key
        );
        let hint = format!("write {}", repair.shown);
        findings.add(ParseCode::UnquotedValue, base + repair.offset, message, hint);
    }
}

fn report(error: &YamlError, base: usize, findings: &mut Findings<'_>) {
    let (code, message) = match &error.problem {
        Problem::Tag(_) => (ParseCode::YamlTag, error.to_string()),
        problem if problem.is_budget() => (ParseCode::FrontmatterBudget, format!("the frontmatter has {problem}")),
        problem => (
            ParseCode::InvalidYaml,
            format!("the frontmatter is not valid YAML: {problem}"),
        ),
    };
    findings.add(code, base + error.offset, message, error.problem.hint());
}
