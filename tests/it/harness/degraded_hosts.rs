//! Hosts that lack an isolation layer. Each layer is really taken away from skillbox, by means of the kernel.

use super::fixture::Fixture;
use super::host::ordinary_user;

/// System calls of Linux 5.12 and later that skillbox would make.
const LINUX_5_10: [&str; 2] = ["mount_setattr=ENOSYS", "landlock_create_ruleset=ENOSYS"];

/// One host that lacks a layer.
#[derive(Clone, Debug)]
pub struct DegradedHost {
    /// What the host lacks.
    pub name: &'static str,
    /// The launcher that takes the layer away and then executes skillbox.
    pub launcher: Vec<String>,
    /// The ordinary user that runs skillbox there, where root does not.
    pub user: Option<u32>,
    /// Layers that are unavailable there: the report names each of them, or the run is refused.
    pub missing_layers: &'static [&'static str],
    /// Whether every layer that `default` requires is available, so that `default` has to run.
    pub default_runs: bool,
}

/// Every host that lacks a layer. Setting them up needs root.
pub fn degraded_hosts(fixture: &Fixture) -> Vec<DegradedHost> {
    let (id, user) = ordinary_user();
    let without_calls = |rules: &[&str]| {
        let script = fixture.path_str("launchers/without_calls.py");
        let words = ["python3", &script]
            .into_iter()
            .chain(rules.iter().copied())
            .chain(["--"]);
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    let after_shell = |line: &str| {
        let line = format!("{line} && exec \"$@\"");
        ["unshare", "--mount", "bash", "-c", &line, "bash"]
            .map(str::to_owned)
            .to_vec()
    };
    let as_user = |mut words: Vec<String>| {
        words.extend(user.clone());
        words
    };
    let namespaces: Vec<String> = ["0x10000000", "0x20000", "0x20000000", "0x40000000"]
        .iter()
        .map(|flag| format!("clone&{flag}=EPERM"))
        .chain(["clone3=ENOSYS", "unshare=EPERM", "setns=EPERM"].map(str::to_owned))
        .collect();
    let namespaces: Vec<&str> = namespaces.iter().map(String::as_str).collect();
    let root = |name, launcher, missing_layers, default_runs| DegradedHost {
        name,
        launcher,
        user: None,
        missing_layers,
        default_runs,
    };
    let ordinary = |name, launcher, missing_layers, default_runs| DegradedHost {
        name,
        launcher: as_user(launcher),
        user: Some(id),
        missing_layers,
        default_runs,
    };
    let disable_user_namespaces = "echo 0 > /proc/sys/user/max_user_namespaces";
    let no_user_namespaces =
        format!("{disable_user_namespaces} && exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs \"$@\"");
    let no_user_namespaces = [
        "unshare",
        "--user",
        "--map-root-user",
        "bash",
        "-c",
        &no_user_namespaces,
        "bash",
    ]
    .map(str::to_owned)
    .to_vec();
    let nested_namespace = ["unshare", "--user", "--map-root-user"].map(str::to_owned).to_vec();
    let mask_proc = "mount -t tmpfs none /proc/sys";
    let make_cgroups_read_only = "for place in /sys/fs/cgroup/*/; do mount -o remount,bind,ro $place 2>/dev/null || \
                     { mount --bind $place $place && mount -o remount,bind,ro $place; }; done; \
                     mount --bind /sys/fs/cgroup /sys/fs/cgroup; mount -o remount,bind,ro /sys/fs/cgroup; true";
    vec![
        ordinary("an ordinary user", vec![], &["memory"], true),
        root(
            "user namespaces switched off",
            no_user_namespaces,
            &["user_namespace"],
            false,
        ),
        ordinary(
            "namespaces refused by a filter",
            without_calls(&namespaces),
            &["user_namespace"],
            false,
        ),
        ordinary("a masked /proc", after_shell(mask_proc), &["proc"], false),
        root(
            "namespaces refused by a filter, as root",
            without_calls(&namespaces),
            &["mount_namespace"],
            false,
        ),
        root("root of a nested user namespace", nested_namespace, &[], true),
        root(
            "no control groups",
            after_shell("mount -t tmpfs none /sys/fs/cgroup"),
            &["memory"],
            true,
        ),
        root(
            "read-only control groups",
            after_shell(make_cgroups_read_only),
            &["memory"],
            true,
        ),
        root(
            "no Landlock",
            without_calls(&["landlock_create_ruleset=ENOSYS"]),
            &["landlock_files"],
            true,
        ),
        root(
            "no seccomp",
            without_calls(&["seccomp=ENOSYS", "prctl:22=EINVAL"]),
            &["seccomp"],
            false,
        ),
        root("no openat2", without_calls(&["openat2=ENOSYS"]), &[], true),
        root("Linux 5.10", without_calls(&LINUX_5_10), &["landlock_files"], true),
        ordinary(
            "a user of Linux 5.10",
            without_calls(&LINUX_5_10),
            &["landlock_files"],
            true,
        ),
        root(
            "an old mount interface",
            without_calls(&[
                "open_tree=ENOSYS",
                "move_mount=ENOSYS",
                "fsopen=ENOSYS",
                "fsmount=ENOSYS",
                "mount_setattr=ENOSYS",
            ]),
            &[],
            false,
        ),
        root(
            "no mounting at all",
            without_calls(&["mount=EPERM", "fsopen=EPERM", "open_tree=EPERM", "move_mount=EPERM"]),
            &["mount_namespace"],
            false,
        ),
        root(
            "no clone3, no pidfd",
            without_calls(&["clone3=ENOSYS", "close_range=ENOSYS", "pidfd_open=ENOSYS"]),
            &[],
            true,
        ),
    ]
}
