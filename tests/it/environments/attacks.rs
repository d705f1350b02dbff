//! Hostile packages: nothing of them runs while they are installed, and at run time they have the rights of the script.

use std::fs;
use std::path::PathBuf;

use super::local_registry::LocalRegistry;
use crate::harness::{Fixture, program};

/// What a payload achieves outside a sandbox. The fourth thing needs an environment at `/env`.
const EVERYTHING: &str = r#"["canary", "write", "network"]"#;

/// Installs a package with a tool of the host, into a directory of the test, and runs `command` there.
#[track_caller]
fn control(fixture: &Fixture, registry: &LocalRegistry<'_>, line: &str) -> String {
    let directory = fixture.path("scratch/control");
    fs::create_dir_all(&directory).unwrap();
    let output = program("/bin/bash")
        .args(["-c", line])
        .current_dir(&directory)
        .env("HOME", &directory)
        .env("URL", format!("http://127.0.0.1:{}", registry.port()))
        .env_remove("http_proxy")
        .output()
        .unwrap();
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Files that a payload wrote outside its environment.
fn written(fixture: &Fixture) -> Vec<PathBuf> {
    let files = fs::read_dir(fixture.path("tmp"))
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    let files = files.filter(|path| path.to_str().unwrap().contains("written-by"));
    files.inspect(|path| fs::remove_file(path).unwrap()).collect()
}

#[test]
fn s43_h236_a_wheel_runs_nothing_when_it_is_installed_and_is_confined_afterwards() {
    let fixture = Fixture::new();
    let Some(registry) = LocalRegistry::start(&fixture) else {
        return;
    };
    let install = "python3 -m pip install --quiet --disable-pip-version-check --index-url $URL/simple/ --target site \
                   pth-pkg 2>&1; PYTHONPATH=site python3 -c 'import pth_payload, json; print(json.dumps(pth_payload.DONE))'";
    let outside = control(&fixture, &registry, install);
    assert!(outside.contains(EVERYTHING), "the control: {outside}");
    assert_eq!(written(&fixture).len(), 1);
    registry.forget_requests();

    fixture.add_skill("pth", &[("requirements.txt", "pth-pkg\n")]);
    let built = registry
        .configure(fixture.command(&["env", "build", "pth", "--json"]))
        .run();
    assert_eq!(built.code, Some(0), "{}", built.describe());
    assert!(
        registry.hits().is_empty(),
        "code of the package ran: {:?}",
        registry.hits()
    );
    assert!(written(&fixture).is_empty());
    let startup = "python3 -c 'import pth_payload, json; print(json.dumps(pth_payload.DONE))'";
    assert_eq!(registry.output_of("pth", startup), "[]");
    assert_eq!(registry.output_of("pth", "pth-tool"), "[]");
    assert!(registry.hits().is_empty() && written(&fixture).is_empty());
}

#[test]
fn s44_h237_the_greater_version_of_a_stranger_gains_nothing() {
    let fixture = Fixture::new();
    let Some(registry) = LocalRegistry::start(&fixture) else {
        return;
    };
    let install = "python3 -m pip install --quiet --disable-pip-version-check --index-url $URL/simple/ --target site \
                   internal-name 2>&1; PYTHONPATH=site python3 -c 'import internal_name, json; print(json.dumps(internal_name.DONE))'";
    let outside = control(&fixture, &registry, install);
    assert!(outside.contains(EVERYTHING), "the control: {outside}");
    written(&fixture);
    registry.forget_requests();

    fixture.add_skill("confused", &[("requirements.txt", "internal-name>=1.0\n")]);
    let done = registry.output_of(
        "confused",
        "python3 -c 'import internal_name, json; print(json.dumps(internal_name.DONE))'",
    );
    assert_eq!(done, "[]");
    assert!(registry.hits().is_empty() && written(&fixture).is_empty());
}

#[test]
fn s43_h238_a_source_distribution_is_never_executed() {
    let fixture = Fixture::new();
    let Some(registry) = LocalRegistry::start(&fixture) else {
        return;
    };
    let outside = control(
        &fixture,
        &registry,
        "curl -sS $URL/files/source-only-1.0.tar.gz | tar xz && cd source-only-1.0 && python3 setup.py",
    );
    assert!(outside.contains(EVERYTHING), "the control: {outside}");
    written(&fixture);
    registry.forget_requests();

    fixture.add_skill("source", &[("requirements.txt", "source-only\n")]);
    let refused = registry.run("source", "true");
    assert_eq!(refused.expect_refusal().0, "environment_failed");
    assert!(registry.hits().is_empty() && written(&fixture).is_empty());
}

#[test]
fn s43_h239_an_install_script_of_node_never_runs() {
    let fixture = Fixture::new();
    let Some(registry) = LocalRegistry::start(&fixture) else {
        return;
    };
    let outside = control(
        &fixture,
        &registry,
        "npm install --registry=$URL/ --foreground-scripts --no-audit --no-fund postinstall 2>&1",
    );
    assert!(
        outside.contains(r#"["canary","write","network"]"#),
        "the control: {outside}"
    );
    written(&fixture);
    registry.forget_requests();

    fixture.add_skill(
        "js",
        &[("package.json", r#"{"dependencies": {"postinstall": "1.0.0"}}"#)],
    );
    let built = registry
        .configure(fixture.command(&["env", "build", "js", "--json"]))
        .run();
    assert_eq!(built.code, Some(0), "{}", built.describe());
    assert!(registry.hits().is_empty(), "{:?}", registry.hits());
    assert_eq!(registry.output_of("js", "node -e 'require(\"postinstall\")'"), "[]");
    assert!(registry.hits().is_empty() && written(&fixture).is_empty());
}
