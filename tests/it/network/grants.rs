//! Who can grant hosts, and what a run without them has.

use serde_json::json;

use super::outside_world::OutsideWorld;
use crate::harness::Fixture;

#[test]
fn without_a_granted_host_the_network_profile_has_no_network() {
    let fixture = Fixture::new();
    let command = "python3 -c 'import socket\nfor address in [(\"127.0.0.1\", 3128), (\"127.0.0.53\", 53), (\"1.1.1.1\", 443)]:\n  \
                   try: socket.create_connection(address, 5); print(\"connected\")\n  \
                   except OSError as error: print(\"refused\")'; env | grep -ic _proxy";
    let answer = fixture
        .request(json!({"command": command, "profile": "network"}))
        .run()
        .expect_report();
    assert_eq!(
        answer.stdout(),
        "refused\nrefused\nrefused\n0\n",
        "{}",
        answer.describe()
    );
    assert!(answer.json().get("network").is_none(), "{}", answer.describe());
}

#[test]
fn a_request_cannot_grant_hosts() {
    let fixture = Fixture::new();
    for field in ["network", "allow_net", "grants"] {
        let answer = fixture.request(json!({"command": "true", field: ["evil.test"]})).run();
        assert_eq!(answer.expect_refusal().0, "invalid_request", "{field}");
    }
}

#[test]
fn a_profile_lists_hosts_with_reasons_and_the_plan_shows_them() {
    let fixture = Fixture::new();
    fixture.add_profile_yaml(
        "api",
        "extends: network\nnetwork:\n  mode: allow_list\n  allow:\n    - host: api.test\n      ports: [443, 8443]\n      reason: the interface of the service\n",
    );
    let plan = fixture
        .command(&["profiles", "plan", "api", "--allow-net", "b.test"])
        .run();
    let text = String::from_utf8_lossy(&plan.process.stdout).into_owned();
    for part in [
        "ports of allowed hosts: 443, 8443; proxy: 127.0.0.1:3128; names: 127.0.0.53",
        "api.test:8443",
        "the interface of the service",
        "b.test:443",
        "granted by the setting allow_net",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let Some(world) = OutsideWorld::open(&fixture) else {
        return;
    };
    let command = "for u in https://api.test:8443/ https://api.test/ http://api.test:8080/; do \
                   curl -sS -m 20 --noproxy '*' --cacert $CA $u >/dev/null 2>&1; echo $?; done";
    let answer = world.run_with(&[], command, &["--profile", "api"]).expect_report();
    let codes: Vec<&str> = answer.stdout().lines().collect();
    assert_eq!(codes[..2], ["0", "0"], "{}", answer.describe());
    assert_ne!(codes[2], "0", "{}", answer.describe());
}

#[test]
fn entries_of_a_profile_are_checked() {
    let fixture = Fixture::new();
    for (entry, message) in [
        ("{host: api.test}", "reason"),
        ("{host: 127.1, reason: x}", "number"),
        ("{host: a.test, ports: [0], reason: x}", "1 to 65535"),
        ("{host: a.test, methods: [get], reason: x}", "is not a method"),
        ("{host: a.test, paths: [/a/../b], reason: x}", "`.` or `..`"),
        ("{host: a.test, unknown: 1, reason: x}", "unknown"),
    ] {
        let rest = format!("extends: network\nnetwork: {{mode: allow_list, allow: [{entry}]}}\n");
        fixture.add_profile_yaml("bad", &rest);
        let path = fixture.path_str("profiles/bad.yaml");
        let answer = fixture.command(&["profiles", "check", &path]).run();
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&answer.process.stdout),
            String::from_utf8_lossy(&answer.process.stderr)
        );
        assert!(answer.code != Some(0) && text.contains(message), "{entry}: {text}");
    }
}

#[test]
fn a_profile_without_network_stays_without_and_says_so() {
    let fixture = Fixture::new();
    let answer = fixture
        .request(json!({"command": "echo done", "profile": "default"}))
        .with_args(&["--allow-net", "api.test"])
        .run()
        .expect_report();
    assert!(answer.json().get("network").is_none());
    let warnings = answer["warnings"].to_string();
    assert!(warnings.contains("profile default has no network"), "{warnings}");
}

#[test]
fn containers_are_refused_until_they_can_do_the_same() {
    let fixture = Fixture::new();
    let answer = fixture
        .request(json!({"command": "true", "executor": "docker"}))
        .with_args(&["--allow-net", "api.test"])
        .run();
    let (code, _) = answer.expect_refusal();
    assert_eq!(code, "executor_unavailable");
    assert!(
        answer.mentions("api.test:443") && answer.mentions("--executor local"),
        "{}",
        answer.describe()
    );
}
