//! Parses one SKILL.md leniently: metadata where possible, and a diagnostic for everything odd.

use std::path::Path;

use skillbox_model::Diagnostic;

use super::body_length::check_body_length;
use super::delimiters::{DelimiterSearch, Extent, find_delimiters};
use super::fields::read_fields;
use super::file_diagnostics::FileDiagnostics;
use super::frontmatter::with_frontmatter;
use super::skill_meta::SkillMeta;
use crate::diagnostics::{ParseCode, Position, new_diagnostic};

/// The maximum size of a SKILL.md.
pub const MAX_SKILL_MD_BYTES: u64 = 10 << 20;

/// The two spellings of the file that makes a directory a skill, the preferred one first.
pub(crate) const SKILL_MD_NAMES: [&str; 2] = ["SKILL.md", "skill.md"];

/// Whether a file of this name makes its directory a skill.
pub(crate) fn is_skill_md_name(name: &[u8]) -> bool {
    SKILL_MD_NAMES.iter().any(|known| known.as_bytes() == name)
}

/// The content of one SKILL.md.
#[derive(Clone, Debug)]
pub struct ParsedSkillMd {
    /// The metadata; `None` if the skill cannot be used, and then a diagnostic says why.
    pub meta: Option<SkillMeta>,
    /// Everything odd or broken, in the order of the checks.
    pub diagnostics: Vec<Diagnostic>,
    /// Where the body begins.
    pub body_offset: usize,
}

/// Parses a whole SKILL.md, or its beginning up to and including the closing delimiter.
///
/// `directory` is the name of the directory that contains the file. If it is empty, it is not compared with the name.
/// Any bytes are accepted, and the time is linear in their number.
pub fn parse_lenient(path: &Path, directory: &str, bytes: &[u8]) -> ParsedSkillMd {
    let unusable = |diagnostics| ParsedSkillMd {
        meta: None,
        diagnostics,
        body_offset: 0,
    };
    if bytes.len() as u64 > MAX_SKILL_MD_BYTES {
        let message = "the file is larger than 10 MiB";
        return unusable(vec![new_diagnostic(
            ParseCode::TooLarge,
            path,
            Position::WholeFile,
            message,
            (),
        )]);
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let valid = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
            let mut diagnostics = FileDiagnostics::new(path, valid);
            let message = "the file is not UTF-8 text from here on";
            diagnostics.add(ParseCode::NotUtf8, valid.len(), message, "save the file as UTF-8");
            return unusable(diagnostics.into_vec());
        }
    };
    let mut diagnostics = FileDiagnostics::new(path, text);
    let (meta, body_offset) = parse_text(text, directory, &mut diagnostics);
    ParsedSkillMd {
        meta,
        diagnostics: diagnostics.into_vec(),
        body_offset,
    }
}

fn parse_text(text: &str, directory: &str, diagnostics: &mut FileDiagnostics<'_>) -> (Option<SkillMeta>, usize) {
    let delimiters = match find_delimiters(text.as_bytes(), Extent::WholeFile) {
        DelimiterSearch::Found(delimiters) => delimiters,
        DelimiterSearch::Unclosed { opening } => {
            let message = "the frontmatter that begins here never ends";
            let hint = "end it with a line of three dashes";
            diagnostics.add(ParseCode::UnclosedFrontmatter, opening, message, hint);
            return (None, text.len());
        }
        DelimiterSearch::Absent | DelimiterSearch::Undecided => {
            let message = "the file has no frontmatter";
            let hint = "begin it with a line of three dashes, `name: …`, `description: …` and three dashes again";
            diagnostics.add(ParseCode::NoFrontmatter, 0, message, hint);
            return (None, 0);
        }
    };
    if delimiters.has_bom {
        let message = "the file begins with a byte order mark";
        diagnostics.add(ParseCode::ByteOrderMark, 0, message, "save it as UTF-8 without one");
    }
    if let Some(offset) = delimiters.odd_delimiter {
        let message = "this delimiter is not alone at the start of its line, or not on the first line";
        let hint = "write three dashes alone on the line";
        diagnostics.add(ParseCode::OddDelimiter, offset, message, hint);
    }
    let yaml = &text[delimiters.yaml.clone()];
    let meta = with_frontmatter(yaml, delimiters.yaml.start, diagnostics, |frontmatter, diagnostics| {
        read_fields(frontmatter, directory, diagnostics)
    });
    check_body_length(text, delimiters.body_offset, diagnostics);
    (meta.flatten(), delimiters.body_offset)
}
