//! Contradictions inside a complete profile.

use skillbox_model::Layer;

use super::document::Document;
use super::extend::written_need;
use super::findings::Findings;
use super::policy::{Backing, Need, NetworkPolicy, Profile};
use super::yaml::{self, At, Place};
use crate::seccomp::SyscallAction;

/// Device nodes that give a script nothing of the host.
const HARMLESS_DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// Paths that the sandbox makes itself, with everything below them.
const OWN_PATHS: [&str; 4] = ["/proc", "/dev", "/sys", "/workspace"];

/// Tells every contradiction, at the place in the document that caused it where there is one.
pub(super) fn contradictions(profile: &Profile, document: &Document, findings: &mut Findings) {
    layers(profile, document, findings);
    network(profile, document, findings);
    limits(profile, document, findings);
    filesystem(profile, document, findings);
    environment(document, findings);
}

fn on(profile: &Profile, layer: Layer) -> bool {
    profile.need(layer) != Need::Off
}

fn layers(profile: &Profile, document: &Document, findings: &mut Findings) {
    use Layer::{
        Capabilities, LandlockFiles, LandlockNetwork, LandlockScope, MountNamespace, NoNewPrivileges, PidNamespace,
        Proc, Seccomp, UserNamespace, WallClock,
    };
    let rules = [
        (Proc, MountNamespace, "a fresh /proc is mounted in a mount namespace"),
        (Proc, PidNamespace, "a fresh /proc shows a pid namespace"),
        (
            MountNamespace,
            UserNamespace,
            "the mounts are made inside the user namespace",
        ),
        (
            MountNamespace,
            Capabilities,
            "a script with capabilities could undo the mounts",
        ),
        (
            Seccomp,
            NoNewPrivileges,
            "the kernel takes a filter only together with it",
        ),
        (
            LandlockFiles,
            NoNewPrivileges,
            "the kernel takes Landlock rules only together with it",
        ),
        (
            LandlockNetwork,
            NoNewPrivileges,
            "the kernel takes Landlock rules only together with it",
        ),
        (
            LandlockScope,
            NoNewPrivileges,
            "the kernel takes Landlock rules only together with it",
        ),
    ];
    for (layer, base, why) in rules {
        if on(profile, layer) && !on(profile, base) {
            let place = layer_place(document, &[base, layer]);
            let message = format!("{layer} is asked for while {base} is off: {why}");
            findings.add(place, "profile_contradiction", message);
        } else if profile.need(layer) == Need::Required && profile.need(base) == Need::Preferred {
            let place = layer_place(document, &[base, layer]);
            let message = format!("{layer} is required while {base} is only preferred: {why}");
            findings.add(place, "profile_contradiction", message);
        }
    }
    if !on(profile, WallClock) {
        let place = layer_place(document, &[WallClock]);
        findings.add(
            place,
            "profile_contradiction",
            "wall_clock cannot be off: every run ends".to_owned(),
        );
    }
}

/// The place of the first of these layers that the document itself writes.
fn layer_place(document: &Document, layers: &[Layer]) -> Option<Place> {
    let written = layers.iter().find_map(|layer| written_need(document, *layer).1);
    written.or_else(|| yaml::place(&document.name))
}

fn network(profile: &Profile, document: &Document, findings: &mut Findings) {
    let place = document
        .network
        .as_ref()
        .and_then(yaml::place)
        .or_else(|| yaml::place(&document.name));
    let mut wrong = |message: &str| findings.add(place, "profile_contradiction", message.to_owned());
    let private = on(profile, Layer::NetworkNamespace);
    match profile.network {
        NetworkPolicy::Host if private => wrong("network is host while network_namespace is on"),
        NetworkPolicy::Loopback if !private => wrong("network is loopback while network_namespace is off"),
        NetworkPolicy::Loopback if on(profile, Layer::LandlockNetwork) => {
            wrong("network is loopback while landlock_network is on: its rules name ports, not addresses");
        }
        NetworkPolicy::Loopback if on(profile, Layer::Seccomp) && !internet_sockets(profile) => {
            wrong("network is loopback, but the rule for the system call socket lets no AF_INET through");
        }
        NetworkPolicy::None if on(profile, Layer::Seccomp) && internet_sockets(profile) => {
            wrong("network is none, but the rule for the system call socket lets AF_INET through");
        }
        _ => {}
    }
}

fn internet_sockets(profile: &Profile) -> bool {
    let rule = profile
        .syscalls
        .rules()
        .iter()
        .find(|rule| rule.calls.iter().any(|call| call == "socket"));
    match rule.map(|rule| &rule.action) {
        Some(SyscallAction::Allow) => true,
        Some(SyscallAction::AllowIf { test, .. }) => test.passes(libc::AF_INET as u32),
        Some(SyscallAction::Refuse { .. }) | None => false,
    }
}

