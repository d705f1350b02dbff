//! Profiles that cannot work on this host: refused by `profiles check`, and named by a launch that fails.

use std::fs;

use crate::harness::Fixture;

#[test]
fn profiles_check_refuses_what_would_fail_at_launch() {
    let fixture = Fixture::new();
    let check = |filesystem: &str| {
        let file = fixture.path("checked.yaml");
        let text = format!("name: x\ndescription: d\nextends: default\nfilesystem:\n{filesystem}");
        fs::write(&file, text).unwrap();
        fixture.command(&["profiles", "check", file.to_str().unwrap()]).run()
    };
    let existing = "/mnt";
    let visible = |path: &str, more: &str| format!("  visible:\n    - path: {path}\n      reason: a test\n{more}");
    for (filesystem, position, part) in [
        (visible("/no/such/path", ""), ":6:", "cannot be made visible"),
        (visible("~/data", ""), ":6:", "begins with `~`"),
        (
            format!("  links:\n    - path: /linked\n      target: {existing}\n      reason: a test\n{}", visible("/linked/x", "")),
            ":10:",
            "is below /linked, which is a link",
        ),
        (
            "  files:\n    - path: /etc/x/y\n      content: a\n      reason: a test\n    - path: /etc/x\n      content: b\n      \
             reason: a test\n"
                .to_owned(),
            ":6:",
            "is below /etc/x, which is a file",
        ),
    ] {
        let checked = check(&filesystem);
        assert_eq!(checked.code, Some(1), "{filesystem}: {}", checked.describe());
        assert!(checked.mentions(position) && checked.mentions(part), "{filesystem}: {}", checked.describe());
    }
    // The controls: a path that exists, and a missing one that is optional.
    for filesystem in [
        visible(existing, ""),
        visible("/no/such/path", "      optional: true\n"),
    ] {
        let checked = check(&filesystem);
        assert_eq!(checked.code, Some(0), "{filesystem}: {}", checked.describe());
    }
}

#[test]
fn a_launch_that_fails_because_of_the_profile_names_the_profile() {
    let fixture = Fixture::new();
    let visible = "filesystem:\n  visible:\n    - path: /no/such/path\n      reason: a test\n";
    fixture.add_profile_yaml("missing-path", &format!("extends: default\n{visible}"));
    let refused = fixture
        .command(&["run", "probe", "--json", "--profile", "missing-path", "--", "true"])
        .run();
    assert_eq!(refused.code, Some(125), "{}", refused.describe());
    assert_eq!(refused["error"]["code"], "profile_invalid", "{}", refused.describe());
    assert!(
        refused.mentions("/no/such/path") && refused.mentions("profiles check"),
        "{}",
        refused.describe()
    );
    assert!(!refused.mentions("report it"), "{}", refused.describe());
}
