//! Tables of the kernel that the whole host, or all programs of a user, share. What a run takes of them is refused,
//! bounded, or part of a namespace. docs/security-model.md lists them.

use serde_json::json;

use crate::harness::{Fixture, is_refusal};

/// Checks that each attempt succeeds outside and is refused inside.
fn assert_refused(fixture: &Fixture, table: &str, ways: &[&str]) {
    for way in ways {
        let arguments = [table, way];
        assert_eq!(fixture.control_probe("kernel_table.py", &arguments), "allowed", "{way}");
        let word = fixture.run_probe("kernel_table.py", &arguments);
        assert!(is_refusal(&word), "{table} {way}: {word}");
    }
}

#[test]
pub fn h150_asynchronous_requests_of_the_host_cannot_be_taken() {
    let fixture = Fixture::new();
    let control = fixture.control_probe("kernel_table.py", &["asynchronous_requests"]);
    // EAGAIN: another program has taken them all.
    assert!(control == "allowed" || control == "EAGAIN", "{control}");
    // Libraries take this error for a kernel without the interface.
    assert_eq!(
        fixture.run_probe("kernel_table.py", &["asynchronous_requests"]),
        "ENOSYS"
    );
}

#[test]
pub fn h151_the_core_limit_cannot_be_changed() {
    let fixture = Fixture::new();
    assert_refused(
        &fixture,
        "core_limit",
        &["setrlimit", "prlimit64", "library", "low_half_is_null"],
    );
    // The limit can be read, and other limits can be lowered.
    assert_eq!(fixture.run_probe("kernel_table.py", &["core_limit", "read"]), "1");
    assert_eq!(
        fixture.run_probe("kernel_table.py", &["core_limit", "other_limit"]),
        "allowed"
    );
    let answer = fixture.run_shell("ulimit -c 0 2>/dev/null || echo unchanged; ulimit -S -n 100 && ulimit -n");
    assert_eq!(answer.stdout(), "unchanged\n100\n", "{}", answer.describe());
}

#[test]
pub fn h152_a_script_cannot_fill_the_audit_log() {
    let fixture = Fixture::new();
    // A filter cannot read what a script's filter returns, so none can be installed.
    assert_refused(
        &fixture,
        "seccomp_filter",
        &["flag", "harmless", "prctl", "strict_mode"],
    );
    // Without a control, which would write to the log of this host.
    let word = fixture.run_probe("kernel_table.py", &["seccomp_filter", "logged"]);
    assert!(is_refusal(&word), "{word}");
}

#[test]
pub fn h153_packet_filters_cannot_take_the_hosts_memory_for_machine_code() {
    let fixture = Fixture::new();
    assert_refused(&fixture, "socket_option", &["packet_filter"]);
    assert_eq!(
        fixture.run_probe("kernel_table.py", &["socket_option", "buffer"]),
        "allowed"
    );
    if fixture.docker().is_none() {
        let request = json!({"argv": ["python3", "scripts/kernel_table.py", "socket_option", "ipv6_only"], "profile": "loopback"});
        let answer = fixture.request(request).run().expect_report();
        assert_eq!(answer.stdout().trim(), "allowed", "{}", answer.describe());
    }
}

#[test]
pub fn h154_message_queues_signals_and_timers_are_bounded() {
    let fixture = Fixture::new();
    let control = fixture.control_probe("kernel_table.py", &["message_queue"]);
    assert!(control == "allowed" || control == "EMFILE", "{control}");
    assert_eq!(fixture.run_probe("kernel_table.py", &["message_queue"]), "ENOSYS");
    for table in ["pending_signals", "timers"] {
        let count = |word: String| word.parse::<u32>().expect("a number");
        let outside = count(fixture.control_probe("kernel_table.py", &[table]));
        let inside = count(fixture.run_probe("kernel_table.py", &[table]));
        assert!((1..=1024).contains(&inside), "{table}: {inside}");
        assert!(outside > inside, "{table}: {outside} outside, {inside} inside");
    }
}
