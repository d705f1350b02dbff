use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use skillbox_repository::{Repository, ScanOptions, Scope, Source, WatchError, WatchHandle, WatchMode, WatchOptions};

use crate::refresh::{Event, events, said, told};
use crate::workshop::{Workshop, names, skill_md};

const LONG: Duration = Duration::from_secs(20);

fn watched(shop: &Workshop) -> (Arc<Repository>, WatchHandle) {
    let repository = Arc::new(shop.open());
    let handle = repository.watch().unwrap();
    let mode = handle.wait_until_ready(LONG);
    assert!(matches!(mode, WatchMode::Events { .. }), "{mode:?}");
    (repository, handle)
}

/// Waits until something holds.
#[track_caller]
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn changes_come_in_by_themselves() {
    let shop = Workshop::new();
    for name in ["edited", "removed", "same"] {
        shop.skill(name);
    }
    let (repository, handle) = watched(&shop);
    let changes = handle.changes();
    shop.file("edited/SKILL.md", skill_md("edited", "New."));
    assert_eq!(told(&changes.recv_timeout(LONG).unwrap())[1], ["edited"]);
    fs::remove_dir_all(shop.path("removed")).unwrap();
    assert_eq!(told(&changes.recv_timeout(LONG).unwrap())[2], ["removed"]);
    shop.skill("group/deep/added");
    eventually("the new skill in new directories", || {
        repository.catalog().get("added").is_some()
    });
    // The new directories have watches of their own.
    shop.skill("group/deep/another");
    eventually("its neighbour", || repository.catalog().get("another").is_some());
    assert_eq!(names(&repository.catalog()), ["edited", "added", "another", "same"]);
}

#[test]
fn a_burst_of_events_is_few_changes() {
    let shop = Workshop::new();
    shop.skill("first");
    let (repository, handle) = watched(&shop);
    let changes = handle.changes();
    for index in 0..100 {
        shop.skill(&format!("burst-{index:03}"));
    }
    let (mut turns, mut added) = (0, 0);
    while added < 100 {
        turns += 1;
        added += changes.recv_timeout(LONG).unwrap().added.len();
    }
    assert_eq!((added, repository.catalog().len()), (100, 101));
    assert!(turns < 20, "{turns} changes were told");
}

#[test]
fn a_refresh_never_waits_for_a_pause_and_misses_nothing() {
    let shop = Workshop::new();
    shop.file("one/SKILL.md", skill_md("one", "0"));
    let repository = Arc::new(shop.open());
    let options = WatchOptions {
        pause: LONG,
        patience: LONG,
        poll: LONG,
    };
    let handle = repository.watch_with(options).unwrap();
    assert!(matches!(handle.wait_until_ready(LONG), WatchMode::Events { .. }));
    for turn in 1..200 {
        let text = turn.to_string();
        shop.file("one/SKILL.md", skill_md("one", &text));
        assert_eq!(told(&repository.refresh())[1], ["one"]);
        assert_eq!(&*repository.catalog().get("one").unwrap().meta.description, &*text);
    }
    shop.skill("two");
    assert_eq!(told(&repository.refresh())[0], ["two"]);
    fs::remove_dir_all(shop.path("one")).unwrap();
    assert_eq!(told(&repository.refresh())[2], ["one"]);
}

#[test]
fn a_source_that_comes_later_is_noticed() {
    let shop = Workshop::new();
    let late = shop.outside().join("late");
    let source = Source::OptionalDirectory {
        path: late.clone(),
        scope: Scope::User,
    };
    let repository = Arc::new(Repository::open(vec![source], ScanOptions::default()));
    let options = WatchOptions {
        poll: Duration::from_millis(20),
        ..WatchOptions::default()
    };
    let _handle = repository.watch_with(options).unwrap();
    shop.skill("one");
    fs::rename(shop.root(), &late).unwrap();
    eventually("the source", || repository.catalog().len() == 1);
    fs::write(late.join("one/SKILL.md"), skill_md("one", "Edited.")).unwrap();
    eventually("an edit in it", || {
        &*repository.catalog().get("one").unwrap().meta.description == "Edited."
    });
    fs::remove_dir_all(&late).unwrap();
    eventually("its end", || repository.catalog().is_empty());
}

#[test]
fn one_directory_by_two_paths_is_kept_up_to_date_under_both() {
    let shop = Workshop::new();
    let real = shop.outside().join("real");
    fs::create_dir(&real).unwrap();
    fs::write(real.join("SKILL.md"), skill_md("shared", "Old.")).unwrap();
    symlink(&real, shop.path("link")).unwrap();
    let sources = vec![
        shop.source(),
        Source::Directory {
            path: real.clone(),
            scope: Scope::User,
        },
    ];
    let repository = Arc::new(Repository::open(sources, ScanOptions::default()));
    let handle = repository.watch().unwrap();
    let mode = handle.wait_until_ready(LONG);
    assert_eq!(mode, WatchMode::Events { watched: 2, polled: 1 });
    fs::write(real.join("SKILL.md"), skill_md("renamed", "New.")).unwrap();
    repository.refresh();
    let catalog = repository.catalog();
    assert_eq!(names(&catalog), ["renamed"]);
    assert_eq!(catalog.shadowed().len(), 1, "both paths know the new name");
}

#[test]
fn one_watch_is_enough_and_can_be_taken_up_again() {
    let shop = Workshop::new();
    shop.skill("one");
    let (repository, handle) = watched(&shop);
    assert!(matches!(repository.watch(), Err(WatchError::AlreadyWatched)));
    drop(handle);
    shop.skill("two");
    assert_eq!(
        told(&repository.refresh())[0],
        ["two"],
        "without a watch, a refresh looks at everything"
    );
    let handle = repository.watch().unwrap();
    handle.wait_until_ready(LONG);
    shop.skill("three");
    assert_eq!(told(&repository.refresh())[0], ["three"]);
}

