//! Hosts that lack something. Each layer is really taken away from skillbox, by the kernel's own means.

use super::host::ordinary_user;
use super::scene::Scene;

/// Calls of Linux 5.12 and later that would be made.
const LINUX_5_10: [&str; 2] = ["mount_setattr=ENOSYS", "landlock_create_ruleset=ENOSYS"];

/// One host that lacks something.
#[derive(Clone, Debug)]
pub struct Degraded {
    /// What is special about it.
    pub name: &'static str,
    /// The words in front of skillbox that make it so.
    pub launcher: Vec<String>,
    /// Whether skillbox is an ordinary user's there.
    pub user: Option<u32>,
    /// Layers that cannot be had there: each is named in the report, or the run is refused.
    pub missing: &'static [&'static str],
    /// Whether every layer that `default` requires is still there, so that `default` has to run.
    pub default_runs: bool,
}

/// Every way of taking something away; those for root's skillbox need root to set up.
pub fn degradations(scene: &Scene) -> Vec<Degraded> {
    let (id, user) = ordinary_user();
    let no_calls = |rules: &[&str]| {
        let script = scene.text("launchers/without_calls.py");
        let words = ["python3", &script]
            .into_iter()
            .chain(rules.iter().copied())
            .chain(["--"]);
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    let sh = |line: &str| {
        let line = format!("{line} && exec \"$@\"");
        ["unshare", "--mount", "bash", "-c", &line, "bash"]
            .map(str::to_owned)
            .to_vec()
    };
    let then_user = |mut words: Vec<String>| {
        words.extend(user.clone());
        words
    };
    let namespaces: Vec<String> = ["0x10000000", "0x20000", "0x20000000", "0x40000000"]
        .iter()
        .map(|flag| format!("clone&{flag}=EPERM"))
        .chain(["clone3=ENOSYS", "unshare=EPERM", "setns=EPERM"].map(str::to_owned))
        .collect();
    let namespaces: Vec<&str> = namespaces.iter().map(String::as_str).collect();
    let root = |name, launcher, missing, default_runs| Degraded {
        name,
        launcher,
        user: None,
        missing,
        default_runs,
    };
    let ordinary = |name, launcher, missing, default_runs| Degraded {
        name,
        launcher: then_user(launcher),
        user: Some(id),
        missing,
        default_runs,
    };
    let nothing_without_user_namespaces = "echo 0 > /proc/sys/user/max_user_namespaces";
    let sealed = format!(
        "{nothing_without_user_namespaces} && exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs \"$@\""
    );
    let sealed = ["unshare", "--user", "--map-root-user", "bash", "-c", &sealed, "bash"]
        .map(str::to_owned)
        .to_vec();
    let nested = ["unshare", "--user", "--map-root-user"].map(str::to_owned).to_vec();
    let masked = "mount -t tmpfs none /proc/sys";
    let read_only = "for place in /sys/fs/cgroup/*/; do mount -o remount,bind,ro $place 2>/dev/null || \
                     { mount --bind $place $place && mount -o remount,bind,ro $place; }; done; \
                     mount --bind /sys/fs/cgroup /sys/fs/cgroup; mount -o remount,bind,ro /sys/fs/cgroup; true";
    vec![
        ordinary("an ordinary user", vec![], &["memory"], true),
        root("user namespaces switched off", sealed, &["user_namespace"], false),
        ordinary(
            "namespaces refused by a filter",
            no_calls(&namespaces),
            &["user_namespace"],
            false,
        ),
        ordinary("a masked /proc", sh(masked), &["proc"], false),
        root(
            "namespaces refused by a filter, as root",
            no_calls(&namespaces),
            &["mount_namespace"],
            false,
        ),
        root("root of a nested user namespace", nested, &[], true),
        root(
            "no control groups",
            sh("mount -t tmpfs none /sys/fs/cgroup"),
            &["memory"],
            true,
        ),
        root("read-only control groups", sh(read_only), &["memory"], true),
        root(
            "no Landlock",
            no_calls(&["landlock_create_ruleset=ENOSYS"]),
            &["landlock_files"],
            true,
        ),
        root(
            "no seccomp",
            no_calls(&["seccomp=ENOSYS", "prctl:22=EINVAL"]),
            &["seccomp"],
            false,
        ),
        root("no openat2", no_calls(&["openat2=ENOSYS"]), &[], true),
        root("Linux 5.10", no_calls(&LINUX_5_10), &["landlock_files"], true),
        ordinary("a user of Linux 5.10", no_calls(&LINUX_5_10), &["landlock_files"], true),
        root(
            "an old mount interface",
            no_calls(&[
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
            no_calls(&["mount=EPERM", "fsopen=EPERM", "open_tree=EPERM", "move_mount=EPERM"]),
            &["mount_namespace"],
            false,
        ),
        root(
            "no clone3, no pidfd",
            no_calls(&["clone3=ENOSYS", "close_range=ENOSYS", "pidfd_open=ENOSYS"]),
            &[],
            true,
        ),
    ]
}
