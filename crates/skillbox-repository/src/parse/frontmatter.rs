//! Reads the frontmatter of a file as YAML and repairs it if that is possible without ambiguity.

use super::file_diagnostics::FileDiagnostics;
use super::python_yaml::{parse_like_pyyaml, parse_reference_yaml};
use super::repair::{RepairedText, repair};
use super::yaml::{Document, Node, YamlError, YamlErrorKind, read_yaml};
use crate::diagnostics::ParseCode;

/// The maximum size of a text to repair, because a repair parses it many times. The largest frontmatter of 800 public
/// skills has 2,202 bytes.
const MAX_REPAIR_BYTES: usize = 64 << 10;

/// A YAML document, with what is needed to convert its offsets to offsets in the file.
pub(super) struct Frontmatter<'s> {
    pub root: Option<Node<'s>>,
    /// The text of the document, after repairs.
    pub text: &'s str,
    /// Where the frontmatter begins in the file.
    base: usize,
    /// Offsets in `text` of characters that repairs added, in order.
    inserted: &'s [usize],
}

impl Frontmatter<'_> {
    /// Converts an offset in the text to an offset in the file.
    pub(super) fn file_offset(&self, offset: usize) -> usize {
        let inserted_before = self.inserted.partition_point(|at| *at < offset);
        self.base + offset - inserted_before
    }
}

/// Reads frontmatter that begins at `base` of its file and passes it to `use_frontmatter`; `None` if it cannot be read.
///
/// Text that is not YAML 1.2 is read as PyYAML reads it, because most hosts use PyYAML. Text that PyYAML rejects is
/// repaired if it has only one plausible meaning. If that fails, the YAML subset of the reference tool is tried, so that
/// every skill that the reference tool accepts also loads here.
pub(super) fn with_frontmatter<R>(
    text: &str,
    base: usize,
    diagnostics: &mut FileDiagnostics<'_>,
    use_frontmatter: impl FnOnce(&Frontmatter<'_>, &mut FileDiagnostics<'_>) -> R,
) -> Option<R> {
    let error = match read_yaml(text) {
        Ok(document) => return Some(with_document(document, text, base, &[], diagnostics, use_frontmatter)),
        Err(error) => error,
    };
    let is_repairable = matches!(error.kind, YamlErrorKind::Syntax { .. }) && text.len() <= MAX_REPAIR_BYTES;
    if !is_repairable {
        report_error(&error, base, diagnostics);
        return None;
    }
    if let Ok(Some(root)) = parse_like_pyyaml(text) {
        report_loose_yaml(&error, base, diagnostics);
        let document = Document::with_unique_keys(root);
        return Some(with_document(document, text, base, &[], diagnostics, use_frontmatter));
    }
    let error = match repair(text, error) {
        Ok(repaired) => {
            report_repairs(&repaired, base, diagnostics);
            // `repair` returns only text that can be read.
            let document = read_yaml(&repaired.text).unwrap_or_default();
            let inserted = &repaired.inserted;
            return Some(with_document(
                document,
                &repaired.text,
                base,
                inserted,
                diagnostics,
                use_frontmatter,
            ));
        }
        Err(error) => error,
    };
    if !text.contains('\r')
        && let Ok(Some(root)) = parse_reference_yaml(text)
    {
        report_loose_yaml(&error, base, diagnostics);
        let document = Document {
            root: Some(root),
            ..Document::default()
        };
        return Some(with_document(document, text, base, &[], diagnostics, use_frontmatter));
    }
    report_error(&error, base, diagnostics);
    None
}

/// Reports duplicate keys and passes the document to `use_frontmatter`.
fn with_document<'s, R>(
    document: Document<'s>,
    text: &'s str,
    base: usize,
    inserted: &'s [usize],
    diagnostics: &mut FileDiagnostics<'_>,
    use_frontmatter: impl FnOnce(&Frontmatter<'_>, &mut FileDiagnostics<'_>) -> R,
) -> R {
    let frontmatter = Frontmatter {
        root: document.root,
        text,
        base,
        inserted,
    };
    for offset in document.duplicate_keys {
        let message = "this key occurs twice; the later value is used";
        diagnostics.add(
            ParseCode::DuplicateKey,
            frontmatter.file_offset(offset),
            message,
            "remove one of them",
        );
    }
    use_frontmatter(&frontmatter, diagnostics)
}

fn report_loose_yaml(error: &YamlError, base: usize, diagnostics: &mut FileDiagnostics<'_>) {
    let message = format!("this is not YAML 1.2: {error}");
    diagnostics.add(ParseCode::LooseYaml, base + error.offset, message, error.kind.hint());
}

fn report_repairs(repaired: &RepairedText, base: usize, diagnostics: &mut FileDiagnostics<'_>) {
    for repair in &repaired.repairs {
        let message = format!(
            "the value of `{}` needs quotes; it was read as if it had them",
            repair.key
        );
        let hint = format!("write {}", repair.corrected_line);
        diagnostics.add(ParseCode::UnquotedValue, base + repair.offset, message, hint);
    }
}

fn report_error(error: &YamlError, base: usize, diagnostics: &mut FileDiagnostics<'_>) {
    let (code, message) = match &error.kind {
        YamlErrorKind::UnsupportedTag(_) => (ParseCode::YamlTag, error.to_string()),
        kind if kind.exceeds_limit() => (ParseCode::FrontmatterBudget, format!("the frontmatter has {kind}")),
        kind => (
            ParseCode::InvalidYaml,
            format!("the frontmatter is not valid YAML: {kind}"),
        ),
    };
    diagnostics.add(code, base + error.offset, message, error.kind.hint());
}
