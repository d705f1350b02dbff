//! Where values come from, and what happens if there is none.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::support::{VALUE, VARIABLE, env_secret, with_config, write_config};
use crate::harness::Fixture;

#[test]
fn a_secret_without_a_value_refuses_the_run_and_is_named() {
    let fixture = Fixture::new();
    let file = fixture.add_host_file("token", VALUE);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let open = fixture.add_host_file("open-token", VALUE);
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).unwrap();
    let run = |from: &str| {
        let config = format!("[secrets.TOKEN]\nfrom = \"{from}\"\ninject = \"env\"\n");
        let invocation = fixture.request(json!({"command": "printf '%s' \"$TOKEN\" | sha256sum"}));
        with_config(&fixture, invocation.with_args(&["--secret", "TOKEN"]), &config).run()
    };
    let sources = [
        format!("env:{VARIABLE}"),
        format!("file:{}", file.display()),
        format!("command:cat {}", file.display()),
    ];
    let digests: Vec<String> = sources
        .iter()
        .map(|from| run(from).expect_report().stdout().to_owned())
        .collect();
    assert!(digests.iter().all(|digest| *digest == digests[0]), "{digests:?}");
    for (from, reason) in [
        ("env:NOT_SET_ANYWHERE".to_owned(), "NOT_SET_ANYWHERE is not set"),
        ("file:/nonexistent".to_owned(), "cannot read /nonexistent"),
        (format!("file:{}", open.display()), "chmod o-rwx"),
        (format!("command:cat {}; false", file.display()), "the command failed"),
        ("command:echo short".to_owned(), "at least 8"),
    ] {
        let answer = run(&from);
        assert_eq!(answer.expect_refusal().0, "secret_missing", "{from}");
        let is_named = answer.mentions("TOKEN") && answer.mentions(reason);
        assert!(is_named && !answer.mentions(VALUE), "{from}: {}", answer.describe());
    }
    let unknown = fixture
        .request(json!({"command": "true"}))
        .with_args(&["--secret", "OTHER"]);
    let answer = with_config(&fixture, unknown, &env_secret("")).run();
    assert_eq!(answer.expect_refusal().0, "secret_missing");
    assert!(answer.mentions("[secrets.OTHER]"), "{}", answer.describe());
}

#[test]
fn the_commands_show_names_and_never_values() {
    let fixture = Fixture::new();
    let config = env_secret("") + "[secrets.MISSING]\nfrom = \"env:NOT_SET_ANYWHERE\"\nhosts = [\"api.test\"]\n";
    let path = write_config(&fixture, &config);
    let run = |args: &[&str]| {
        fixture
            .command(args)
            .with_args(&["--config", &path])
            .env(VARIABLE, VALUE)
            .run()
    };
    for (args, code) in [
        (&["secrets", "list"] as &[&str], 0),
        (&["secrets", "check"], 1),
        (&["secrets", "check", "TOKEN"], 0),
        (&["secrets", "list", "--json"], 0),
        (&["config", "show"], 0),
    ] {
        let answer = run(args);
        assert_eq!(answer.code, Some(code), "{args:?}: {}", answer.describe());
        assert!(
            answer.mentions("TOKEN") && !answer.mentions(VALUE),
            "{args:?}: {}",
            answer.describe()
        );
    }
    assert!(run(&["secrets", "check"]).mentions("NOT_SET_ANYWHERE is not set"));
    let unknown = run(&["secrets", "check", "OTHER"]);
    assert!(
        unknown.code != Some(0) && unknown.mentions("OTHER"),
        "{}",
        unknown.describe()
    );
}

#[test]
fn a_config_file_with_a_bad_secret_is_refused_with_its_position() {
    let fixture = Fixture::new();
    let path = write_config(&fixture, "\n[secrets.TOKEN]\nfrom = \"plain-value-of-the-secret\"\n");
    let answer = fixture.command(&["secrets", "list", "--config", &path]).run();
    assert!(answer.code != Some(0), "{}", answer.describe());
    assert!(
        answer.mentions("secrets.toml:3:1: secrets.TOKEN: `from`"),
        "{}",
        answer.describe()
    );
    assert!(!answer.mentions("plain-value-of-the-secret"), "{}", answer.describe());
}
