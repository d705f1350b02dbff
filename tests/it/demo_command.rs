//! `skillbox demo`, the guided tour.

use crate::cli::Cli;

#[test]
fn demo_runs_every_step_and_leaves_no_files() {
    let mut cli = Cli::new();
    let temporary = cli.work_dir().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    cli.set_variable("TMPDIR", temporary.to_str().unwrap());

    let demo = cli.run("demo").expect_code(0);
    assert_eq!(demo.stderr, "");
    for text in [
        "1. Find",
        "2. Inspect",
        "3. Search",
        "4. Validate",
        "5. Explain",
        "6. Disclose",
        "7. Run a skill",
        "8. Attempt",
        "out/chart.svg",
        "Valid skill: skills/csv-report",
        "csv-report [Loaded]: ",
        "1 overview",
        "2 instructions",
        "3 documents",
    ] {
        assert!(demo.stdout.contains(text), "{text}: {}", demo.stdout);
    }
    let report = cli.run("demo --json").expect_code(0).json();
    assert_eq!(
        (report["ok"].as_bool(), report["steps"].as_array().unwrap().len()),
        (Some(true), 8)
    );
    let layers = report["steps"][5]["layers"].as_array().unwrap();
    let names: Vec<_> = layers.iter().map(|layer| layer["layer"].as_str().unwrap()).collect();
    assert_eq!(names, ["overview", "instructions", "documents"]);
    assert!(
        layers.iter().all(|layer| layer["characters"].as_u64().unwrap() > 1_000),
        "{layers:?}"
    );
    assert_eq!(
        std::fs::read_dir(&temporary).unwrap().count(),
        0,
        "the temporary directory is empty again"
    );
}
