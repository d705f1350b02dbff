//! Checks whether the instructions are longer than the specification advises.

use std::path::Path;

use skillbox_model::Diagnostic;

use super::delimiters::{DelimiterSearch, Extent, find_delimiters};
use super::file_diagnostics::FileDiagnostics;
use crate::diagnostics::ParseCode;

const MAX_ADVISED_LINES: usize = 500;
const MAX_ADVISED_TOKENS: usize = 5_000;

/// Reports instructions that are longer than the specification advises. The body of `text` begins at `body_offset`.
pub(super) fn check_body_length(text: &str, body_offset: usize, diagnostics: &mut FileDiagnostics<'_>) {
    let body = text[body_offset..].trim_end();
    let lines = body.lines().count();
    let tokens = estimate_tokens(body);
    if lines > MAX_ADVISED_LINES || tokens > MAX_ADVISED_TOKENS {
        diagnostics.add(
            ParseCode::LongBody,
            body_offset,
            format!("the instructions have {lines} lines and about {tokens} tokens"),
            format!(
                "keep them under {MAX_ADVISED_LINES} lines and {MAX_ADVISED_TOKENS} tokens, and move details to `references/`"
            ),
        );
    }
}

/// Checks the length of the instructions in the text of a whole SKILL.md, without parsing its frontmatter.
pub(crate) fn check_skill_md_body(path: &Path, text: &str) -> Vec<Diagnostic> {
    let mut diagnostics = FileDiagnostics::new(path, text);
    if let DelimiterSearch::Found(delimiters) = find_delimiters(text.as_bytes(), Extent::WholeFile) {
        check_body_length(text, delimiters.body_offset, &mut diagnostics);
    }
    diagnostics.into_vec()
}

/// Four alphabetic characters are about one token; an ideograph or a syllable is about one token by itself.
fn estimate_tokens(text: &str) -> usize {
    let (letters, ideographs) = text.chars().fold((0, 0), |(letters, ideographs), c| match c {
        ..'\u{1100}' => (letters + 1, ideographs),
        _ => (letters, ideographs + 1),
    });
    letters / 4 + ideographs
}

#[cfg(test)]
mod tests {
    use super::estimate_tokens;

    #[test]
    fn tokens_are_estimated_by_script() {
        assert_eq!(estimate_tokens(&"word ".repeat(400)), 500);
        assert_eq!(estimate_tokens(&"навык ".repeat(400)), 600);
        assert_eq!(estimate_tokens(&"技能".repeat(500)), 1000);
    }
}
