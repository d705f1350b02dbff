//! Profiles: what is shipped, what is refused, and where.

use std::path::Path;
use std::time::Duration;

use skillbox_model::{ByteSize, Layer};
use skillbox_sandbox::{Need, NetworkPolicy, Profiles};

#[test]
fn the_shipped_profiles_hold_what_is_promised() {
    let profiles = Profiles::shipped();
    let names: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
    assert_eq!(names, ["default", "loopback", "network", "strict", "unconfined"]);

    let default = profiles.get("default").unwrap();
    let limits = &default.limits.default;
    assert_eq!(limits.wall, Duration::from_secs(300));
    assert_eq!(default.limits.wall_max, Duration::from_secs(3600));
    assert_eq!(limits.cpu, Duration::from_secs(300));
    assert_eq!(
        (limits.memory, limits.pids, limits.open_files),
        (ByteSize::gib(1), 256, 1024)
    );
    assert_eq!(
        (limits.file, limits.workspace, limits.workspace_inodes),
        (ByteSize::mib(256), ByteSize::mib(512), 100_000)
    );
    assert_eq!(default.need(Layer::Memory), Need::Preferred);

    let strict = profiles.get("strict").unwrap();
    assert!(Layer::ALL.iter().all(|layer| strict.need(*layer) == Need::Required));
    let loopback = profiles.get("loopback").unwrap();
    assert_eq!(
        (loopback.network, loopback.need(Layer::LandlockNetwork)),
        (NetworkPolicy::Loopback, Need::Off)
    );
    let unconfined = profiles.get("unconfined").unwrap();
    assert!(unconfined.is_unconfined() && !loopback.is_unconfined());
}

#[test]
fn every_entry_of_every_shipped_profile_has_a_reason() {
    for profile in Profiles::shipped().iter() {
        let files = &profile.filesystem;
        let reasons = files
            .visible
            .iter()
            .map(|entry| &entry.reason)
            .chain(files.directories.iter().map(|entry| &entry.reason))
            .chain(files.links.iter().map(|entry| &entry.reason))
            .chain(files.files.iter().map(|entry| &entry.reason))
            .chain(files.devices.iter().map(|entry| &entry.reason))
            .chain(files.masked.iter().map(|entry| &entry.reason))
            .chain(profile.syscalls.rules().iter().map(|rule| &rule.reason))
            .chain(profile.allowed_hosts.iter().map(|allowed| &allowed.reason))
            .chain(profile.environment.pass.iter().map(|variable| &variable.reason))
            .chain(profile.environment.set.iter().map(|variable| &variable.reason));
        assert!(reasons.clone().count() > 50);
        assert!(reasons.into_iter().all(|reason| reason.len() > 8), "{}", profile.name);
    }
}

#[test]
fn one_shipped_profile_can_be_had_alone() {
    let all = Profiles::shipped();
    for name in ["strict", "default", "loopback", "network", "unconfined"] {
        let alone = Profiles::single_shipped(name).unwrap();
        assert_eq!(alone.get(name), all.get(name), "{name}");
        assert_eq!(alone.iter().count(), 1, "{name}");
    }
    assert!(Profiles::single_shipped("nonsense").is_none());
}

/// Checks one profile and compares every finding, as `line:column code: message`.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let text = text.replace("        ", "");
    let found = match Profiles::shipped().check(Path::new("my.yaml"), text.trim_start_matches('\n')) {
        Ok(profile) => panic!("{} is fine", profile.name),
        Err(found) => found,
    };
    let shown: Vec<String> = found
        .iter()
        .map(|finding| {
            let place = |number: Option<u32>| number.map_or_else(|| "?".to_owned(), |number| number.to_string());
            format!(
                "{}:{} {}: {}",
                place(finding.line),
                place(finding.column),
                finding.code,
                finding.message
            )
        })
        .collect();
    assert_eq!(shown, expected);
}

