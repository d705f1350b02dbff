//! `skillbox demo`, the first thing that a newcomer runs.

use crate::program::World;

#[test]
fn the_tour_walks_every_step_and_leaves_nothing() {
    let mut world = World::new();
    let temporary = world.work().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    world.set("TMPDIR", temporary.to_str().unwrap());

    let tour = world.run("demo").expect_code(0);
    assert_eq!(tour.stderr, "");
    for words in [
        "1. Find",
        "2. Look",
        "3. Search",
        "4. Check",
        "5. See",
        "6. Give",
        "7. Run one",
        "8. Watch",
        "out/chart.svg",
        "Valid skill: skills/csv-report",
        "csv-report [Loaded]: ",
        "1 overview",
        "2 instructions",
        "3 documents",
    ] {
        assert!(tour.stdout.contains(words), "{words}: {}", tour.stdout);
    }
    let told = world.run("demo --json").expect_code(0).json();
    assert_eq!(
        (told["ok"].as_bool(), told["steps"].as_array().unwrap().len()),
        (Some(true), 8)
    );
    let layers = told["steps"][5]["layers"].as_array().unwrap();
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
