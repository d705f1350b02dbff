//! Parses the frontmatter of an open SKILL.md, and its body only if the frontmatter lacks what the catalog needs.

use std::io;
use std::path::Path;

use skillbox_model::Diagnostic;

use super::scanned_dir::UnloadedContent;
use super::skill_md_file::SkillMdFile;
use crate::parse::{ParsedSkillMd, SkillMeta, find_declared_name, parse_lenient, parse_with_fallback};

/// The maximum number of bytes of the body in which the first paragraph is searched.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// A parsed SKILL.md.
pub(super) struct ScannedSkillMd {
    pub(super) content: ScannedContent,
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// What a SKILL.md contains.
pub(super) enum ScannedContent {
    Usable(Box<SkillMeta>),
    Unusable(Box<UnloadedContent>),
}

/// Parses a SKILL.md. `buffer` is scratch space that scans of one thread share.
pub(super) fn parse_skill_md(
    file: &SkillMdFile,
    path: &Path,
    dir_name: &str,
    metadata_fallback: bool,
    buffer: &mut Vec<u8>,
) -> io::Result<ScannedSkillMd> {
    let bytes = file.read_frontmatter(buffer)?;
    let parsed = parse_lenient(path, dir_name, bytes);
    let diagnostics = parsed.diagnostics;
    if let Some(meta) = parsed.meta {
        let content = ScannedContent::Usable(Box::new(meta));
        return Ok(ScannedSkillMd { content, diagnostics });
    }
    let declared_name = find_declared_name(bytes);
    let mut unloaded = UnloadedContent {
        declared_name,
        ..UnloadedContent::new(path)
    };
    if parsed.lacks_metadata {
        let length = bytes.len() + MAX_BODY_BYTES;
        let completed = parse_with_fallback(path, dir_name, file.read_start(length, buffer)?);
        match completed {
            ParsedSkillMd {
                meta: Some(meta),
                diagnostics,
                ..
            } if metadata_fallback => {
                let content = ScannedContent::Usable(Box::new(meta));
                return Ok(ScannedSkillMd { content, diagnostics });
            }
            completed => unloaded.loads_with_fallback = completed.meta.is_some(),
        }
    }
    let content = ScannedContent::Unusable(Box::new(unloaded));
    Ok(ScannedSkillMd { content, diagnostics })
}