#[test]
fn what_is_no_profile_is_refused_with_its_place() {
    check("name: [", &["1:7 profile_syntax: expected string scalar"]);
    check("description: none", &["1:1 profile_syntax: missing field `name`"]);
    check(
        "name: mine\nextends: default\nlayer: {}",
        &[
            "3:1 profile_syntax: unknown field `layer`, expected one of name, description, extends, layers, container_layers, filesystem, workspace, network, syscalls, environment, limits",
        ],
    );
    check(
        "name: mine\nextends: default\nlayers:\n  landlok: off",
        &[
            "4:3 profile_syntax: unknown variant `landlok`, expected one of user_namespace, mount_namespace, pid_namespace, network_namespace, ipc_namespace, uts_namespace, cgroup_namespace, proc, landlock_files, landlock_network, landlock_scope, seccomp, capabilities, no_new_privileges, resource_limits, memory, pids, cpu, workspace_quota, wall_clock",
        ],
    );
    check(
        "name: mine\nextends: default\nlayers:\n  seccomp: maybe",
        &["4:12 profile_syntax: unknown variant `maybe`, expected one of required, preferred, off"],
    );
    check(
        "name: mine\nextends: default\nlimits:\n  memory: 1 GB",
        &[
            "4:11 profile_syntax: \"1 GB\" is not a size: a whole number, alone or with KiB, MiB, GiB or TiB, is expected",
        ],
    );
    check(
        "name: mine\nextends: default\nlimits:\n  wall: soon",
        &["4:9 profile_syntax: \"soon\" is not a duration: expected a whole number, alone or with s, min or h"],
    );
    check(
        "name: ../mine\nextends: default",
        &[
            "1:7 profile_name: \"../mine\" is not an identifier: 1 to 128 of the characters a-z A-Z 0-9 . _ - are expected, starting with a letter or digit",
        ],
    );
    check(
        "name: mine\nextends: defalt",
        &["2:10 profile_unknown_parent: no profile is named \"defalt\""],
    );
    check(
        "name: a\nextends: a",
        &["2:10 profile_unknown_parent: no profile is named \"a\""],
    );
}

#[test]
fn an_entry_without_a_reason_is_refused() {
    check(
        "
        name: mine
        extends: default
        filesystem:
          visible:
            - path: /opt
            - path: /srv
              reason: \"  \"
          hide:
            - path: /etc/fonts
        syscalls:
          allow:
            - calls: ptrace
          refuse:
            - calls: fork vfork
        environment:
          pass:
            - name: TZ
          set:
            - name: A
              value: b
        ",
        &[
            "9:7 profile_reason_missing: the entry for /etc/fonts has no reason",
            "5:7 profile_reason_missing: the entry for /opt has no reason",
            "6:7 profile_reason_missing: the entry for /srv has no reason",
            "12:7 profile_reason_missing: the entry for ptrace has no reason",
            "14:7 profile_reason_missing: the entry for fork, vfork has no reason",
            "17:7 profile_reason_missing: the entry for TZ has no reason",
            "19:7 profile_reason_missing: the entry for A has no reason",
        ],
    );
}

