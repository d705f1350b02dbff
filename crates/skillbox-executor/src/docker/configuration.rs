//! The container of a run, as a pure function of the profile and the limits that the local plan reads too.

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig, ResourcesUlimits,
};
use skillbox_model::{Layer, Limits};
use skillbox_runner::Confinement;
use skillbox_sandbox::{FileRights, HOSTNAME, INSIDE, LandlockRule, Need, NetworkPolicy, Profile, docker_profile};

use super::image::RUNNER;
use super::owner::{LABEL, OWNER_LABEL};
use crate::workspace::layout;

/// Everything of `/sys` but the control group, whose meters the runner reads.
const HIDDEN_SYS: [&str; 23] = [
    "/sys/block",
    "/sys/bus",
    "/sys/class",
    "/sys/dev",
    "/sys/devices",
    "/sys/firmware",
    "/sys/fs/bpf",
    "/sys/fs/btrfs",
    "/sys/fs/erofs",
    "/sys/fs/ext4",
    "/sys/fs/f2fs",
    "/sys/fs/fuse",
    "/sys/fs/nfs",
    "/sys/fs/pstore",
    "/sys/fs/resctrl",
    "/sys/fs/selinux",
    "/sys/fs/smackfs",
    "/sys/fs/tmpfs",
    "/sys/fs/xfs",
    "/sys/hypervisor",
    "/sys/kernel",
    "/sys/module",
    "/sys/power",
];
/// Terminals: no run has one. What covers `/dev/tty` would be the null device, which may be opened.
const HIDDEN_DEV: [&str; 1] = ["/dev/pts"];
/// What engines hide by themselves, said again because a list of ours replaces theirs.
const HIDDEN_PROC: [&str; 5] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/scsi",
    "/proc/timer_stats",
];
const READ_ONLY_PROC: [&str; 5] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// What the daemon is asked for.
pub(super) fn container(profile: &Profile, limits: &Limits, image: &str, owner: &str) -> ContainerCreateBody {
    let asked = |layer| profile.need_in_container(layer) != Need::Off;
    let text = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
    let user = format!("{}:{}", INSIDE.uid, INSIDE.gid);
    let labels = [(LABEL, env!("CARGO_PKG_VERSION")), (OWNER_LABEL, owner)];
    ContainerCreateBody {
        image: Some(image.to_owned()),
        entrypoint: text(&[RUNNER]),
        cmd: Some(Vec::new()),
        env: Some(Vec::new()),
        user: Some(user),
        working_dir: Some("/".to_owned()),
        hostname: Some(HOSTNAME.to_owned()),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        open_stdin: Some(true),
        // The container's standard input ends with our attachment, and the runner with its standard input.
        stdin_once: Some(true),
        tty: Some(false),
        labels: Some(labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into()),
        stop_signal: Some("SIGKILL".to_owned()),
        host_config: Some(HostConfig {
            network_mode: Some("none".to_owned()),
            readonly_rootfs: Some(true),
            cap_drop: text(&["ALL"]),
            security_opt: Some(security(profile, asked(Layer::Seccomp))),
            init: Some(false),
            privileged: Some(false),
            auto_remove: Some(true),
            ipc_mode: Some("private".to_owned()),
            cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
            memory: Some(number(limits.memory.bytes())),
            memory_swap: Some(number(limits.memory.bytes())),
            nano_cpus: limits.cpu_quota_millis.map(|millis| i64::from(millis) * 1_000_000),
            // The runner counts as one.
            pids_limit: Some(number(limits.pids.saturating_add(1))),
            ulimits: Some(ulimits(limits)),
            shm_size: Some(number(profile.filesystem.shm.bytes())),
            tmpfs: Some(tmpfs(limits)),
            masked_paths: Some(masked(profile)),
            readonly_paths: text(&READ_ONLY_PROC),
            log_config: Some(HostConfigLogConfig {
                typ: Some("none".to_owned()),
                config: None,
            }),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    }
}

/// What the runner adds, on a kernel with this version of Landlock.
pub(super) fn confinement(profile: &Profile, landlock_abi: u8) -> Confinement {
    let asked = |layer, since| profile.need_in_container(layer) != Need::Off && landlock_abi >= since;
    Confinement {
        files: asked(Layer::LandlockFiles, 1).then(|| file_rules(profile)),
        refuse_tcp: asked(Layer::LandlockNetwork, 4) && profile.network == NetworkPolicy::None,
        scope: asked(Layer::LandlockScope, 6),
    }
}

/// What of the image may be read, and where may be written. `/sys` is not among it.
fn file_rules(profile: &Profile) -> Vec<LandlockRule> {
    let rule = |path: &str, rights| LandlockRule {
        path: path.to_owned(),
        rights,
    };
    let visible = profile.filesystem.visible.iter().map(|visible| visible.path.as_str());
    let of_images = ["/opt", "/srv", "/var"];
    let outside_etc = visible.filter(|path| !path.starts_with("/etc/")).chain(of_images);
    let mut rules = vec![rule("/", FileRights::List)];
    rules.extend(outside_etc.map(|path| rule(path, FileRights::ReadExecute)));
    rules.extend([
        rule("/etc", FileRights::Read),
        rule("/proc", FileRights::Read),
        rule("/dev", FileRights::List),
        rule("/dev/shm", FileRights::Everything),
        rule("/dev/mqueue", FileRights::Everything),
        rule("/tmp", FileRights::Everything),
        rule(layout::ROOT, FileRights::Everything),
    ]);
    let devices = profile.filesystem.devices.iter();
    rules.extend(devices.map(|device| rule(&format!("/dev/{}", device.name), FileRights::Devices)));
    rules
}

fn security(profile: &Profile, with_seccomp: bool) -> Vec<String> {
    let mut options = vec!["no-new-privileges=true".to_owned()];
    if with_seccomp {
        options.push(format!("seccomp={}", docker_profile(profile.syscalls.rules())));
    } else {
        options.push("seccomp=unconfined".to_owned());
    }
    options
}

fn ulimits(limits: &Limits) -> Vec<ResourcesUlimits> {
    // A core limit of 1 also keeps piped core handlers from being started; 0 does not. Processes are counted by the
    // control group: by user they would be counted over all containers together.
    let list = [
        ("core", 1),
        ("cpu", limits.cpu.as_secs().saturating_add(1)),
        // The runner places what is sent first, and then sets the limit of the command.
        ("fsize", limits.workspace.bytes().max(limits.memory.bytes())),
        ("memlock", 8 << 20),
        ("msgqueue", 800 << 10),
        ("nice", 0),
        ("nofile", limits.open_files),
        ("rtprio", 0),
        ("sigpending", 1024),
    ];
    let entry = |(name, limit): (&str, u64)| ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(number(limit)),
        hard: Some(number(limit)),
    };
    list.into_iter().map(entry).collect()
}

fn tmpfs(limits: &Limits) -> HashMap<String, String> {
    let ids = format!("uid={},gid={}", INSIDE.uid, INSIDE.gid);
    let mount = |bytes: u64, inodes: u64, mode: &str| {
        format!("rw,exec,nosuid,nodev,size={bytes},nr_inodes={inodes},mode={mode},{ids}")
    };
    let workspace = mount(limits.workspace.bytes(), limits.workspace_inodes, "0755");
    // Skills are not counted against the workspace; memory bounds them.
    let skills = mount(limits.memory.bytes(), SKILL_INODES, "0755");
    // For programs that ignore TMPDIR. Together with the workspace it stays below the memory of a shipped profile.
    let tmp = mount(limits.workspace.bytes() / 4, limits.workspace_inodes / 4, "1777");
    HashMap::from([
        (layout::ROOT.to_owned(), workspace),
        (format!("{}/{}", layout::ROOT, layout::SKILLS), skills),
        ("/tmp".to_owned(), tmp),
    ])
}

/// Files of all skills of a run together.
const SKILL_INODES: u64 = 200_000;

fn masked(profile: &Profile) -> Vec<String> {
    let of_profile = profile.filesystem.masked.iter().map(|masked| masked.path.as_str());
    let mut all: Vec<String> = of_profile
        .chain(HIDDEN_PROC)
        .chain(HIDDEN_SYS)
        .chain(HIDDEN_DEV)
        .map(str::to_owned)
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use skillbox_sandbox::Profiles;

    use super::*;

    /// The whole request, with the system call filter, which has its own tests, cut to its first words.
    fn shown(profile: &str) -> serde_json::Value {
        let profiles = Profiles::shipped();
        let profile = profiles.get(profile).unwrap();
        let body = container(profile, &profile.limits.default, "sha256:0", "owner");
        let mut shown = serde_json::to_value(body).unwrap();
        for option in shown["HostConfig"]["SecurityOpt"].as_array_mut().unwrap() {
            let text = option.as_str().unwrap();
            *option = text.chars().take(48).collect::<String>().into();
        }
        shown.sort_all_objects();
        shown
    }

    #[test]
    fn the_default_profile_as_a_container() {
        insta::assert_json_snapshot!(shown("default"));
    }

    #[test]
    fn limits_follow_the_profile_and_isolation_does_not_change() {
        let (strict, default) = (shown("strict"), shown("default"));
        assert_ne!(strict["HostConfig"]["Memory"], default["HostConfig"]["Memory"]);
        for fixed in [
            "NetworkMode",
            "ReadonlyRootfs",
            "CapDrop",
            "IpcMode",
            "LogConfig",
            "MaskedPaths",
            "Init",
        ] {
            assert_eq!(strict["HostConfig"][fixed], default["HostConfig"][fixed], "{fixed}");
        }
    }

    #[test]
    fn landlock_is_asked_for_only_as_far_as_the_kernel_has_it() {
        let profiles = Profiles::shipped();
        let profile = profiles.get("default").unwrap();
        let none = confinement(profile, 0);
        assert!(none.files.is_none() && !none.refuse_tcp && !none.scope);
        let some = confinement(profile, 4);
        assert!(some.files.is_some() && some.refuse_tcp && !some.scope);
        let files = confinement(profile, 7).files.unwrap();
        assert!(files.iter().all(|rule| !rule.path.starts_with("/sys")));
    }
}
