//! Checks a complete profile for contradictions.

use skillbox_model::Layer;

use super::diagnostics::Diagnostics;
use super::document::ProfileDocument;
use super::policy::{Need, NetworkPolicy, Profile, WorkspaceBacking};
use super::yaml::{self, Located, Location};
use crate::seccomp::SyscallAction;

/// The devices that a profile may list: they give a script no access to the host. `tty` is the terminal that a process
/// has opened itself, and `pts` a private set of pseudo-terminals.
const ALLOWED_DEVICES: [&str; 7] = ["null", "zero", "full", "random", "urandom", "tty", "pts"];

/// Directories that the sandbox creates itself. A profile cannot add anything at or below them.
const SANDBOX_PATHS: [&str; 4] = ["/proc", "/dev", "/sys", "/workspace"];

/// Reports every contradiction, with the location in the document that causes it.
pub(super) fn check_profile(profile: &Profile, document: &ProfileDocument, diagnostics: &mut Diagnostics) {
    check_layers(profile, document, diagnostics);
    check_network(profile, document, diagnostics);
    check_limits(profile, document, diagnostics);
    check_filesystem(profile, document, diagnostics);
    check_environment(document, diagnostics);
}

fn is_requested(profile: &Profile, layer: Layer) -> bool {
    profile.need(layer) != Need::Off
}

fn check_layers(profile: &Profile, document: &ProfileDocument, diagnostics: &mut Diagnostics) {
    use Layer::{
        Capabilities, LandlockFiles, LandlockNetwork, LandlockScope, MountNamespace, NoNewPrivileges, PidNamespace,
        Proc, Seccomp, UserNamespace, WallClock,
    };
    let dependencies = [
        (Proc, MountNamespace, "a fresh /proc is mounted in a mount namespace"),
        (Proc, PidNamespace, "a fresh /proc shows a pid namespace"),
        (
            MountNamespace,
            UserNamespace,
            "the mounts are created inside the user namespace",
        ),
        (
            MountNamespace,
            Capabilities,
            "a script with capabilities could undo the mounts",
        ),
        (
            Seccomp,
            NoNewPrivileges,
            "the kernel loads a filter only for a process with no_new_privs",
        ),
        (
            LandlockFiles,
            NoNewPrivileges,
            "the kernel enforces Landlock rules only for a process with no_new_privs",
        ),
        (
            LandlockNetwork,
            NoNewPrivileges,
            "the kernel enforces Landlock rules only for a process with no_new_privs",
        ),
        (
            LandlockScope,
            NoNewPrivileges,
            "the kernel enforces Landlock rules only for a process with no_new_privs",
        ),
    ];
    for (layer, prerequisite, reason) in dependencies {
        if is_requested(profile, layer) && !is_requested(profile, prerequisite) {
            let location = layer_location(document, &[prerequisite, layer]);
            let message = format!("{layer} is requested while {prerequisite} is off: {reason}");
            diagnostics.add(location, "profile_contradiction", message);
        } else if profile.need(layer) == Need::Required && profile.need(prerequisite) == Need::Preferred {
            let location = layer_location(document, &[prerequisite, layer]);
            let message = format!("{layer} is required while {prerequisite} is only preferred: {reason}");
            diagnostics.add(location, "profile_contradiction", message);
        }
    }
    if !is_requested(profile, WallClock) {
        let location = layer_location(document, &[WallClock]);
        diagnostics.add(
            location,
            "profile_contradiction",
            "wall_clock cannot be off: every run has a time limit".to_owned(),
        );
    }
}

/// The location of the first of these layers that the document sets, or else of the name of the profile.
fn layer_location(document: &ProfileDocument, layers: &[Layer]) -> Option<Location> {
    let first_set = layers
        .iter()
        .find_map(|layer| document.layers.get(layer).and_then(yaml::location));
    first_set.or_else(|| yaml::location(&document.name))
}