#[test]
fn contradictions_are_refused() {
    check(
        "name: mine\nextends: default\nlayers:\n  no_new_privileges: off",
        &[
            "4:22 profile_contradiction: seccomp is requested while no_new_privileges is off: the kernel loads a filter only for a process with no_new_privs",
            "4:22 profile_contradiction: landlock_files is requested while no_new_privileges is off: the kernel enforces Landlock rules only for a process with no_new_privs",
            "4:22 profile_contradiction: landlock_network is requested while no_new_privileges is off: the kernel enforces Landlock rules only for a process with no_new_privs",
            "4:22 profile_contradiction: landlock_scope is requested while no_new_privileges is off: the kernel enforces Landlock rules only for a process with no_new_privs",
        ],
    );
    check(
        "name: mine\nextends: default\nlayers:\n  user_namespace: preferred",
        &[
            "4:19 profile_contradiction: mount_namespace is required while user_namespace is only preferred: the mounts are created inside the user namespace",
        ],
    );
    check(
        "name: mine\nextends: default\nlayers:\n  wall_clock: off",
        &["4:15 profile_contradiction: wall_clock cannot be off: every run has a time limit"],
    );
    check(
        "name: mine\nextends: default\nnetwork: loopback",
        &[
            "3:10 profile_contradiction: network is loopback while landlock_network is on: its rules name ports, not addresses",
        ],
    );
    check(
        "name: mine\nextends: default\nnetwork: host",
        &["3:10 profile_contradiction: network is host while network_namespace is on"],
    );
    check(
        "name: mine\nextends: loopback\nnetwork: none",
        &["3:10 profile_contradiction: network is none, but the rule for the system call socket allows AF_INET"],
    );
    check(
        "name: mine\nextends: default\nlimits:\n  wall: 2 h\n  pids: 0",
        &[
            "5:9 profile_limit: the limit pids is too small for any run",
            "4:9 profile_contradiction: wall is 7200 s, above the wall_max of 3600 s",
        ],
    );
    check(
        "name: mine\nextends: default\nlimits:\n  memory: 512 MiB",
        &[
            "4:11 profile_contradiction: memory is 512 MiB, but the files in memory (workspace and /dev/shm) may use 576 MiB: a full workspace would end the run",
        ],
    );
}

