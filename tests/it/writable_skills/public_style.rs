//! A skill in the style of public ones runs unchanged, and stays as it is.

use serde_json::json;

use crate::harness::{Fixture, need_docker, tree_contents, with_docker};

/// Frontmatter that PyYAML reads: a quoted value goes on without indentation, beside a list.
const ODD_SKILL_MD: &str = "---
name: case-report
description: \"Writes case reports from a template,
with a cache in its own directory.\"
tags:
- reports
- medicine
---

# Case report

Run `python scripts/make_report.py`.
";

/// Writes a report beside the skill, copies the template and edits the copy, and keeps a cache in its directory.
const MAKE_REPORT: &str = r#"
import json, os, pathlib, shutil
here = pathlib.Path(__file__).resolve().parent.parent
cache = here / ".cache" / "runs.json"
cache.parent.mkdir(exist_ok=True)
runs = json.loads(cache.read_text()) if cache.exists() else []
runs.append("run")
cache.write_text(json.dumps(runs))
shutil.copytree(here / "templates", here / "build", dirs_exist_ok=True)
shutil.copy(here / "templates" / "report.md", here / "templates" / "report-2.md")
for path in [here / "build" / "report.md", here / "templates" / "report-2.md", here / "templates" / "report.md"]:
    path.write_text(path.read_text().replace("TITLE", "Case 7"))
with open("my_case_report.md", "w") as report:
    report.write((here / "build" / "report.md").read_text())
print("runs:", len(runs))
"#;

const CHECK: &str = r#"
import pathlib
text = (pathlib.Path.home() / ".claude/skills/case-report/my_case_report.md").read_text()
print("checked" if "Case 7" in text else "not found")
"#;

const COMMAND: &str = "python scripts/make_report.py && python ~/.claude/skills/case-report/scripts/check.py && \
                       cat nested/appendix/SKILL.md | tail -1";

#[test]
fn a_skill_that_writes_beside_itself_runs_unchanged() {
    check_public_style();
}

#[test]
fn a_skill_that_writes_beside_itself_runs_unchanged_in_containers() {
    if need_docker() {
        with_docker(check_public_style);
    }
}

fn check_public_style() {
    let fixture = Fixture::new();
    let nested = "---\nname: appendix\ndescription: A nested skill.\n---\nnested text\n";
    let source = fixture.add_skill(
        "case-report",
        &[
            ("SKILL.md", ODD_SKILL_MD),
            ("scripts/make_report.py", MAKE_REPORT),
            ("scripts/check.py", CHECK),
            ("templates/report.md", "# TITLE\n"),
            ("nested/appendix/SKILL.md", nested),
        ],
    );
    let before = tree_contents(&source);
    let run = |session: Option<&str>| {
        let request = json!({"skill": "case-report", "command": COMMAND});
        let answer = fixture
            .request(request)
            .in_optional_session(session)
            .run()
            .expect_report();
        assert_eq!(
            answer.stdout(),
            "runs: 1\nchecked\nnested text\n",
            "{}",
            answer.describe()
        );
        let listed = [
            "skills/case-report/.cache/runs.json",
            "skills/case-report/build/report.md",
            "skills/case-report/my_case_report.md",
            "skills/case-report/templates/report-2.md",
            "skills/case-report/templates/report.md",
        ];
        assert_eq!(answer.output_names(), listed, "{}", answer.describe());
        assert!(answer.refused_output_names().is_empty(), "{}", answer.describe());
        assert_eq!(answer["warnings"], json!([]), "{}", answer.describe());
        assert_eq!(tree_contents(&source), before, "the skill changed");
    };
    // Every run sees the original, in a session and without one.
    for session in [None, None, Some("reports"), Some("reports")] {
        run(session);
    }
}

#[test]
fn a_script_that_changes_itself_is_the_approved_one_in_the_next_run() {
    check_approved_content();
}

#[test]
fn a_script_that_changes_itself_is_the_approved_one_in_the_next_run_in_containers() {
    if need_docker() {
        with_docker(check_approved_content);
    }
}

fn check_approved_content() {
    let fixture = Fixture::new();
    fixture.add_skill("approved", &[("scripts/x.py", "print('approved content')\n")]);
    fixture.command(&["approve", "approved"]).with_args(&["--yes"]).run();
    let run = |command: &str| {
        let request = fixture.request(json!({"skill": "approved", "command": command}));
        let answer = request.with_args(&["--trust", "approved"]).in_session("one").run();
        answer.expect_report()
    };
    let first = run("echo 'print(\"changed\")' > scripts/x.py; python scripts/x.py");
    assert_eq!(first.stdout(), "changed\n", "{}", first.describe());
    let second = run("python scripts/x.py; ls -A scripts");
    assert_eq!(second.stdout(), "approved content\nx.py\n", "{}", second.describe());
    assert_eq!(first["skill_digest"], second["skill_digest"]);
}
