//! Any bytes in, an answer out; and the head of a file says the same as the whole.

use std::path::Path;

use proptest::prelude::*;
use skillbox_repository::{Head, Parsed, frontmatter_end, parse_lenient, render, split_body, strict};

/// Files that look like skills more often than chance would have it.
fn skill_file() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        4 => "(name|description|license|metadata|allowed-tools|x): ?[a-zA-Z:'\"\\[\\]{},#*&!|>é\\- ]{0,20}",
        2 => " {0,3}-? ?[a-z]{0,4}:? ?[a-z\"' :]{0,8}",
        2 => Just("---".to_owned()),
        1 => "[ \t]{0,2}-{2,4}[ \t#x]{0,2}",
        1 => "\\PC{0,8}",
    ];
    let ending = prop_oneof![6 => Just("\n"), 1 => Just("\r\n"), 1 => Just("\r"), 1 => Just("\n\n")];
    let lines = prop::collection::vec((line, ending), 0..10);
    let start = prop_oneof![8 => Just("---\n"), 1 => Just("\u{feff}---\r\n"), 1 => Just("\n---\n"), 1 => Just("")];
    (start, lines).prop_map(|(start, lines)| {
        let lines = lines.into_iter().map(|(line, ending)| line + ending);
        [start.to_owned(), lines.collect::<String>()].concat().into_bytes()
    })
}

fn parse(bytes: &[u8]) -> Parsed {
    parse_lenient(Path::new("skills/s/SKILL.md"), "s", bytes)
}

/// Findings about the frontmatter: advice needs the body.
fn findings(parsed: &Parsed) -> Vec<String> {
    let about_head = parsed.diagnostics.iter().filter(|finding| finding.code != "long_body");
    about_head.map(|finding| format!("{finding:?}")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_head_says_the_same_as_the_whole(bytes in skill_file(), cut in 0..400_usize) {
        let whole = parse(&bytes);
        match frontmatter_end(&bytes) {
            Head::Complete { end } => {
                let head = parse(&bytes[..end]);
                prop_assert_eq!(&head.meta, &whole.meta);
                prop_assert_eq!(findings(&head), findings(&whole));
                prop_assert_eq!((head.body_offset, whole.body_offset), (end, end));
                let text = std::str::from_utf8(&bytes).unwrap();
                prop_assert_eq!(split_body(text).1, &text[end..]);
            }
            Head::NoFrontmatter => prop_assert_eq!(whole.diagnostics[0].code, "no_frontmatter"),
            Head::NeedMore => {}
        }
        // What a shorter beginning says with certainty, the whole says too.
        let beginning = &bytes[..cut.min(bytes.len())];
        let early = frontmatter_end(beginning);
        if early != Head::NeedMore {
            prop_assert_eq!(early, frontmatter_end(&bytes));
        }
    }

    #[test]
    fn skill_like_files_give_an_answer(bytes in skill_file(), width in 0..120_usize) {
        let parsed = parse(&bytes);
        let has_error = parsed.diagnostics.iter().any(|d| d.severity == skillbox_model::Severity::Error);
        prop_assert_eq!(has_error, parsed.meta.is_none());
        let text = String::from_utf8_lossy(&bytes);
        let shown = render(&parsed.diagnostics, &text, false, width);
        prop_assert!(shown.chars().all(|c| c == '\n' || !c.is_control()), "{shown:?}");
        if let Some(meta) = parsed.meta {
            prop_assert!(!meta.description.trim().is_empty() && meta.description.chars().count() <= 1024);
            prop_assert!(serde_json::to_string(&meta).is_ok());
        }
    }

    #[test]
    fn any_bytes_give_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let parsed = parse(&bytes);
        prop_assert!(parsed.body_offset <= bytes.len());
        prop_assert!(parsed.meta.is_some() || !parsed.diagnostics.is_empty());
        let _ = frontmatter_end(&bytes);
        let text = String::from_utf8_lossy(&bytes);
        let _ = split_body(&text);
        let _ = render(&parsed.diagnostics, &text, true, 80);
    }

    #[test]
    fn strict_reading_gives_an_answer(bytes in skill_file()) {
        let errors = strict::validate_text(&bytes, "s");
        prop_assert!(errors.iter().all(|error| !error.is_empty()));
    }
}
