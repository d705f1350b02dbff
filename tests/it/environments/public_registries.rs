//! Packages that skills use most, from the registries of this host.

use std::process::Stdio;

use serde_json::json;

use crate::harness::{Fixture, need, program};

/// Whether the registry of pip of this host can be reached.
fn need_registry(fixture: &Fixture) -> bool {
    let directory = fixture.path("scratch/probe");
    let status = program("/usr/bin/python3")
        .args([
            "-I",
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--dest",
        ])
        .arg(directory)
        .args(["--retries", "1", "--timeout", "20", "six"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    need(
        status.is_ok_and(|status| status.success()),
        "the registry of pip, and pip of /usr/bin/python3",
    )
}

#[test]
fn numpy_of_a_script_and_tables_of_a_skill_are_installed_once() {
    let fixture = Fixture::new();
    if !need_registry(&fixture) {
        return;
    }
    let numbers =
        "# /// script\n# dependencies = [\"numpy\"]\n# ///\nimport numpy\nprint(int(numpy.arange(5).sum()))\n";
    fixture.add_skill("numbers", &[("scripts/sum.py", numbers)]);
    let tables = "import pandas, os\nframe = pandas.DataFrame({'a': [1, 2]})\n\
                  path = os.environ['OUTPUT_DIR'] + '/t.xlsx'\nframe.to_excel(path)\nprint(pandas.read_excel(path)['a'].sum())\n";
    fixture.add_skill(
        "tables",
        &[("requirements.txt", "openpyxl\npandas\n"), ("scripts/table.py", tables)],
    );
    for (skill, script, expected) in [("numbers", "scripts/sum.py", "10"), ("tables", "scripts/table.py", "3")] {
        let run = || {
            let request = json!({"skill": skill, "script": script, "timeout": 100});
            fixture.request(request).run().expect_report()
        };
        let first = run();
        assert_eq!(first.stdout().trim(), expected, "{}", first.describe());
        assert!(first.json()["environment"]["built_ms"].is_u64());
        let second = run();
        assert_eq!(second.stdout().trim(), expected);
        assert_eq!(second.json()["environment"].get("built_ms"), None);
        assert_eq!(second.json().get("network"), None, "the run itself has no network");
    }
}