#[test]
fn paths_devices_and_calls_are_checked() {
    check(
        "
        name: mine
        extends: default
        filesystem:
          visible:
            - {path: etc, reason: a relative path}
            - {path: /a/../b, reason: a path that climbs}
            - {path: /proc/sys, reason: ours}
            - {path: /usr/local, reason: inside of another}
            - {path: /etc/passwd, reason: two kinds}
          hide:
            - {path: /opt, reason: never visible}
          devices:
            - {name: mem, reason: memory of the machine}
          masked:
            - {path: /etc/passwd, reason: not in proc}
        syscalls:
          allow:
            - {calls: fork read read nonsense, reason: two mistakes}
            - {calls: write, argument: 7, any_of: 1, reason: no such argument}
            - {calls: open, any_of: 1, reason: no argument}
            - {calls: dup, argument: 0, any_of: 1, none_of: 2, reason: two conditions}
            - {calls: dup2, argument: 0, any_of: AF_NOWHERE, reason: no such constant}
          refuse:
            - {calls: mount, errno: EWHAT, reason: no such error}
        environment:
          pass:
            - {name: \"A=B\", reason: no name}
        ",
        &[
            "11:7 profile_hides_nothing: /opt is not visible in the parent profile",
            "5:7 profile_path: \"etc\" is not an absolute path without `.`, `..`, double slashes and a trailing slash",
            "6:7 profile_path: \"/a/../b\" is not an absolute path without `.`, `..`, double slashes and a trailing slash",
            "18:7 profile_contradiction: the system call \"read\" is named twice",
            "18:7 profile_unknown_call: no system call is named \"nonsense\"",
            "19:7 profile_condition: a system call has arguments 0 to 5",
            "20:7 profile_condition: a condition must name its argument",
            "21:7 profile_condition: a condition needs exactly one of any_of, none_of and no_bits_of",
            "22:7 profile_unknown_constant: \"AF_NOWHERE\" is neither a known constant nor a 32-bit number",
            "24:29 profile_unknown_constant: \"EWHAT\" is not a known error",
        ],
    );
    check(
        "
        name: mine
        extends: default
        filesystem:
          visible:
            - {path: /proc/sys, reason: ours}
            - {path: /usr/local, reason: inside of another}
            - {path: /etc/passwd, reason: two kinds}
          devices:
            - {name: mem, reason: memory of the machine}
          masked:
            - {path: /etc/passwd, reason: not in proc}
        environment:
          pass:
            - {name: \"A=B\", reason: no name}
            - {name: C, reason: twice}
          set:
            - {name: C, value: d, reason: twice}
        ",
        &[
            "5:7 profile_contradiction: /proc/sys is in /proc, which the sandbox creates itself",
            "6:7 profile_contradiction: /usr/local is in /usr, which is visible as a whole",
            "7:7 profile_contradiction: /etc/passwd is listed as more than one kind of entry",
            "9:7 profile_device: the device \"mem\" is not one of null, zero, full, random, urandom, tty, pts",
            "11:7 profile_path: /etc/passwd is not below /proc",
            "14:7 profile_environment: \"A=B\" is not a valid variable name",
            "15:7 profile_contradiction: C is both passed and set",
        ],
    );
}

#[test]
fn a_profile_that_extends_nothing_says_everything() {
    check(
        "name: mine",
        &[
            "1:7 profile_incomplete: a profile without `extends` must name every layer; missing: user_namespace, mount_namespace, pid_namespace, network_namespace, ipc_namespace, uts_namespace, cgroup_namespace, proc, landlock_files, landlock_network, landlock_scope, seccomp, capabilities, no_new_privileges, resource_limits, memory, pids, cpu, workspace_quota, wall_clock",
            "1:7 profile_incomplete: a profile without `extends` must set every limit; missing: wall, cpu, memory, pids, open_files, file, output, workspace, workspace_inodes",
        ],
    );
}

#[test]
fn a_document_changes_only_what_it_names() {
    let text = "
name: mine
description: mine
extends: default
layers: {memory: required}
filesystem:
  visible: [{path: /opt/tools, optional: true, reason: our own tools}]
  hide: [{path: /etc/fonts, reason: no plots here}]
  shm: 1 MiB
syscalls:
  refuse: [{calls: fork vfork, reason: no processes by the old calls}]
environment:
  pass: [{name: TZ, reason: the host's time zone}]
  set: [{name: LANG, value: de_DE.UTF-8, reason: German texts}]
limits: {pids: 7}
";
    let profiles = Profiles::shipped();
    let default = profiles.get("default").unwrap();
    let mine = profiles.check(Path::new("my.yaml"), text).unwrap();
    assert_eq!(mine.need(Layer::Memory), Need::Required);
    assert_eq!(
        (mine.limits.default.pids, mine.limits.default.memory),
        (7, default.limits.default.memory)
    );
    let visible = |path: &str| mine.filesystem.visible.iter().any(|entry| entry.path == path);
    assert!(visible("/opt/tools") && visible("/usr") && !visible("/etc/fonts"));
    assert_eq!(mine.filesystem.shm, ByteSize::mib(1));
    assert_eq!(
        mine.syscalls.filter().allowed_count() + 2,
        default.syscalls.filter().allowed_count()
    );
    let environment = mine.initial_environment(|name| (name == "TZ").then(|| "UTC".into()));
    let shown: Vec<String> = environment
        .iter()
        .map(|(name, value)| format!("{}={}", name.display(), value.display()))
        .collect();
    assert_eq!(shown[0], "TZ=UTC");
    assert!(shown.contains(&"LANG=de_DE.UTF-8".to_owned()));
    assert_eq!(
        mine.initial_environment(|_| None).len(),
        default.initial_environment(|_| None).len()
    );
}

#[test]
fn a_directory_adds_to_the_shipped_ones_and_its_errors_hide_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("b.yaml", "name: b\nextends: a\n");
    write("a.yaml", "name: a\nextends: default\nlimits: {pids: 9}\n");
    write("default.yaml", "name: default\nextends: default\nlimits: {pids: 11}\n");
    write("broken.yaml", "name: [");
    write("ring1.yaml", "name: ring1\nextends: ring2\n");
    write("ring2.yaml", "name: ring2\nextends: ring1\n");
    write("notes.txt", "no profile");
    let (profiles, findings) = Profiles::with_directory(directory.path()).unwrap();
    assert_eq!(profiles.get("b").unwrap().limits.default.pids, 9);
    assert_eq!(profiles.get("default").unwrap().limits.default.pids, 11);
    assert!(profiles.get("strict").is_some() && profiles.get("ring1").is_none());
    let mut codes: Vec<&str> = findings.iter().map(|finding| finding.code).collect();
    codes.sort_unstable();
    assert_eq!(codes, ["profile_cycle", "profile_cycle", "profile_syntax"]);
}
