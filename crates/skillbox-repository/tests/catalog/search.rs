use skillbox_repository::{BUILT_IN_SKILLS, Catalog, Repository, ScanOptions, SearchRank, Source, search};

use crate::skill_fixture::{SkillFixture, skill_md};

fn search_fixture() -> SkillFixture {
    let fixture = SkillFixture::new();
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
        fixture.write_file(&format!("{dir}/SKILL.md"), skill_md(name, description) + body + "\n");
    }
    fixture
}

fn found(catalog: &Catalog, query: &str) -> Vec<(String, SearchRank)> {
    let hits = search(catalog, query, 10);
    hits.into_iter().map(|hit| (hit.name.to_string(), hit.rank)).collect()
}

#[track_caller]
fn check(catalog: &Catalog, query: &str, expected: &[(&str, SearchRank)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(name, rank)| ((*name).to_owned(), *rank))
        .collect();
    assert_eq!(found(catalog, query), expected, "{query:?}");
}

#[test]
fn hits_are_ordered_by_rank() {
    let fixture = search_fixture();
    let catalog = fixture.scan();
    check(
        &catalog,
        "PDF",
        &[
            ("pdf", SearchRank::ExactName),
            ("pdf-tools", SearchRank::NamePrefix),
            ("make-pdf", SearchRank::Name),
            ("office", SearchRank::Body),
        ],
    );
    check(
        &catalog,
        "docs",
        &[
            ("office", SearchRank::DescriptionOrPath),
            ("slides", SearchRank::DescriptionOrPath),
        ],
    );
    check(
        &catalog,
        "documents",
        &[
            ("pdf-tools", SearchRank::DescriptionOrPath),
            ("office", SearchRank::DescriptionOrPath),
        ],
    );
    check(&catalog, "speaker notes", &[("slides", SearchRank::Body)]);
    check(&catalog, "text stats", &[("text-stats", SearchRank::ExactName)]);
    check(&catalog, "stats text", &[("text-stats", SearchRank::Name)]);
    check(&catalog, "zebra", &[]);
    let hits = search(&catalog, "speaker", 10);
    assert_eq!(hits[0].excerpt.as_deref(), Some("Speaker notes and transitions."));
}

#[test]
fn a_question_finds_the_matching_skill() {
    let fixture = search_fixture();
    let catalog = fixture.scan();
    let best = |query: &str| search(&catalog, query, 1)[0].name.to_string();
    assert_eq!(best("extract text from pdf forms"), "pdf");
    assert_eq!(best("how do I count words?"), "text-stats");
    assert_eq!(best("presentations for a talk"), "slides");
}

#[test]
fn text_in_scripts_without_blanks_is_found() {
    let fixture = search_fixture();
    let catalog = fixture.scan();
    for (query, name, rank) in [
        ("報表", "quarterly", SearchRank::DescriptionOrPath),
        ("季度報表", "quarterly", SearchRank::DescriptionOrPath),
        ("報", "quarterly", SearchRank::DescriptionOrPath),
        ("讀取", "quarterly", SearchRank::Body),
        ("天気", "weather", SearchRank::DescriptionOrPath),
        ("明日の天気", "weather", SearchRank::DescriptionOrPath),
        ("降水", "weather", SearchRank::Body),
        ("회의록", "korean", SearchRank::DescriptionOrPath),
        ("결정", "korean", SearchRank::Body),
    ] {
        let hits = found(&catalog, query);
        assert_eq!(hits.first(), Some(&(name.to_owned(), rank)), "{query}: {hits:?}");
    }
}

#[test]
fn a_blank_query_lists_all_skills_by_name() {
    let fixture = search_fixture();
    let catalog = fixture.scan();
    let names: Vec<_> = found(&catalog, "  ").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), 9);
    assert!(names.is_sorted());
    assert_eq!(search(&catalog, "", 3).len(), 3);
    assert!(search(&catalog, "pdf", 0).is_empty());
    assert!(search(&Catalog::default(), "pdf", 5).is_empty());
}

#[test]
fn odd_queries_return_stable_results() {
    let fixture = search_fixture();
    let catalog = fixture.scan();
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
        assert_eq!(first, found(&catalog, query), "results differ between runs");
    }
}

#[test]
fn built_in_skills_are_found() {
    let catalog = Repository::open(vec![Source::Embedded(&BUILT_IN_SKILLS)], ScanOptions::default()).catalog();
    assert_eq!(search(&catalog, "csv chart", 1)[0].name.as_str(), "csv-report");
    assert_eq!(search(&catalog, "fibonacci", 1)[0].name.as_str(), "python-math");
}
