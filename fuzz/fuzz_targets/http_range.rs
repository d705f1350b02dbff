//! Reads any text as a `Range` header and as a path of the HTTP API. An accepted range lies inside the file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skillbox_model::{RelPath, SessionId};

// The module is private in its crate.
#[path = "../../crates/skillbox-http/src/content"]
mod content {
    mod range;

    pub fn check(header: &str, size: u64) {
        if let range::RequestedRange::Part(part) = range::parse_range(Some(header), size) {
            assert!(part.start < part.end && part.end <= size, "{header:?} of {size}: {part:?}");
        }
    }
}

fuzz_target!(|input: (&str, u64)| {
    let (text, size) = input;
    content::check(text, size);
    content::check(&format!("bytes={text}"), size);
    let decoded: Vec<u8> = percent_encoding::percent_decode_str(text).collect();
    if let Ok(path) = RelPath::parse(decoded) {
        assert!(!path.components().any(|part| matches!(part, b"" | b"." | b"..")));
    }
    if let Ok(id) = SessionId::parse(text) {
        assert!(!id.as_str().contains('/') && !id.as_str().starts_with('.'));
    }
});
