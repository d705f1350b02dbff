//! Parses any bytes as a SKILL.md with both parsers. Parsing only the frontmatter must return the same metadata as
//! parsing the whole file.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use skillbox_repository::{
    FrontmatterEnd, find_frontmatter_end, parse_lenient, render_diagnostics, split_frontmatter, strict,
};

fuzz_target!(|bytes: &[u8]| {
    let path = Path::new("skills/s/SKILL.md");
    let whole = parse_lenient(path, "s", bytes);
    assert!(whole.body_offset <= bytes.len());
    assert!(whole.meta.is_some() || !whole.diagnostics.is_empty());
    let _ = strict::validate_text(bytes, "s");
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match find_frontmatter_end(bytes) {
        FrontmatterEnd::Complete { body_offset: end } => {
            let frontmatter_only = parse_lenient(path, "s", &bytes[..end]);
            assert_eq!(frontmatter_only.meta, whole.meta);
            assert_eq!((frontmatter_only.body_offset, whole.body_offset), (end, end));
            assert_eq!(split_frontmatter(text).1, &text[end..]);
        }
        FrontmatterEnd::NoFrontmatter => assert!(whole.meta.is_none()),
        FrontmatterEnd::NeedMore => {}
    }
    let shown = render_diagnostics(&whole.diagnostics, text, false, 80);
    assert!(shown.chars().all(|c| c == '\n' || !c.is_control()));
});
