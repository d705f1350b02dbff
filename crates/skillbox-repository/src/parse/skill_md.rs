//! Parses one SKILL.md leniently: metadata where possible, and a diagnostic for everything odd.

use std::path::Path;

use skillbox_model::{Diagnostic, Severity};

use super::body_length::check_body_length;
use super::delimiters::{DelimiterSearch, Extent, find_delimiters, split_frontmatter};
use super::fields::read_fields;
use super::file_diagnostics::FileDiagnostics;
use super::frontmatter::with_frontmatter;
use super::metadata_fallback::MetadataFallback;
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
    /// Whether the skill cannot be used only because its name or its description is missing.
    pub lacks_metadata: bool,
}

/// Parses a whole SKILL.md, or its beginning up to and including the closing delimiter.
///
/// `directory` is the name of the directory that contains the file. If it is empty, it is not compared with the name.
/// Any bytes are accepted, and the time is linear in their number.
pub fn parse_lenient(path: &Path, directory: &str, bytes: &[u8]) -> ParsedSkillMd {
    parse_bytes(path, bytes, |text, diagnostics| {
        parse_text(text, directory, None, diagnostics)
    })
}

/// Parses the beginning of a SKILL.md. The directory provides a missing name, and the first paragraph of the body a
/// missing description.
pub(crate) fn parse_with_fallback(path: &Path, directory: &str, bytes: &[u8]) -> ParsedSkillMd {
    parse_bytes(path, bytes, |text, diagnostics| {
        let body = split_frontmatter(text).1;
        let fallback = MetadataFallback { directory, body };
        parse_text(text, directory, Some(fallback), diagnostics)
    })
}

fn parse_bytes(
    path: &Path,
    bytes: &[u8],
    parse: impl FnOnce(&str, &mut FileDiagnostics<'_>) -> (Option<SkillMeta>, usize),
) -> ParsedSkillMd {
    let unusable = |diagnostics| ParsedSkillMd {
        meta: None,
        diagnostics,
        body_offset: 0,
        lacks_metadata: false,
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
    let (meta, body_offset) = parse(text, &mut diagnostics);
    let diagnostics = diagnostics.into_vec();
    ParsedSkillMd {
        lacks_metadata: meta.is_none() && diagnostics.iter().all(|it| !is_fatal_beyond_metadata(it)),
        meta,
        diagnostics,
        body_offset,
    }
}

/// Whether a diagnostic is an error that the metadata fallback does not help against.
fn is_fatal_beyond_metadata(diagnostic: &Diagnostic) -> bool {
    let about_metadata = [
        ParseCode::NoFrontmatter,
        ParseCode::MissingName,
        ParseCode::MissingDescription,
    ];
    diagnostic.severity == Severity::Error && !about_metadata.iter().any(|code| code.as_str() == diagnostic.code)
}

fn parse_text(
    text: &str,
    directory: &str,
    fallback: Option<MetadataFallback<'_>>,
    diagnostics: &mut FileDiagnostics<'_>,
) -> (Option<SkillMeta>, usize) {
    let delimiters = match find_delimiters(text.as_bytes(), Extent::WholeFile) {
        DelimiterSearch::Found(delimiters) => delimiters,
        DelimiterSearch::Unclosed { opening } => {
            let message = "the frontmatter that begins here never ends";
            let hint = "end it with a line of three dashes";
            diagnostics.add(ParseCode::UnclosedFrontmatter, opening, message, hint);
            return (None, text.len());
        }
        DelimiterSearch::Absent | DelimiterSearch::Undecided if fallback.is_some() => {
            let meta = with_frontmatter("", 0, diagnostics, |frontmatter, diagnostics| {
                read_fields(frontmatter, directory, fallback, diagnostics)
            });
            return (meta.flatten(), 0);
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
        read_fields(frontmatter, directory, fallback, diagnostics)
    });
    if fallback.is_none() {
        check_body_length(text, delimiters.body_offset, diagnostics);
    }
    (meta.flatten(), delimiters.body_offset)
}