/// Runs in a user namespace whose limit on watches is a real one, by starting this test binary again inside.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the test starts itself in a namespace with few watches"
)]
fn exhausted_watches_fall_back_to_looking() {
    const INSIDE: &str = "SKILLBOX_TEST_FEW_WATCHES";
    if std::env::var_os(INSIDE).is_some() {
        return looking_works_without_watches();
    }
    let script = "echo 5 > /proc/sys/user/max_inotify_watches && exec \"$0\" \"$@\"";
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", script])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "watch::exhausted_watches_fall_back_to_looking",
            "--nocapture",
        ])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    if complained.contains("unshare failed") || complained.contains("max_inotify_watches") {
        eprintln!("skipped: this host has no user namespaces with limits of their own: {complained}");
        return;
    }
    assert!(output.status.success(), "{said}\n{complained}");
    assert!(said.contains("1 passed"), "{said}");
}

fn looking_works_without_watches() {
    let shop = Workshop::new();
    for index in 0..20 {
        shop.skill(&format!("skill-{index:02}"));
    }
    let repository = Arc::new(shop.open());
    let options = WatchOptions {
        poll: Duration::from_millis(20),
        ..WatchOptions::default()
    };
    let handle = repository.watch_with(options).unwrap();
    let mode = handle.wait_until_ready(LONG);
    assert!(
        matches!(&mode, WatchMode::Polling { reason } if !reason.is_empty()),
        "{mode:?}"
    );
    let changes = handle.changes();
    shop.file("skill-07/SKILL.md", skill_md("skill-07", "Edited."));
    assert_eq!(told(&changes.recv_timeout(LONG).unwrap())[1], ["skill-07"]);
    shop.skill("added");
    eventually("a new skill", || repository.catalog().get("added").is_some());
    fs::remove_dir_all(shop.path("skill-03")).unwrap();
    repository.refresh();
    assert!(repository.catalog().get("skill-03").is_none());
}

/// Watches that run out while watching, not at the start.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the test starts itself in a namespace with few watches"
)]
fn watches_that_run_out_later_fall_back_too() {
    const INSIDE: &str = "SKILLBOX_TEST_WATCHES_RUN_OUT";
    if std::env::var_os(INSIDE).is_some() {
        let shop = Workshop::new();
        shop.skill("first");
        let (repository, handle) = watched(&shop);
        for index in 0..20 {
            shop.skill(&format!("skill-{index:02}"));
        }
        assert_eq!(repository.refresh().added.len(), 20);
        assert!(
            matches!(handle.mode(), WatchMode::Polling { .. }),
            "{:?}",
            handle.mode()
        );
        shop.file("skill-19/SKILL.md", skill_md("skill-19", "Edited."));
        assert_eq!(told(&repository.refresh())[1], ["skill-19"]);
        return;
    }
    let script = "echo 10 > /proc/sys/user/max_inotify_watches && exec \"$0\" \"$@\"";
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", script])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "watch::watches_that_run_out_later_fall_back_too",
            "--nocapture",
        ])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let complained = String::from_utf8_lossy(&output.stderr);
    if complained.contains("unshare failed") || complained.contains("max_inotify_watches") {
        eprintln!("skipped: this host has no user namespaces with limits of their own: {complained}");
        return;
    }
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}\n{complained}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever happens, a catalogue that is refreshed by events says what a fresh scan says.
    #[test]
    fn events_are_as_good_as_a_scan(before in events(), steps in proptest::collection::vec(events(), 1..5)) {
        let shop = Workshop::new();
        for event in &before {
            event.happen(&shop);
        }
        let (repository, handle) = watched(&shop);
        for step in steps {
            for event in &step {
                event.happen(&shop);
            }
            repository.refresh();
            prop_assert_eq!(said(&repository.catalog()), said(&shop.scan()), "{:?} then {:?}", before, step);
        }
        let still_by_events = matches!(handle.mode(), WatchMode::Events { .. });
        prop_assert!(still_by_events);
    }
}

#[test]
fn an_event_is_not_needed_twice() {
    // Ordinary work beside the skills does not make a catalogue.
    let shop = Workshop::new();
    shop.skill("one");
    let (repository, handle) = watched(&shop);
    let changes = handle.changes();
    shop.file("one/notes.txt", "not of interest");
    shop.file("README.md", "not of interest");
    Event::RemoveTree("one/nothing".to_owned()).happen(&shop);
    assert!(repository.refresh().is_empty());
    assert!(changes.recv_timeout(Duration::from_millis(300)).is_err());
}

#[test]
fn a_directory_that_goes_and_comes_back_is_still_watched() {
    let shop = Workshop::new();
    shop.skill("group/one");
    let (repository, _handle) = watched(&shop);
    for turn in 0..20 {
        fs::rename(shop.path("group"), shop.outside().join("away")).unwrap();
        if turn % 2 == 0 {
            repository.refresh();
        }
        fs::rename(shop.outside().join("away"), shop.path("group")).unwrap();
        repository.refresh();
        shop.file("group/one/SKILL.md", skill_md("one", &format!("Turn {turn}.")));
        assert_eq!(told(&repository.refresh())[1], ["one"], "turn {turn}");
        fs::remove_dir_all(shop.path("group")).unwrap();
        shop.skill("group/one");
        repository.refresh();
        shop.file("group/one/SKILL.md", skill_md("one", &format!("Second {turn}.")));
        assert_eq!(told(&repository.refresh())[1], ["one"], "turn {turn}");
    }
}
