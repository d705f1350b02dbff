use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use skillbox_repository::{Repository, ScanOptions, Scope, Source, WatchError, WatchHandle, WatchMode, WatchOptions};

use crate::refresh::{TreeChange, format_catalog, names_in, tree_changes};
use crate::skill_fixture::{SkillFixture, names, skill_md};

const TEST_TIMEOUT: Duration = Duration::from_secs(60);

fn open_and_watch(fixture: &SkillFixture) -> (Arc<Repository>, WatchHandle) {
    let repository = Arc::new(fixture.open());
    let handle = repository.watch().unwrap();
    let mode = handle.wait_until_ready(TEST_TIMEOUT);
    assert!(matches!(mode, WatchMode::Events { .. }), "{mode:?}");
    (repository, handle)
}

/// Waits until a condition is true.
#[track_caller]
fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_true() {
        assert!(started.elapsed() < TEST_TIMEOUT, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn changes_are_detected_in_the_background() {
    let fixture = SkillFixture::new();
    for name in ["edited", "removed", "same"] {
        fixture.write_skill(name);
    }
    let (repository, handle) = open_and_watch(&fixture);
    let changes = handle.changes();
    fixture.write_file("edited/SKILL.md", skill_md("edited", "New."));
    assert_eq!(names_in(&changes.recv_timeout(TEST_TIMEOUT).unwrap())[1], ["edited"]);
    fs::remove_dir_all(fixture.path("removed")).unwrap();
    assert_eq!(names_in(&changes.recv_timeout(TEST_TIMEOUT).unwrap())[2], ["removed"]);
    fixture.write_skill("group/deep/added");
    wait_until("the new skill in new directories", || {
        repository.catalog().get("added").is_some()
    });
    // The new directories are watched too.
    fixture.write_skill("group/deep/another");
    wait_until("another skill in the same directory", || {
        repository.catalog().get("another").is_some()
    });
    assert_eq!(names(&repository.catalog()), ["edited", "added", "another", "same"]);
}

#[test]
fn a_burst_of_events_is_combined() {
    let fixture = SkillFixture::new();
    fixture.write_skill("first");
    let (repository, handle) = open_and_watch(&fixture);
    let changes = handle.changes();
    for index in 0..100 {
        fixture.write_skill(&format!("burst-{index:03}"));
    }
    let (mut changes_received, mut added) = (0, 0);
    while added < 100 {
        changes_received += 1;
        added += changes.recv_timeout(TEST_TIMEOUT).unwrap().added.len();
    }
    assert_eq!((added, repository.catalog().len()), (100, 101));
    assert!(changes_received < 20, "{changes_received} changes");
}

#[test]
fn a_refresh_does_not_wait_for_a_pause_and_misses_nothing() {
    let fixture = SkillFixture::new();
    fixture.write_file("one/SKILL.md", skill_md("one", "0"));
    let repository = Arc::new(fixture.open());
    let options = WatchOptions {
        quiet_period: TEST_TIMEOUT,
        max_delay: TEST_TIMEOUT,
        poll_interval: TEST_TIMEOUT,
    };
    let handle = repository.watch_with(options).unwrap();
    assert!(matches!(
        handle.wait_until_ready(TEST_TIMEOUT),
        WatchMode::Events { .. }
    ));
    for round in 1..200 {
        let text = round.to_string();
        fixture.write_file("one/SKILL.md", skill_md("one", &text));
        assert_eq!(names_in(&repository.refresh())[1], ["one"]);
        assert_eq!(&*repository.catalog().get("one").unwrap().meta.description, &*text);
    }
    fixture.write_skill("two");
    assert_eq!(names_in(&repository.refresh())[0], ["two"]);
    fs::remove_dir_all(fixture.path("one")).unwrap();
    assert_eq!(names_in(&repository.refresh())[2], ["one"]);
}

#[test]
fn a_source_that_appears_later_is_detected() {
    let fixture = SkillFixture::new();
    let late = fixture.outside().join("late");
    let source = Source::OptionalDirectory {
        path: late.clone(),
        scope: Scope::User,
    };
    let repository = Arc::new(Repository::open(vec![source], ScanOptions::default()));
    let options = WatchOptions {
        poll_interval: Duration::from_millis(20),
        ..WatchOptions::default()
    };
    let _handle = repository.watch_with(options).unwrap();
    fixture.write_skill("one");
    fs::rename(fixture.root(), &late).unwrap();
    wait_until("the source", || repository.catalog().len() == 1);
    fs::write(late.join("one/SKILL.md"), skill_md("one", "Edited.")).unwrap();
    wait_until("an edit in it", || {
        &*repository.catalog().get("one").unwrap().meta.description == "Edited."
    });
    fs::remove_dir_all(&late).unwrap();
    wait_until("the removal of the source", || repository.catalog().is_empty());
}

#[test]
fn a_directory_with_two_paths_is_updated_at_both() {
    let fixture = SkillFixture::new();
    let real = fixture.outside().join("real");
    fs::create_dir(&real).unwrap();
    fs::write(real.join("SKILL.md"), skill_md("shared", "Old.")).unwrap();
    symlink(&real, fixture.path("link")).unwrap();
    let sources = vec![
        fixture.source(),
        Source::Directory {
            path: real.clone(),
            scope: Scope::User,
        },
    ];
    let repository = Arc::new(Repository::open(sources, ScanOptions::default()));
    let handle = repository.watch().unwrap();
    let mode = handle.wait_until_ready(TEST_TIMEOUT);
    assert_eq!(mode, WatchMode::Events { watched: 2, polled: 1 });
    fs::write(real.join("SKILL.md"), skill_md("renamed", "New.")).unwrap();
    repository.refresh();
    let catalog = repository.catalog();
    assert_eq!(names(&catalog), ["renamed"]);
    assert_eq!(catalog.shadowed().len(), 1, "both paths must have the new name");
}

#[test]
fn there_is_one_watch_at_a_time_and_it_can_be_restarted() {
    let fixture = SkillFixture::new();
    fixture.write_skill("one");
    let (repository, handle) = open_and_watch(&fixture);
    assert!(matches!(repository.watch(), Err(WatchError::AlreadyWatched)));
    drop(handle);
    fixture.write_skill("two");
    assert_eq!(
        names_in(&repository.refresh())[0],
        ["two"],
        "without a watch, a refresh checks everything"
    );
    let handle = repository.watch().unwrap();
    handle.wait_until_ready(TEST_TIMEOUT);
    fixture.write_skill("three");
    assert_eq!(names_in(&repository.refresh())[0], ["three"]);
}

/// Starts this test binary again in a user namespace with a low limit on watches.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the test starts itself in a namespace with few watches"
)]
fn without_watches_directories_are_polled() {
    const INSIDE: &str = "SKILLBOX_TEST_FEW_WATCHES";
    if std::env::var_os(INSIDE).is_some() {
        return check_polling();
    }
    let script = "echo 5 > /proc/sys/user/max_inotify_watches && exec \"$0\" \"$@\"";
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", script])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "watch::without_watches_directories_are_polled",
            "--nocapture",
        ])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("unshare failed") || stderr.contains("max_inotify_watches") {
        eprintln!("skipped: this host has no user namespaces with limits of their own: {stderr}");
        return;
    }
    assert!(output.status.success(), "{stdout}\n{stderr}");
    assert!(stdout.contains("1 passed"), "{stdout}");
}

