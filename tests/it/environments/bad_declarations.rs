//! Declarations that are refused, and installations that fail: a clear error before the run, and nothing half built.

use super::local_registry::LocalRegistry;
use crate::harness::Fixture;

/// Files of a skill, the code of the refusal, and the parts of its message.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a [&'a str]);

#[track_caller]
fn check(fixture: &Fixture, registry: &LocalRegistry<'_>, name: &str, (files, code, parts): Case<'_>, command: &str) {
    fixture.add_skill(name, files);
    let answer = registry.run(name, command);
    assert_eq!(answer.expect_refusal().0, code, "{name}: {}", answer.describe());
    for part in parts {
        assert!(
            answer.describe().contains(part),
            "{name} does not name {part}: {}",
            answer.describe()
        );
    }
    let stored = fixture.command(&["env", "list", "--json"]).run();
    assert_eq!(stored.json()["environments"], serde_json::json!([]), "{name}");
}

#[test]
fn s43_h240_what_would_read_the_host_or_choose_a_registry_is_refused() {
    let fixture = Fixture::new();
    let Some(registry) = LocalRegistry::start(&fixture) else {
        return;
    };
    let host = format!("good-pkg\n-r {}\n", fixture.path_str("home/.netrc"));
    let cases: [Case<'_>; 9] = [
        (
            &[("requirements.txt", "good-pkg\nx @ https://example.org/x.whl")],
            "environment_invalid",
            &["requirements.txt:2", "x: "],
        ),
        (
            &[("requirements.txt", "./local")],
            "environment_invalid",
            &["requirements.txt:1", "./local"],
        ),
        (
            &[("requirements.txt", "\n\n-e .")],
            "environment_invalid",
            &["requirements.txt:3", "-e"],
        ),
        (
            &[("requirements.txt", &host)],
            "environment_invalid",
            &["requirements.txt:2", "-r"],
        ),
        (
            &[("requirements.txt", "--index-url https://example.org/\ngood-pkg")],
            "environment_invalid",
            &["requirements.txt:1", "--index-url"],
        ),
        (
            &[("requirements.txt", "git+https://example.org/x")],
            "environment_invalid",
            &["requirements.txt:1"],
        ),
        (
            &[(
                "pyproject.toml",
                "[project]\ndependencies = [\n  \"a @ file:///etc/passwd\",\n]\n",
            )],
            "environment_invalid",
            &["pyproject.toml:3"],
        ),
        (
            &[("package.json", "{\"dependencies\": {\n\"a\": \"file:../../etc\"}}")],
            "environment_invalid",
            &["package.json:2", "a: "],
        ),
        (
            &[("scripts/requirements.txt", "${HOME}")],
            "environment_invalid",
            &["scripts/requirements.txt:1"],
        ),
    ];
    for (index, case) in cases.into_iter().enumerate() {
        check(&fixture, &registry, &format!("bad-{index}"), case, "true");
    }
    assert!(
        registry.requests().is_empty(),
        "nothing is asked of a registry: {:?}",
        registry.requests()
    );
}

#[test]
fn what_cannot_be_installed_names_the_package_and_its_line() {
    let fixture = Fixture::new();
    let Some(registry) = LocalRegistry::start(&fixture) else {
        return;
    };
    let hash = format!("good-pkg==1.0 --hash=sha256:{}", "a".repeat(64));
    let failed = "environment_failed";
    let cases: [Case<'_>; 9] = [
        (
            &[("requirements.txt", "good-pkg\nno-such-package\n")],
            failed,
            &["requirements.txt:2: no-such-package", "no wheel"],
        ),
        (
            &[("requirements.txt", "good-pkg==7\n")],
            failed,
            &["requirements.txt:1: good-pkg==7", "no wheel"],
        ),
        (
            &[("requirements.txt", "source-only\n")],
            failed,
            &["requirements.txt:1: source-only", "no wheel"],
        ),
        (&[("requirements.txt", &hash)], failed, &["good-pkg", "hash"]),
        (&[("requirements.txt", "wrong-hash\n")], failed, &["wrong-hash", "hash"]),
        (
            &[("requirements.txt", "needs-good\ngood-pkg==1.1\n")],
            failed,
            &["pip failed"],
        ),
        (&[("requirements.txt", "escaping\n")], failed, &["escaping"]),
        (
            &[("package.json", "{\"dependencies\": {\"no-such-package\": \"1\"}}")],
            failed,
            &["no-such-package"],
        ),
        (
            &[("package.json", "{\"dependencies\": {\"plain\": \"^7.0.0\"}}")],
            failed,
            &["plain"],
        ),
    ];
    for (index, case) in cases.into_iter().enumerate() {
        check(&fixture, &registry, &format!("missing-{index}"), case, "true");
    }
    assert!(registry.hits().is_empty(), "{:?}", registry.hits());
    let python = "# /// script\n# requires-python = \">=4\"\n# dependencies = [\"good-pkg\"]\n# ///\n";
    let case: Case<'_> = (&[("scripts/a.py", python)], failed, &["needs Python >=4"]);
    check(&fixture, &registry, "python-4", case, "python3 scripts/a.py");
}

#[test]
fn a_registry_that_is_down_or_needs_credentials_is_named() {
    let fixture = Fixture::new();
    let Some(registry) = LocalRegistry::start(&fixture) else {
        return;
    };
    fixture.add_skill("py", &[("requirements.txt", "good-pkg\n")]);
    let run = |index: &str| {
        let request = serde_json::json!({"skill": "py", "command": "true"});
        registry
            .configure(fixture.request(request))
            .env("PIP_INDEX_URL", index)
            .run()
    };
    let down = run("http://127.0.0.1:1/simple/");
    assert_eq!(down.expect_refusal().0, "environment_failed");
    assert!(
        down.describe().contains("cannot reach the registry"),
        "{}",
        down.describe()
    );
    let secret = run("https://user:s3cret@packages.example/simple/");
    assert_eq!(secret.expect_refusal().0, "environment_failed");
    assert!(
        secret.describe().contains("credentials") && !secret.describe().contains("s3cret"),
        "{}",
        secret.describe()
    );
}