fn check_network(profile: &Profile, document: &ProfileDocument, diagnostics: &mut Diagnostics) {
    let location = document
        .network
        .as_ref()
        .and_then(yaml::location)
        .or_else(|| yaml::location(&document.name));
    let mut add = |message: &str| diagnostics.add(location, "profile_contradiction", message.to_owned());
    let has_namespace = is_requested(profile, Layer::NetworkNamespace);
    match profile.network {
        NetworkPolicy::Host if has_namespace => add("network is host while network_namespace is on"),
        NetworkPolicy::Loopback if !has_namespace => add("network is loopback while network_namespace is off"),
        NetworkPolicy::Loopback if is_requested(profile, Layer::LandlockNetwork) => {
            add("network is loopback while landlock_network is on: its rules name ports, not addresses");
        }
        NetworkPolicy::Loopback if is_requested(profile, Layer::Seccomp) && !allows_internet_sockets(profile) => {
            add("network is loopback, but the rule for the system call socket does not allow AF_INET");
        }
        NetworkPolicy::AllowList if !has_namespace || !is_requested(profile, Layer::MountNamespace) => {
            add("network is allow_list while network_namespace or mount_namespace is off");
        }
        NetworkPolicy::AllowList if is_requested(profile, Layer::Seccomp) && !allows_internet_sockets(profile) => {
            add("network is allow_list, but the rule for the system call socket does not allow AF_INET");
        }
        NetworkPolicy::None if is_requested(profile, Layer::Seccomp) && allows_internet_sockets(profile) => {
            add("network is none, but the rule for the system call socket allows AF_INET");
        }
        _ => {}
    }
}

fn allows_internet_sockets(profile: &Profile) -> bool {
    let rule = profile
        .syscalls
        .rules()
        .iter()
        .find(|rule| rule.calls.iter().any(|call| call == "socket"));
    match rule.map(|rule| &rule.action) {
        Some(SyscallAction::Allow) => true,
        Some(SyscallAction::AllowIf { test, .. }) => test.passes(libc::AF_INET as u64),
        Some(SyscallAction::Refuse { .. }) | None => false,
    }
}

fn check_limits(profile: &Profile, document: &ProfileDocument, diagnostics: &mut Diagnostics) {
    let limits = &profile.limits.default;
    let own = document.limits.as_ref();
    let or_section = |location: Option<Location>| {
        location
            .or_else(|| own.and_then(yaml::location))
            .or_else(|| yaml::location(&document.name))
    };
    macro_rules! location {
        ($field:ident) => {
            or_section(
                own.and_then(|own| own.value.$field.as_ref())
                    .and_then(yaml::location),
            )
        };
    }
    let minimums = [
        ("wall", limits.wall.is_zero(), location!(wall)),
        ("cpu", limits.cpu.is_zero(), location!(cpu)),
        (
            "cpu_quota_millis",
            limits.cpu_quota_millis == Some(0),
            location!(cpu_quota_millis),
        ),
        ("memory", limits.memory.bytes() == 0, location!(memory)),
        ("pids", limits.pids == 0, location!(pids)),
        ("open_files", limits.open_files < 8, location!(open_files)),
        ("file", limits.file.bytes() == 0, location!(file)),
        ("workspace", limits.workspace.bytes() == 0, location!(workspace)),
        (
            "workspace_inodes",
            limits.workspace_inodes < 16,
            location!(workspace_inodes),
        ),
        ("output", limits.output.bytes() == 0, location!(output)),
    ];
    for (name, is_too_small, location) in minimums {
        if is_too_small {
            diagnostics.add(
                location,
                "profile_limit",
                format!("the limit {name} is too small for any run"),
            );
        }
    }
    if limits.wall > profile.limits.wall_max {
        let (wall, max) = (limits.wall.as_secs(), profile.limits.wall_max.as_secs());
        diagnostics.add(
            location!(wall),
            "profile_contradiction",
            format!("wall is {wall} s, above the wall_max of {max} s"),
        );
    }
    let memory_file_bytes = match profile.workspace.backing {
        WorkspaceBacking::Tmpfs => limits.workspace.bytes().saturating_add(profile.filesystem.shm.bytes()),
        WorkspaceBacking::Disk => profile.filesystem.shm.bytes(),
    };
    if is_requested(profile, Layer::Memory) && limits.memory.bytes() <= memory_file_bytes {
        let message = format!(
            "memory is {}, but the files in memory (workspace and /dev/shm) may use {}: a full workspace would end the run",
            limits.memory,
            skillbox_model::ByteSize(memory_file_bytes)
        );
        diagnostics.add(location!(memory), "profile_contradiction", message);
    }
}

