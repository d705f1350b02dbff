//! What of a changed skill directory is an output of the run.

use serde_json::json;

use crate::harness::{Answer, Fixture, need_docker, tree_contents, with_docker};

#[test]
fn only_what_a_run_created_or_changed_is_collected() {
    check_collection("templates", &[]);
}

#[test]
fn only_what_a_run_created_or_changed_is_collected_in_containers() {
    if need_docker() {
        with_docker(|| check_collection("templates", &[]));
    }
}

/// The kernel has no overlay for a skill with such a name: its directory is a copy.
#[test]
fn a_copy_of_a_skill_gives_the_same_outputs_as_an_overlay() {
    check_collection("plain, with a comma", &[]);
    check_collection("of:colons", &[]);
}

fn check_collection(name: &str, args: &[&str]) {
    let fixture = Fixture::new();
    let source = fixture.add_skill(
        name,
        &[
            ("a.txt", "one"),
            ("b.txt", "two"),
            ("c.txt", "three"),
            ("d.txt", "four"),
            ("deep/e.txt", "five"),
            ("deep/f.txt", "six"),
        ],
    );
    let before = tree_contents(&source);
    let command = "chmod 600 a.txt; touch -d 2001-01-01 b.txt; rm c.txt; echo -n four > d.txt; \
                   echo changed > deep/e.txt; rm deep/f.txt; mkdir deep/new; echo new > deep/new/g.txt; \
                   ln -s /etc/passwd link; ln deep/new/g.txt deep/new/h.txt; mkfifo fifo; echo result > out/r.txt; \
                   mkdir -p scripts/__pycache__; echo cached > scripts/__pycache__/x.pyc; ls";
    let run = |globs: &[String]| -> Answer {
        let request = json!({"skill": name, "command": command, "output_files": globs});
        fixture.request(request).with_args(args).run().expect_report()
    };
    let path = |below: &str| format!("skills/{name}/{below}");
    let all = run(&[path("**")]);
    let expected = [path("deep/e.txt"), path("scripts/__pycache__/x.pyc")];
    assert_eq!(all.output_names(), expected, "{}", all.describe());
    assert_eq!(all.output_file(&expected[0])["content"], "changed\n");
    let refused = [
        path("deep/new/g.txt"),
        path("deep/new/h.txt"),
        path("fifo"),
        path("link"),
    ];
    assert_eq!(all.refused_output_names(), refused, "{}", all.describe());
    // Without globs the caches of Python are left out, and results come first.
    let listed = run(&[]);
    assert_eq!(
        listed.output_names(),
        ["out/r.txt", &expected[0]],
        "{}",
        listed.describe()
    );
    let one = run(&[path("a.txt"), path("d.txt"), path("deep/*")]);
    assert_eq!(one.output_names(), [&expected[0]], "{}", one.describe());
    assert_eq!(tree_contents(&source), before, "the skill changed");
}

#[test]
fn profiles_and_the_setting_keep_the_directory_read_only() {
    let fixture = Fixture::new();
    fixture.add_skill("fixed", &[("a.txt", "one")]);
    fixture.add_profile_yaml("mine", "extends: default\nworkspace:\n  skill_dir: read_only\n");
    let command = "echo new > b.txt; echo more >> a.txt; cat *.txt; ls -d b.txt";
    for (profile, args) in [
        ("strict", &[][..]),
        ("mine", &[]),
        ("default", &["--skill-dir", "read_only"]),
    ] {
        let request = json!({"skill": "fixed", "command": command, "profile": profile});
        let answer = fixture.request(request).with_args(args).run().expect_report();
        assert_eq!(answer.stdout(), "one", "{}", answer.describe());
        assert!(answer.mentions("Read-only file system"), "{}", answer.describe());
        assert!(answer.output_names().is_empty(), "{}", answer.describe());
    }
    let request = json!({"skill": "fixed", "command": command});
    let control = fixture.request(request).run().expect_report();
    assert_eq!(control.stdout(), "onemore\nnew\nb.txt\n", "{}", control.describe());
}

#[test]
fn skills_beside_the_one_that_runs_stay_read_only() {
    let fixture = Fixture::new();
    fixture.add_skill("main", &[]);
    fixture.add_skill("beside", &[("a.txt", "one\n")]);
    let command = "echo x > ../beside/a.txt; echo x > ../beside/b.txt; cat ../beside/*.txt; echo y > mine; cat mine";
    let request = json!({"skill": "main", "command": command, "with_skills": ["beside"]});
    let answer = fixture.request(request).run().expect_report();
    assert_eq!(answer.stdout(), "one\ny\n", "{}", answer.describe());
}
