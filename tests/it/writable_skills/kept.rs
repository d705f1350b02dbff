//! `skill_dir_keep = session`: a session keeps what its runs did to their skills, where every skill may run.

use std::fs;

use serde_json::json;

use crate::harness::{Answer, Fixture};

const KEEP: [&str; 2] = ["--skill-dir-keep", "session"];

fn run(fixture: &Fixture, skill: &str, session: &str, command: &str) -> Answer {
    let request = json!({"skill": skill, "command": command, "output_files": [format!("skills/{skill}/**")]});
    let invocation = fixture.request(request).with_args(&KEEP).in_session(session);
    invocation.run().expect_report()
}

#[test]
fn a_session_keeps_changes_until_the_skill_changes() {
    let fixture = Fixture::new();
    let source = fixture.add_skill("caching", &[("a.txt", "one\n")]);
    fixture.add_skill("other", &[]);
    let first = run(&fixture, "caching", "s", "echo kept > cache; rm a.txt");
    assert_eq!(first.output_names(), ["skills/caching/cache"], "{}", first.describe());
    // Other skills and other sessions do not see it.
    let other = run(&fixture, "other", "s", "ls -A; echo x > cache");
    assert_eq!(other.stdout(), "SKILL.md\ninputs\nout\nwork\n", "{}", other.describe());
    let elsewhere = run(&fixture, "caching", "t", "cat a.txt cache");
    assert_eq!(elsewhere.stdout(), "one\n", "{}", elsewhere.describe());
    let second = run(&fixture, "caching", "s", "cat cache; ls a.txt; echo more > second");
    assert_eq!(second.stdout(), "kept\n", "{}", second.describe());
    // What an earlier run wrote is no output of this one.
    assert_eq!(
        second.output_names(),
        ["skills/caching/second"],
        "{}",
        second.describe()
    );
    fs::write(source.join("a.txt"), "edited by its owner\n").unwrap();
    let third = run(&fixture, "caching", "s", "cat a.txt; ls cache second");
    assert_eq!(third.stdout(), "edited by its owner\n", "{}", third.describe());
}

#[test]
fn a_run_without_the_setting_discards_what_was_kept() {
    let fixture = Fixture::new();
    fixture.add_skill("caching", &[]);
    run(&fixture, "caching", "s", "echo kept > cache");
    let request = fixture.request(json!({"skill": "caching", "command": "ls cache"}));
    let without = request.in_session("s").run().expect_report();
    assert_eq!(without.stdout(), "", "{}", without.describe());
    let again = run(&fixture, "caching", "s", "ls cache");
    assert_eq!(again.stdout(), "", "{}", again.describe());
}

#[test]
fn changes_are_not_kept_where_skills_need_an_approval() {
    let fixture = Fixture::new();
    let request = fixture.request(json!({"command": "true"}));
    let answer = request.with_args(&KEEP).with_args(&["--trust", "approved"]).run();
    assert!(answer.is_refused(), "{}", answer.describe());
    assert!(answer.mentions("skill_dir_keep"), "{}", answer.describe());
    assert!(answer.mentions("trust mode `open`"), "{}", answer.describe());
}
