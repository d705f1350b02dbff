//! The configuration of a run's container: a pure function of the profile and the limits, which also determine the plan
//! of a local run.

use std::collections::HashMap;
use std::path::PathBuf;

use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig, ResourcesUlimits,
};
use skillbox_model::{Layer, Limits};
use skillbox_runner::LandlockConfinement;
use skillbox_sandbox::{
    FileRights, HOSTNAME, LandlockRule, Need, NetworkPolicy, Profile, SANDBOX_IDS, docker_seccomp_profile,
};

use super::labels::{OWNER_LABEL, VERSION_LABEL};
use super::skills_root::skills_root_mounts;
use crate::embedded_runner::RUNNER_PATH;
use crate::layout;

/// Everything in `/sys` except the control group, whose usage files the runner reads.
const MASKED_SYS_PATHS: [&str; 23] = [
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
/// No run has a terminal. `/dev/tty` is not listed: masking a file replaces it with the null device, and opening that
/// would succeed.
const MASKED_DEV_PATHS: [&str; 1] = ["/dev/pts"];
/// Devices of a profile that containers do not have: Docker sets no limit for the pseudo-terminals of a container, and
/// all containers share those of the host (`kernel.pty.max`).
const TERMINAL_DEVICES: [&str; 2] = ["tty", "pts"];
/// Paths that Docker masks by default. They are listed here because our list replaces the default list.
const MASKED_PROC_PATHS: [&str; 5] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/scsi",
    "/proc/timer_stats",
];
const READ_ONLY_PROC_PATHS: [&str; 5] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// The request to create the container.
pub(super) fn container_body(
    profile: &Profile,
    limits: &Limits,
    image: &str,
    owner: &str,
    skills_roots: &[PathBuf],
) -> ContainerCreateBody {
    let is_requested = |layer| profile.need_in_container(layer) != Need::Off;
    let text = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
    let user = format!("{}:{}", SANDBOX_IDS.uid, SANDBOX_IDS.gid);
    let labels = [(VERSION_LABEL, env!("CARGO_PKG_VERSION")), (OWNER_LABEL, owner)];
    ContainerCreateBody {
        image: Some(image.to_owned()),
        entrypoint: text(&[RUNNER_PATH]),
        cmd: Some(Vec::new()),
        env: Some(Vec::new()),
        user: Some(user),
        working_dir: Some("/".to_owned()),
        hostname: Some(HOSTNAME.to_owned()),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        open_stdin: Some(true),
        // When our attachment ends, the container's standard input closes, and the runner exits.
        stdin_once: Some(true),
        tty: Some(false),
        labels: Some(labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into()),
        stop_signal: Some("SIGKILL".to_owned()),
        host_config: Some(HostConfig {
            network_mode: Some("none".to_owned()),
            // The container's own name resolves, as in a local sandbox.
            extra_hosts: Some(vec![format!("{HOSTNAME}:127.0.0.1")]),
            readonly_rootfs: Some(true),
            cap_drop: text(&["ALL"]),
            security_opt: Some(security_options(profile, is_requested(Layer::Seccomp))),
            init: Some(false),
            privileged: Some(false),
            auto_remove: Some(true),
            ipc_mode: Some("private".to_owned()),
            cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
            memory: Some(saturate_to_i64(limits.memory.bytes())),
            memory_swap: Some(saturate_to_i64(limits.memory.bytes())),
            nano_cpus: limits.cpu_quota_millis.map(|millis| i64::from(millis) * 1_000_000),
            // The runner is one of the processes.
            pids_limit: Some(saturate_to_i64(limits.pids.saturating_add(1))),
            ulimits: Some(ulimits(limits)),
            shm_size: Some(saturate_to_i64(profile.filesystem.shm.bytes())),
            tmpfs: Some(tmpfs_mounts(limits)),
            mounts: (!skills_roots.is_empty()).then(|| skills_root_mounts(skills_roots)),
            masked_paths: Some(masked_paths(profile)),
            readonly_paths: text(&READ_ONLY_PROC_PATHS),
            log_config: Some(HostConfigLogConfig {
                typ: Some("none".to_owned()),
                config: None,
            }),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    }
}

/// The restrictions that the runner adds on a kernel with this version of Landlock.
pub(super) fn confinement(profile: &Profile, landlock_abi: u8) -> LandlockConfinement {
    let is_requested = |layer, since| profile.need_in_container(layer) != Need::Off && landlock_abi >= since;
    LandlockConfinement {
        files: is_requested(Layer::LandlockFiles, 1).then(|| file_rules(profile)),
        // A container reaches no allowed host, so an allow-list is no network there.
        refuse_tcp: is_requested(Layer::LandlockNetwork, 4)
            && matches!(profile.network, NetworkPolicy::None | NetworkPolicy::AllowList),
        scope: is_requested(Layer::LandlockScope, 6),
    }
}

/// The parts of the image that may be read, and the directories that may be written. `/sys` is not listed.
fn file_rules(profile: &Profile) -> Vec<LandlockRule> {
    let rule = |path: &str, rights| LandlockRule {
        path: path.to_owned(),
        rights,
    };
    let visible = profile.filesystem.visible.iter().map(|visible| visible.path.as_str());
    let image_directories = ["/opt", "/srv", "/var"];
    let outside_etc = visible
        .filter(|path| !path.starts_with("/etc/"))
        .chain(image_directories);
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
    let devices = devices.filter(|device| !TERMINAL_DEVICES.contains(&device.name.as_str()));
    rules.extend(devices.map(|device| rule(&format!("/dev/{}", device.name), FileRights::Devices)));
    rules
}

fn security_options(profile: &Profile, with_seccomp: bool) -> Vec<String> {
    let mut options = vec!["no-new-privileges=true".to_owned()];
    if with_seccomp {
        options.push(format!("seccomp={}", docker_seccomp_profile(profile.syscalls.rules())));
    } else {
        options.push("seccomp=unconfined".to_owned());
    }
    options
}

fn ulimits(limits: &Limits) -> Vec<ResourcesUlimits> {
    // A core limit of 1 also prevents piped core handlers, unlike 0 (core(5)). The control group limits the processes:
    // RLIMIT_NPROC counts all processes of a user, over all containers.
    let list = [
        ("core", 1),
        ("cpu", limits.cpu.as_secs().saturating_add(1)),
        // The runner first writes the staged files, and then sets the limit of the command.
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
        soft: Some(saturate_to_i64(limit)),
        hard: Some(saturate_to_i64(limit)),
    };
    list.into_iter().map(entry).collect()
}

fn tmpfs_mounts(limits: &Limits) -> HashMap<String, String> {
    let ids = format!("uid={},gid={}", SANDBOX_IDS.uid, SANDBOX_IDS.gid);
    let mount = |bytes: u64, inodes: u64, mode: &str| {
        format!("rw,exec,nosuid,nodev,size={bytes},nr_inodes={inodes},mode={mode},{ids}")
    };
    let workspace = mount(limits.workspace.bytes(), limits.workspace_inodes, "0755");
    // Skills do not count against the workspace quota; the memory limit bounds them. What a command changes in its skill
    // does count: the runner checks it.
    let skills = mount(limits.memory.bytes(), MAX_SKILL_INODES, "0755");
    // For programs that ignore TMPDIR. Together with the workspace it stays below the memory limit of the shipped
    // profiles.
    let tmp = mount(limits.workspace.bytes() / 4, limits.workspace_inodes / 4, "1777");
    HashMap::from([
        (layout::ROOT.to_owned(), workspace),
        (format!("{}/{}", layout::ROOT, layout::SKILLS), skills),
        ("/tmp".to_owned(), tmp),
    ])
}

/// The maximum number of files and directories of all skills of a run.
pub(super) const MAX_SKILL_INODES: u64 = 200_000;

fn masked_paths(profile: &Profile) -> Vec<String> {
    let profile_paths = profile.filesystem.masked.iter().map(|masked| masked.path.as_str());
    let mut all: Vec<String> = profile_paths
        .chain(MASKED_PROC_PATHS)
        .chain(MASKED_SYS_PATHS)
        .chain(MASKED_DEV_PATHS)
        .map(str::to_owned)
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn saturate_to_i64(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use skillbox_sandbox::Profiles;

    use super::*;

    /// The request as JSON. The system call filter, which has its own tests, is shortened.
    fn redacted_body(profile: &str) -> serde_json::Value {
        let profiles = Profiles::shipped();
        let profile = profiles.get(profile).unwrap();
        let body = container_body(profile, &profile.limits.default, "sha256:0", "owner", &[]);
        let mut redacted = serde_json::to_value(body).unwrap();
        for option in redacted["HostConfig"]["SecurityOpt"].as_array_mut().unwrap() {
            let text = option.as_str().unwrap();
            *option = text.chars().take(48).collect::<String>().into();
        }
        redacted.sort_all_objects();
        redacted
    }

    #[test]
    fn the_default_profile_as_a_container() {
        insta::assert_json_snapshot!(redacted_body("default"));
    }

    #[test]
    fn profiles_change_the_limits_but_not_the_isolation() {
        let (strict, default) = (redacted_body("strict"), redacted_body("default"));
        assert_ne!(strict["HostConfig"]["Memory"], default["HostConfig"]["Memory"]);
        for field in [
            "NetworkMode",
            "ReadonlyRootfs",
            "CapDrop",
            "IpcMode",
            "LogConfig",
            "MaskedPaths",
            "Init",
        ] {
            assert_eq!(strict["HostConfig"][field], default["HostConfig"][field], "{field}");
        }
    }

    #[test]
    fn only_supported_landlock_features_are_requested() {
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