fn check_polling() {
    let fixture = SkillFixture::new();
    for index in 0..20 {
        fixture.write_skill(&format!("skill-{index:02}"));
    }
    let repository = Arc::new(fixture.open());
    let options = WatchOptions {
        poll_interval: Duration::from_millis(20),
        ..WatchOptions::default()
    };
    let handle = repository.watch_with(options).unwrap();
    let mode = handle.wait_until_ready(TEST_TIMEOUT);
    assert!(
        matches!(&mode, WatchMode::Polling { reason } if !reason.is_empty()),
        "{mode:?}"
    );
    let changes = handle.changes();
    fixture.write_file("skill-07/SKILL.md", skill_md("skill-07", "Edited."));
    assert_eq!(names_in(&changes.recv_timeout(TEST_TIMEOUT).unwrap())[1], ["skill-07"]);
    fixture.write_skill("added");
    wait_until("a new skill", || repository.catalog().get("added").is_some());
    fs::remove_dir_all(fixture.path("skill-03")).unwrap();
    repository.refresh();
    assert!(repository.catalog().get("skill-03").is_none());
}

/// The watches run out after the start.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the test starts itself in a namespace with few watches"
)]
fn directories_are_polled_after_watches_run_out() {
    const INSIDE: &str = "SKILLBOX_TEST_WATCHES_RUN_OUT";
    if std::env::var_os(INSIDE).is_some() {
        let fixture = SkillFixture::new();
        fixture.write_skill("first");
        let (repository, handle) = open_and_watch(&fixture);
        for index in 0..20 {
            fixture.write_skill(&format!("skill-{index:02}"));
        }
        assert_eq!(repository.refresh().added.len(), 20);
        assert!(
            matches!(handle.mode(), WatchMode::Polling { .. }),
            "{:?}",
            handle.mode()
        );
        fixture.write_file("skill-19/SKILL.md", skill_md("skill-19", "Edited."));
        assert_eq!(names_in(&repository.refresh())[1], ["skill-19"]);
        return;
    }
    let script = "echo 10 > /proc/sys/user/max_inotify_watches && exec \"$0\" \"$@\"";
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", script])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "watch::directories_are_polled_after_watches_run_out",
            "--nocapture",
        ])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("unshare failed") || stderr.contains("max_inotify_watches") {
        eprintln!("skipped: this host has no user namespaces with limits of their own: {stderr}");
        return;
    }
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && stdout.contains("1 passed"),
        "{stdout}\n{stderr}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// After any changes, a catalog that is refreshed by events equals that of a new scan.
    #[test]
    fn a_refresh_by_events_equals_a_scan(
        before in tree_changes(),
        steps in proptest::collection::vec(tree_changes(), 1..5),
    ) {
        let fixture = SkillFixture::new();
        for tree_change in &before {
            tree_change.apply(&fixture);
        }
        let (repository, handle) = open_and_watch(&fixture);
        for step in steps {
            for tree_change in &step {
                tree_change.apply(&fixture);
            }
            repository.refresh();
            let (refreshed, scanned) = (format_catalog(&repository.catalog()), format_catalog(&fixture.scan()));
            prop_assert_eq!(refreshed, scanned, "{:?} then {:?}", before, step);
        }
        let has_events = matches!(handle.mode(), WatchMode::Events { .. });
        prop_assert!(has_events);
    }
}

