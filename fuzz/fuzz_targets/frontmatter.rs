//! Any bytes as a SKILL.md: an answer from both readers, and the head says the same as the whole.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use skillbox_repository::{Head, frontmatter_end, parse_lenient, render, split_body, strict};

fuzz_target!(|bytes: &[u8]| {
    let path = Path::new("skills/s/SKILL.md");
    let whole = parse_lenient(path, "s", bytes);
    assert!(whole.body_offset <= bytes.len());
    assert!(whole.meta.is_some() || !whole.diagnostics.is_empty());
    let _ = strict::validate_text(bytes, "s");
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match frontmatter_end(bytes) {
        Head::Complete { end } => {
            let head = parse_lenient(path, "s", &bytes[..end]);
            assert_eq!(head.meta, whole.meta);
            assert_eq!((head.body_offset, whole.body_offset), (end, end));
            assert_eq!(split_body(text).1, &text[end..]);
        }
        Head::NoFrontmatter => assert!(whole.meta.is_none()),
        Head::NeedMore => {}
    }
    let shown = render(&whole.diagnostics, text, false, 80);
    assert!(shown.chars().all(|c| c == '\n' || !c.is_control()));
});