fn limits(profile: &Profile, document: &Document, findings: &mut Findings) {
    let limits = &profile.limits.default;
    let own = document.limits.as_ref();
    let at = |place: Option<Place>| {
        place
            .or_else(|| own.and_then(yaml::place))
            .or_else(|| yaml::place(&document.name))
    };
    macro_rules! place {
        ($field:ident) => {
            at(own
                .and_then(|own| own.value.$field.as_ref())
                .and_then(yaml::place))
        };
    }
    let positive = [
        ("wall", limits.wall.is_zero(), place!(wall)),
        ("cpu", limits.cpu.is_zero(), place!(cpu)),
        (
            "cpu_quota_millis",
            limits.cpu_quota_millis == Some(0),
            place!(cpu_quota_millis),
        ),
        ("memory", limits.memory.bytes() == 0, place!(memory)),
        ("pids", limits.pids == 0, place!(pids)),
        ("open_files", limits.open_files < 8, place!(open_files)),
        ("file", limits.file.bytes() == 0, place!(file)),
        ("workspace", limits.workspace.bytes() == 0, place!(workspace)),
        (
            "workspace_inodes",
            limits.workspace_inodes < 16,
            place!(workspace_inodes),
        ),
        ("output", limits.output.bytes() == 0, place!(output)),
    ];
    for (name, too_small, place) in positive {
        if too_small {
            findings.add(
                place,
                "profile_limit",
                format!("the limit {name} is too small for any run"),
            );
        }
    }
    if limits.wall > profile.limits.wall_max {
        let (wall, max) = (limits.wall.as_secs(), profile.limits.wall_max.as_secs());
        findings.add(
            place!(wall),
            "profile_contradiction",
            format!("wall is {wall} s, over wall_max of {max} s"),
        );
    }
    let in_memory = match profile.workspace.backing {
        Backing::Tmpfs => limits.workspace.bytes().saturating_add(profile.filesystem.shm.bytes()),
        Backing::Disk => profile.filesystem.shm.bytes(),
    };
    if on(profile, Layer::Memory) && limits.memory.bytes() <= in_memory {
        let message = format!(
            "memory is {}, but the files in memory (workspace and /dev/shm) may take {}: a full workspace would end the run",
            limits.memory,
            skillbox_model::ByteSize(in_memory)
        );
        findings.add(place!(memory), "profile_contradiction", message);
    }
}

fn filesystem(profile: &Profile, document: &Document, findings: &mut Findings) {
    let Some(written) = &document.filesystem else { return };
    let mut made: Vec<(&str, Option<Place>)> = Vec::new();
    made.extend(
        written
            .visible
            .iter()
            .map(|entry| (entry.value.path.as_str(), yaml::place(entry))),
    );
    made.extend(
        written
            .directories
            .iter()
            .map(|entry| (entry.value.path.as_str(), yaml::place(entry))),
    );
    made.extend(
        written
            .links
            .iter()
            .map(|entry| (entry.value.path.as_str(), yaml::place(entry))),
    );
    made.extend(
        written
            .files
            .iter()
            .map(|entry| (entry.value.path.as_str(), yaml::place(entry))),
    );
    for (path, place) in made {
        if let Some(own) = OWN_PATHS.iter().find(|own| is_at_or_below(path, own)) {
            findings.add(
                place,
                "profile_contradiction",
                format!("{path} lies in {own}, which the sandbox makes itself"),
            );
        }
        let policy = &profile.filesystem;
        let kinds = [
            policy.visible.iter().any(|entry| entry.path == path),
            policy.directories.iter().any(|entry| entry.path == path),
            policy.links.iter().any(|entry| entry.path == path),
            policy.files.iter().any(|entry| entry.path == path),
        ];
        if kinds.iter().filter(|kind| **kind).count() > 1 {
            findings.add(
                place,
                "profile_contradiction",
                format!("{path} is listed as more than one kind of entry"),
            );
        }
        let above = policy
            .visible
            .iter()
            .find(|entry| entry.path != path && is_at_or_below(path, &entry.path));
        if let Some(above) = above {
            let message = format!("{path} lies in {}, which is visible as a whole", above.path);
            findings.add(place, "profile_contradiction", message);
        }
    }
    for device in &written.devices {
        if !HARMLESS_DEVICES.contains(&device.value.name.as_str()) {
            let message = format!(
                "the device {:?} is not one of {}",
                device.value.name,
                HARMLESS_DEVICES.join(", ")
            );
            findings.add(yaml::place(device), "profile_device", message);
        }
    }
    for mask in &written.masked {
        if !mask.value.path.starts_with("/proc/") {
            findings.add(
                yaml::place(mask),
                "profile_path",
                format!("{} is not below /proc", mask.value.path),
            );
        }
    }
}

fn is_at_or_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn environment(document: &Document, findings: &mut Findings) {
    let Some(written) = &document.environment else { return };
    let valid = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
    for entry in &written.pass {
        name_check(valid(&entry.value.name), &entry.value.name, entry, findings);
        if written.set.iter().any(|set| set.value.name == entry.value.name) {
            let message = format!("{} is both passed and set", entry.value.name);
            findings.add(yaml::place(entry), "profile_contradiction", message);
        }
    }
    for entry in &written.set {
        name_check(valid(&entry.value.name), &entry.value.name, entry, findings);
        if entry.value.value.contains('\0') {
            findings.add(
                yaml::place(entry),
                "profile_environment",
                "a value cannot hold a NUL".to_owned(),
            );
        }
    }
}

fn name_check<T>(valid: bool, name: &str, entry: &At<T>, findings: &mut Findings) {
    if !valid {
        findings.add(
            yaml::place(entry),
            "profile_environment",
            format!("{name:?} is not a name for a variable"),
        );
    }
}
