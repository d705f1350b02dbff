//! Any bytes can be parsed, and the frontmatter alone has the same metadata as the whole file.

use std::path::Path;

use proptest::prelude::*;
use skillbox_repository::{
    FrontmatterEnd, ParsedSkillMd, find_frontmatter_end, parse_lenient, render_diagnostics, split_frontmatter, strict,
};

/// Files that often look like skills.
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

fn parse(bytes: &[u8]) -> ParsedSkillMd {
    parse_lenient(Path::new("skills/s/SKILL.md"), "s", bytes)
}

/// The diagnostics about the frontmatter, without those about the body.
fn frontmatter_diagnostics(parsed: &ParsedSkillMd) -> Vec<String> {
    let diagnostics = parsed.diagnostics.iter().filter(|it| it.code != "long_body");
    diagnostics.map(|it| format!("{it:?}")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_frontmatter_alone_parses_like_the_whole_file(bytes in skill_file(), cut in 0..400_usize) {
        let whole = parse(&bytes);
        match find_frontmatter_end(&bytes) {
            FrontmatterEnd::Complete { body_offset: end } => {
                let head = parse(&bytes[..end]);
                prop_assert_eq!(&head.meta, &whole.meta);
                prop_assert_eq!(frontmatter_diagnostics(&head), frontmatter_diagnostics(&whole));
                prop_assert_eq!((head.body_offset, whole.body_offset), (end, end));
                let text = std::str::from_utf8(&bytes).unwrap();
                prop_assert_eq!(split_frontmatter(text).1, &text[end..]);
            }
            FrontmatterEnd::NoFrontmatter => prop_assert_eq!(whole.diagnostics[0].code, "no_frontmatter"),
            FrontmatterEnd::NeedMore => {}
        }
        // A decision from the first bytes is the same as that from the whole file.
        let beginning = &bytes[..cut.min(bytes.len())];
        let early = find_frontmatter_end(beginning);
        if early != FrontmatterEnd::NeedMore {
            prop_assert_eq!(early, find_frontmatter_end(&bytes));
        }
    }

    #[test]
    fn files_like_skills_can_be_parsed(bytes in skill_file(), width in 0..120_usize) {
        let parsed = parse(&bytes);
        let has_error = parsed.diagnostics.iter().any(|d| d.severity == skillbox_model::Severity::Error);
        prop_assert_eq!(has_error, parsed.meta.is_none());
        let text = String::from_utf8_lossy(&bytes);
        let shown = render_diagnostics(&parsed.diagnostics, &text, false, width);
        prop_assert!(shown.chars().all(|c| c == '\n' || !c.is_control()), "{shown:?}");
        if let Some(meta) = parsed.meta {
            prop_assert!(!meta.description.trim().is_empty() && meta.description.chars().count() <= 1024);
            prop_assert!(serde_json::to_string(&meta).is_ok());
        }
    }

    #[test]
    fn any_bytes_can_be_parsed(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let parsed = parse(&bytes);
        prop_assert!(parsed.body_offset <= bytes.len());
        prop_assert!(parsed.meta.is_some() || !parsed.diagnostics.is_empty());
        let _ = find_frontmatter_end(&bytes);
        let text = String::from_utf8_lossy(&bytes);
        let _ = split_frontmatter(&text);
        let _ = render_diagnostics(&parsed.diagnostics, &text, true, 80);
    }

    #[test]
    fn files_like_skills_can_be_validated(bytes in skill_file()) {
        let errors = strict::validate_text(&bytes, "s");
        prop_assert!(errors.iter().all(|error| !error.is_empty()));
    }
}
