//! Reads one SKILL.md leniently: a value where there can be one, and findings for all that is odd.

use std::path::Path;

use skillbox_model::Diagnostic;

use crate::frontmatter::{Extent, Located, locate};
use crate::lenient::{Findings, advise, read_fields, with_frontmatter};
use crate::parse_code::ParseCode;
use crate::skill_meta::SkillMeta;

/// A SKILL.md may have so many bytes.
pub const MAX_SKILL_MD_BYTES: u64 = 10 << 20;

/// What was read from one SKILL.md.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The metadata; nothing where the skill cannot be used, and then a finding says why.
    pub meta: Option<SkillMeta>,
    /// What is odd or broken, in the order of the checks.
    pub diagnostics: Vec<Diagnostic>,
    /// Where the body begins.
    pub body_offset: usize,
}

/// Reads a whole SKILL.md, or just its head up to and including the closing delimiter.
///
/// `directory` is the name of the directory that holds the file; where it has none, the name is not compared.
/// Any bytes give an answer, in time linear in their number.
pub fn parse_lenient(path: &Path, directory: &str, bytes: &[u8]) -> Parsed {
    let unreadable = |diagnostic: Diagnostic| Parsed {
        meta: None,
        diagnostics: vec![diagnostic],
        body_offset: 0,
    };
    if bytes.len() as u64 > MAX_SKILL_MD_BYTES {
        return unreadable(ParseCode::TooLarge.finding(path, "the file has more than 10 MiB"));
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let valid = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
            let mut findings = Findings::new(path, valid);
            let message = "the file is not UTF-8 text from here on";
            findings.add(ParseCode::NotUtf8, valid.len(), message, "save the file as UTF-8");
            return Parsed {
                meta: None,
                diagnostics: findings.into_diagnostics(),
                body_offset: 0,
            };
        }
    };
    let mut findings = Findings::new(path, text);
    let (meta, body_offset) = parse_text(text, directory, &mut findings);
    Parsed {
        meta,
        diagnostics: findings.into_diagnostics(),
        body_offset,
    }
}

fn parse_text(text: &str, directory: &str, findings: &mut Findings<'_>) -> (Option<SkillMeta>, usize) {
    let fences = match locate(text.as_bytes(), Extent::Whole) {
        Located::Found(fences) => fences,
        Located::Unclosed { opening } => {
            let message = "the frontmatter that begins here never ends";
            let hint = "end it with a line of three dashes";
            findings.add(ParseCode::UnclosedFrontmatter, opening, message, hint);
            return (None, text.len());
        }
        Located::Absent | Located::Undecided => {
            let message = "the file has no frontmatter";
            let hint = "begin it with a line of three dashes, `name: …`, `description: …` and three dashes again";
            findings.add(ParseCode::NoFrontmatter, 0, message, hint);
            return (None, 0);
        }
    };
    if fences.has_bom {
        let message = "the file begins with a byte order mark";
        findings.add(ParseCode::ByteOrderMark, 0, message, "save it as UTF-8 without one");
    }
    if let Some(offset) = fences.odd {
        let message = "this delimiter is not alone at the start of its line, or not on the first line";
        let hint = "write three dashes alone on the line";
        findings.add(ParseCode::OddDelimiter, offset, message, hint);
    }
    let yaml = &text[fences.yaml.clone()];
    let meta = with_frontmatter(yaml, fences.yaml.start, findings, |frontmatter, findings| {
        read_fields(frontmatter, directory, findings)
    });
    advise(&text[fences.body..], fences.body, findings);
    (meta.flatten(), fences.body)
}
