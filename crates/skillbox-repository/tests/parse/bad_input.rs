//! Broken and hostile files are rejected quickly, with a diagnostic that has a position.

use std::path::Path;
use std::time::{Duration, Instant};

use skillbox_repository::{ParsedSkillMd, parse_lenient};

/// Parses and checks the time, with a large margin for busy machines.
fn parse(name: &str, bytes: &[u8]) -> ParsedSkillMd {
    let start = Instant::now();
    let parsed = parse_lenient(Path::new("SKILL.md"), "s", bytes);
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{name} took {:?}",
        start.elapsed()
    );
    parsed
}

fn frontmatter(yaml: &str) -> Vec<u8> {
    format!("---\nname: s\ndescription: d\n{yaml}\n---\n").into_bytes()
}

fn nested(open: &str, depth: usize) -> Vec<u8> {
    frontmatter(&format!("x: {}", open.repeat(depth)))
}

#[test]
fn hostile_frontmatter_is_rejected_with_a_position() {
    let bomb = (0..9).fold("a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, level| {
        let uses = vec![format!("*a{level}"); 9].join(", ");
        format!("{text}a{}: &a{} [{uses}]\n", level + 1, level + 1)
    });
    let keys: String = (0..100_000).map(|key| format!("k{key}: v\n")).collect();
    let stairs: String = (0..300).map(|depth| format!("{}k:\n", " ".repeat(depth))).collect();
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("alias bomb", frontmatter(&bomb), "frontmatter_budget"),
        (
            "many aliases",
            frontmatter(&format!("a: &a x\nb: [{}]", "*a, ".repeat(200))),
            "frontmatter_budget",
        ),
        ("alias cycle", frontmatter("a: &a [*a]"), "invalid_yaml"),
        ("100,000 keys", frontmatter(&keys), "frontmatter_budget"),
        ("deep brackets", nested("[", 100_000), "frontmatter_budget"),
        ("deep braces", nested("{a: ", 50_000), "frontmatter_budget"),
        ("deep lists", nested("- ", 100_000), "invalid_yaml"),
        ("deep mapping", frontmatter(&stairs), "frontmatter_budget"),
        (
            "over 1 MiB",
            frontmatter(&format!("x: {}", "y".repeat(1 << 20))),
            "frontmatter_budget",
        ),
        (
            "long key",
            frontmatter(&format!("{}: x", "k".repeat(5_000))),
            "invalid_yaml",
        ),
        ("NUL", frontmatter("x: a\0b"), "invalid_yaml"),
        ("escape character", frontmatter("x: a\u{1b}[31m"), "invalid_yaml"),
        ("colons", frontmatter(&"x: a: b\n".repeat(5_000)), "invalid_yaml"),
        (
            "nothing but colons",
            frontmatter(&": ".repeat(20_000)),
            "frontmatter_budget",
        ),
        (
            "quotes that would double repeatedly",
            frontmatter("x: C'\0\0y: z"),
            "invalid_yaml",
        ),
        ("quotes", frontmatter(&"x: 'a' b\n".repeat(2_000)), "invalid_yaml"),
    ];
    for (name, bytes, code) in cases {
        let parsed = parse(name, &bytes);
        assert!(parsed.meta.is_none(), "{name}");
        let diagnostic = parsed.diagnostics.last().unwrap();
        assert_eq!(diagnostic.code, code, "{name}: {diagnostic:?}");
        assert!(
            diagnostic.line.is_some() && diagnostic.column.is_some(),
            "{name}: {diagnostic:?}"
        );
        assert!(diagnostic.message.len() < 500, "{name}: {diagnostic:?}");
    }
}

#[test]
fn files_that_are_not_text_are_rejected() {
    let parsed = parse("not UTF-8", b"---\nname: s\ndescription: caf\xe9\n---\n");
    let diagnostic = &parsed.diagnostics[0];
    assert_eq!(
        (diagnostic.code, diagnostic.line, diagnostic.column),
        ("not_utf8", Some(3), Some(17))
    );
    assert!(parsed.meta.is_none());

    let parsed = parse("UTF-16", b"\xff\xfe-\0-\0-\0");
    assert_eq!(parsed.diagnostics[0].code, "not_utf8");

    let mut large = b"---\nname: s\ndescription: d\n---\n".to_vec();
    large.resize(10 << 20, b'x');
    assert!(parse("10 MiB", &large).meta.is_some());
    large.push(b'x');
    let parsed = parse("10 MiB and a byte", &large);
    assert_eq!((parsed.diagnostics[0].code, parsed.meta.is_none()), ("too_large", true));
}

#[test]
fn large_valid_frontmatter_loads() {
    let pairs: String = (0..2_000).map(|key| format!("  k{key}: v\n")).collect();
    let bytes = frontmatter(&format!("metadata:\n{pairs}long: {}", "word ".repeat(50_000)));
    let parsed = parse("large", &bytes);
    assert_eq!(parsed.meta.unwrap().metadata.len(), 2_000);
}
