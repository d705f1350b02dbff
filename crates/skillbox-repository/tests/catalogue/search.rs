use skillbox_repository::{BUILT_IN, Catalog, Rank, Repository, ScanOptions, Source, search};

use crate::workshop::{Workshop, skill_md};

fn shop() -> Workshop {
    let shop = Workshop::new();
    for (dir, description, body) in [
        ("pdf", "Reads, fills and merges PDF files and forms.", "Use qpdf."),
        ("pdf-tools", "Splits documents.", "Nothing more."),
        ("make-pdf", "Prints web pages.", "Headless browser."),
        (
            "docs/office",
            "Word documents and spreadsheets.",
            "Can also print to pdf when asked.",
        ),
        (
            "docs/slides",
            "Presentations from outlines.",
            "Speaker notes and transitions.",
        ),
        ("text-stats", "Counts words and lines of a text.", "Extract nothing."),
        ("quarterly", "把銷售資料做成季度報表,並畫出圖表。", "步驟一:讀取資料。"),
        ("weather", "今日の天気を調べる。", "降水確率も表示する。"),
        ("korean", "회의록을 요약합니다.", "결정 사항을 정리한다."),
    ] {
        let name = dir.rsplit('/').next().unwrap();
        shop.file(&format!("{dir}/SKILL.md"), skill_md(name, description) + body + "\n");
    }
    shop
}

fn found(catalog: &Catalog, query: &str) -> Vec<(String, Rank)> {
    let hits = search(catalog, query, 10);
    hits.into_iter().map(|hit| (hit.name.to_string(), hit.rank)).collect()
}

#[track_caller]
fn check(catalog: &Catalog, query: &str, expected: &[(&str, Rank)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(name, rank)| ((*name).to_owned(), *rank))
        .collect();
    assert_eq!(found(catalog, query), expected, "{query:?}");
}

#[test]
fn ranks_come_in_their_order() {
    let shop = shop();
    let catalog = shop.scan();
    check(
        &catalog,
        "PDF",
        &[
            ("pdf", Rank::ExactName),
            ("pdf-tools", Rank::NamePrefix),
            ("make-pdf", Rank::Name),
            ("office", Rank::Body),
        ],
    );
    check(
        &catalog,
        "docs",
        &[("office", Rank::DescriptionOrPath), ("slides", Rank::DescriptionOrPath)],
    );
    check(
        &catalog,
        "documents",
        &[
            ("pdf-tools", Rank::DescriptionOrPath),
            ("office", Rank::DescriptionOrPath),
        ],
    );
    check(&catalog, "speaker notes", &[("slides", Rank::Body)]);
    check(&catalog, "text stats", &[("text-stats", Rank::ExactName)]);
    check(&catalog, "stats text", &[("text-stats", Rank::Name)]);
    check(&catalog, "zebra", &[]);
    let hits = search(&catalog, "speaker", 10);
    assert_eq!(hits[0].excerpt.as_deref(), Some("Speaker notes and transitions."));
}

#[test]
fn a_question_finds_what_it_is_about() {
    let shop = shop();
    let catalog = shop.scan();
    let best = |query: &str| search(&catalog, query, 1)[0].name.to_string();
    assert_eq!(best("extract text from pdf forms"), "pdf");
    assert_eq!(best("how do I count words?"), "text-stats");
    assert_eq!(best("presentations for a talk"), "slides");
}

#[test]
fn texts_without_blanks_are_found() {
    let shop = shop();
    let catalog = shop.scan();
    for (query, name, rank) in [
        ("報表", "quarterly", Rank::DescriptionOrPath),
        ("季度報表", "quarterly", Rank::DescriptionOrPath),
        ("報", "quarterly", Rank::DescriptionOrPath),
        ("讀取", "quarterly", Rank::Body),
        ("天気", "weather", Rank::DescriptionOrPath),
        ("明日の天気", "weather", Rank::DescriptionOrPath),
        ("降水", "weather", Rank::Body),
        ("회의록", "korean", Rank::DescriptionOrPath),
        ("결정", "korean", Rank::Body),
    ] {
        let hits = found(&catalog, query);
        assert_eq!(hits.first(), Some(&(name.to_owned(), rank)), "{query}: {hits:?}");
    }
}

#[test]
fn a_blank_query_lists_all_by_name() {
    let shop = shop();
    let catalog = shop.scan();
    let names: Vec<_> = found(&catalog, "  ").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), 9);
    assert!(names.is_sorted());
    assert_eq!(search(&catalog, "", 3).len(), 3);
    assert!(search(&catalog, "pdf", 0).is_empty());
    assert!(search(&Catalog::default(), "pdf", 5).is_empty());
}

#[test]
fn odd_queries_do_no_harm() {
    let shop = shop();
    let catalog = shop.scan();
    for query in [
        "---",
        "\0",
        "a\u{301}",
        "(*&^%",
        "\u{1F600}",
        &"x ".repeat(10_000),
        &"語".repeat(10_000),
    ] {
        let first = found(&catalog, query);
        assert_eq!(first, found(&catalog, query), "the same each time");
    }
}

#[test]
fn the_built_in_skills_are_found_too() {
    let catalog = Repository::open(vec![Source::Embedded(&BUILT_IN)], ScanOptions::default()).catalog();
    assert_eq!(search(&catalog, "csv chart", 1)[0].name.as_str(), "csv-report");
    assert_eq!(search(&catalog, "fibonacci", 1)[0].name.as_str(), "python-math");
}
