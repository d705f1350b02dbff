//! Scripts with packages: found without activation, installed once, without a network in the run.

use serde_json::json;

use super::local_registry::LocalRegistry;
use crate::harness::Fixture;

#[test]
fn interpreters_programs_and_shebangs_find_the_packages() {
    let fixture = Fixture::new();
    let Some(registry) = LocalRegistry::start(&fixture) else {
        return;
    };
    let import = "import good_pkg\nprint(good_pkg.VALUE)\n";
    let directory = fixture.add_skill(
        "py",
        &[
            ("requirements.txt", "# packages\ngood-pkg==1.0\n"),
            ("scripts/a.py", import),
            ("scripts/env.py", &format!("#!/usr/bin/env python3\n{import}")),
            ("scripts/full.py", &format!("#!/usr/bin/python3\n{import}")),
            ("scripts/__init__.py", ""),
            ("scripts/sibling.py", "NAME = 'sibling'\n"),
            (
                "scripts/uses.py",
                "import good_pkg, sibling\nprint(sibling.NAME, good_pkg.VALUE)\n",
            ),
            (
                "scripts/module.py",
                "import good_pkg\nfrom scripts import sibling\nprint(sibling.NAME)\n",
            ),
        ],
    );
    for script in ["env.py", "full.py"] {
        use std::os::unix::fs::PermissionsExt;
        let path = directory.join("scripts").join(script);
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let first = registry.run("py", "python3 scripts/a.py").expect_report();
    assert_eq!(first.stdout().trim(), "good 1.0", "{}", first.describe());
    let environment = &first.json()["environment"];
    assert_eq!(
        (&environment["kind"], &environment["packages"]),
        (&json!("python"), &json!(1))
    );
    assert!(environment["built_ms"].as_u64().unwrap() > 0);
    registry.forget_requests();
    for (command, expected) in [
        ("python3 scripts/a.py", "good 1.0"),
        ("python scripts/a.py", "good 1.0"),
        ("scripts/env.py", "good 1.0"),
        ("scripts/full.py", "good 1.0"),
        ("/usr/bin/python3 scripts/a.py", "good 1.0"),
        ("good-tool", "tool good 1.0"),
        ("cd /tmp && bash -c 'good-tool'", "tool good 1.0"),
        ("python3 scripts/uses.py", "sibling good 1.0"),
        ("python3 -m scripts.module", "sibling"),
        ("python3 -c 'import sys, good_pkg; print(sys.prefix)'", "/env"),
        ("touch /env/x 2>&1 || echo refused", "refused"),
        (
            "grep -o ' /env ro,nosuid,nodev' /proc/self/mountinfo",
            "/env ro,nosuid,nodev",
        ),
    ] {
        let answer = registry.run("py", command).expect_report();
        let last = answer.stdout().lines().last().unwrap_or_default().trim().to_owned();
        assert_eq!(last, expected, "{command}: {}", answer.describe());
        assert_eq!(
            answer.json()["environment"]["digest"],
            environment["digest"],
            "{command}"
        );
        assert_eq!(answer.json()["environment"].get("built_ms"), None, "{command}");
    }
    assert!(registry.requests().is_empty(), "{:?}", registry.requests());
    let network = "python3 -c 'import urllib.request as u; u.urlopen(\"http://127.0.0.1:PORT/hit/run\", timeout=5)'";
    let network = network.replace("PORT", &registry.port().to_string());
    assert_ne!(registry.run("py", &network).expect_report().json()["exit_code"], 0);
    assert!(registry.hits().is_empty());
}

#[test]
fn the_metadata_of_the_script_that_runs_decides() {
    let fixture = Fixture::new();
    let Some(registry) = LocalRegistry::start(&fixture) else {
        return;
    };
    let script = |version: &str| {
        format!(
            "# /// script\n# dependencies = [\"good-pkg=={version}\"]\n# ///\nimport good_pkg\nprint(good_pkg.VALUE)\n"
        )
    };
    fixture.add_skill(
        "two",
        &[
            ("scripts/old.py", &script("1.0")),
            ("scripts/new.py", &script("1.1")),
            ("scripts/none.py", "print('none')\n"),
        ],
    );
    assert_eq!(registry.output_of("two", "python3 scripts/old.py"), "good 1.0");
    assert_eq!(
        registry.output_of("two", "python3 $SKILL_DIR/scripts/new.py"),
        "good 1.1"
    );
    let none = registry.run("two", "python3 scripts/none.py").expect_report();
    assert_eq!(none.json().get("environment"), None, "{}", none.describe());
    let script = json!({"skill": "two", "script": "scripts/new.py"});
    let by_path = registry.configure(fixture.request(script)).run().expect_report();
    assert_eq!(by_path.stdout().trim(), "good 1.1");
}

#[test]
fn modules_of_both_kinds_find_packages_of_node() {
    let fixture = Fixture::new();
    let Some(registry) = LocalRegistry::start(&fixture) else {
        return;
    };
    fixture.add_skill(
        "js",
        &[
            (
                "package.json",
                r#"{"name": "js", "dependencies": {"plain": "^1.0.0", "modern": "1.0.0", "inner": "1"}}"#,
            ),
            (
                "scripts/a.mjs",
                "import modern from 'modern';\nimport plain from 'plain';\nconsole.log(modern, plain);\n",
            ),
            ("scripts/b.cjs", "console.log(require('plain'));\n"),
        ],
    );
    assert_eq!(
        registry.output_of("js", "node scripts/a.mjs"),
        "modern plain inner 1.2.0"
    );
    registry.forget_requests();
    assert_eq!(
        registry.output_of("js", "cd / && node $SKILL_DIR/scripts/b.cjs"),
        "plain inner 1.2.0"
    );
    assert_eq!(
        registry.output_of("js", "node -e 'import(\"modern\").then(m => console.log(m.default))'"),
        "modern"
    );
    assert!(registry.requests().is_empty());
    let both = registry.run("js", "inner-tool").expect_report();
    assert_eq!(both.stdout().trim(), "tool inner 1.2.0", "{}", both.describe());
    assert_eq!(both.json()["environment"]["kind"], "node");
}

#[test]
fn a_server_and_a_setting_refuse_to_install_during_a_run() {
    let fixture = Fixture::new();
    let Some(registry) = LocalRegistry::start(&fixture) else {
        return;
    };
    fixture.add_skill(
        "py",
        &[
            ("requirements.txt", "good-pkg\n"),
            ("scripts/a.py", "import good_pkg\n"),
        ],
    );
    let prebuilt = ["--environments", "prebuilt"];
    let refused = registry.run_with("py", "python3 scripts/a.py", &prebuilt);
    assert_eq!(refused.expect_refusal().0, "environment_missing");
    assert!(
        refused.describe().contains("skillbox env build py"),
        "{}",
        refused.describe()
    );
    assert!(registry.requests().is_empty());
    let off = registry
        .run_with("py", "python3 -c 'print(1)'", &["--environments", "off"])
        .expect_report();
    assert_eq!((off.stdout().trim(), off.json().get("environment")), ("1", None));

    let built = registry
        .configure(fixture.command(&["env", "build", "py", "--json"]))
        .run();
    let environments = built.json()["environments"].as_array().unwrap().clone();
    assert_eq!(environments.len(), 1, "{}", built.describe());
    assert_eq!(environments[0]["packages"], json!(["good-pkg 1.1"]));
    let found = registry
        .run_with("py", "python3 scripts/a.py", &prebuilt)
        .expect_report();
    assert_eq!(found.json()["environment"]["digest"], environments[0]["digest"]);
    assert_eq!(found.json()["exit_code"], 0);
}

#[test]
fn the_operator_adds_packages_for_one_call_and_the_audit_log_has_their_digest() {
    let fixture = Fixture::new();
    let Some(registry) = LocalRegistry::start(&fixture) else {
        return;
    };
    fixture.add_skill("bare", &[("scripts/a.py", "import good_pkg\nprint(good_pkg.VALUE)\n")]);
    let missing = registry.run("bare", "python3 scripts/a.py").expect_report();
    assert_eq!(missing.json()["exit_code"], 1);
    assert!(
        missing.json()["hint"].as_str().unwrap().contains("--with good-pkg"),
        "{}",
        missing.describe()
    );
    for more in [
        &["--with", "good-pkg==1.0,needs-good"][..],
        &["--with", "good-pkg==1.0", "--environments", "off"],
    ] {
        let found = registry.run_with("bare", "python3 scripts/a.py", more).expect_report();
        assert_eq!(found.stdout().trim(), "good 1.0", "{}", found.describe());
        let digest = found.json()["environment"]["digest"].as_str().unwrap().to_owned();
        let log = fixture.command(&["audit", "export"]).run();
        assert!(
            String::from_utf8_lossy(&log.process.stdout).contains(&digest),
            "{}",
            log.describe()
        );
    }
    let refused = registry.run_with("bare", "true", &["--with", "../x"]);
    assert_eq!(refused.expect_refusal().0, "environment_invalid");
}