fn check_filesystem(profile: &Profile, document: &ProfileDocument, diagnostics: &mut Diagnostics) {
    let Some(section) = &document.filesystem else { return };
    let mut entries: Vec<(&str, Option<Location>)> = Vec::new();
    entries.extend(
        section
            .visible
            .iter()
            .map(|entry| (entry.value.path.as_str(), yaml::location(entry))),
    );
    entries.extend(
        section
            .directories
            .iter()
            .map(|entry| (entry.value.path.as_str(), yaml::location(entry))),
    );
    entries.extend(
        section
            .links
            .iter()
            .map(|entry| (entry.value.path.as_str(), yaml::location(entry))),
    );
    entries.extend(
        section
            .files
            .iter()
            .map(|entry| (entry.value.path.as_str(), yaml::location(entry))),
    );
    for (path, location) in entries {
        if let Some(own) = SANDBOX_PATHS.iter().find(|own| is_at_or_below(path, own)) {
            diagnostics.add(
                location,
                "profile_contradiction",
                format!("{path} is in {own}, which the sandbox creates itself"),
            );
        }
        let policy = &profile.filesystem;
        let is_listed_as = [
            policy.visible.iter().any(|entry| entry.path == path),
            policy.directories.iter().any(|entry| entry.path == path),
            policy.links.iter().any(|entry| entry.path == path),
            policy.files.iter().any(|entry| entry.path == path),
        ];
        if is_listed_as.iter().filter(|is_listed| **is_listed).count() > 1 {
            diagnostics.add(
                location,
                "profile_contradiction",
                format!("{path} is listed as more than one kind of entry"),
            );
        }
        let ancestor = policy
            .visible
            .iter()
            .find(|entry| entry.path != path && is_at_or_below(path, &entry.path));
        if let Some(ancestor) = ancestor {
            let message = format!("{path} is in {}, which is visible as a whole", ancestor.path);
            diagnostics.add(location, "profile_contradiction", message);
        }
        let is_ancestor = |ancestor: &str| ancestor != path && is_at_or_below(path, ancestor);
        if let Some(link) = policy.links.iter().find(|link| is_ancestor(&link.path)) {
            let message = format!("{path} is below {}, which is a link to {}", link.path, link.target);
            let hint = "use a path of the host that is not below it".to_owned();
            diagnostics.add_with_hint(location, "profile_contradiction", message, hint);
        }
        if let Some(file) = policy.files.iter().find(|file| is_ancestor(&file.path)) {
            let message = format!("{path} is below {}, which is a file", file.path);
            diagnostics.add(location, "profile_contradiction", message);
        }
    }
    for device in &section.devices {
        if !ALLOWED_DEVICES.contains(&device.value.name.as_str()) {
            let message = format!(
                "the device {:?} is not one of {}",
                device.value.name,
                ALLOWED_DEVICES.join(", ")
            );
            diagnostics.add(yaml::location(device), "profile_device", message);
        }
    }
    for mask in &section.masked {
        if !mask.value.path.starts_with("/proc/") {
            diagnostics.add(
                yaml::location(mask),
                "profile_path",
                format!("{} is not below /proc", mask.value.path),
            );
        }
    }
}

fn is_at_or_below(path: &str, ancestor: &str) -> bool {
    path.strip_prefix(ancestor)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn check_environment(document: &ProfileDocument, diagnostics: &mut Diagnostics) {
    let Some(section) = &document.environment else { return };
    for entry in &section.pass {
        check_variable_name(&entry.value.name, entry, diagnostics);
        if section.set.iter().any(|set| set.value.name == entry.value.name) {
            let message = format!("{} is both passed and set", entry.value.name);
            diagnostics.add(yaml::location(entry), "profile_contradiction", message);
        }
    }
    for entry in &section.set {
        check_variable_name(&entry.value.name, entry, diagnostics);
        if entry.value.value.contains('\0') {
            diagnostics.add(
                yaml::location(entry),
                "profile_environment",
                "a value cannot contain a NUL".to_owned(),
            );
        }
    }
}

fn check_variable_name<T>(name: &str, entry: &Located<T>, diagnostics: &mut Diagnostics) {
    if name.is_empty() || name.contains(['=', '\0']) {
        diagnostics.add(
            yaml::location(entry),
            "profile_environment",
            format!("{name:?} is not a valid variable name"),
        );
    }
}