#[test]
fn unrelated_files_do_not_change_the_catalog() {
    let fixture = SkillFixture::new();
    fixture.write_skill("one");
    let (repository, handle) = open_and_watch(&fixture);
    let changes = handle.changes();
    fixture.write_file("one/notes.txt", "not of interest");
    fixture.write_file("README.md", "not of interest");
    TreeChange::RemoveTree("one/nothing".to_owned()).apply(&fixture);
    assert!(repository.refresh().is_empty());
    assert!(changes.recv_timeout(Duration::from_millis(300)).is_err());
}

#[test]
fn a_directory_that_is_moved_away_and_back_is_still_watched() {
    let fixture = SkillFixture::new();
    fixture.write_skill("group/one");
    let (repository, _handle) = open_and_watch(&fixture);
    for round in 0..20 {
        fs::rename(fixture.path("group"), fixture.outside().join("away")).unwrap();
        if round % 2 == 0 {
            repository.refresh();
        }
        fs::rename(fixture.outside().join("away"), fixture.path("group")).unwrap();
        repository.refresh();
        fixture.write_file("group/one/SKILL.md", skill_md("one", &format!("Round {round}.")));
        assert_eq!(names_in(&repository.refresh())[1], ["one"], "round {round}");
        fs::remove_dir_all(fixture.path("group")).unwrap();
        fixture.write_skill("group/one");
        repository.refresh();
        fixture.write_file("group/one/SKILL.md", skill_md("one", &format!("Second {round}.")));
        assert_eq!(names_in(&repository.refresh())[1], ["one"], "round {round}");
    }
}
