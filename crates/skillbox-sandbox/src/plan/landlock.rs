//! Plans the Landlock step. Its file rules allow the same files as the mounts do.

use skillbox_model::Layer;

use super::filesystem::binds_outside_workspace;
use super::job::{BindAccess, Job, ListeningPorts};
use super::op::{ConfineOp, FileRights, LandlockRule};
use super::step_list::StepList;
use crate::host::{HostFacts, PathType};
use crate::profile::Profile;

/// Adds the Landlock step if one of its layers is enforced.
pub(super) fn push_landlock(
    steps: &mut StepList<'_>,
    profile: &Profile,
    facts: &HostFacts,
    job: &Job,
    is_enforced: &impl Fn(Layer) -> bool,
) {
    let layers: Vec<Layer> = [Layer::LandlockFiles, Layer::LandlockNetwork, Layer::LandlockScope]
        .into_iter()
        .filter(|layer| is_enforced(*layer))
        .collect();
    if layers.is_empty() {
        return;
    }
    let files = is_enforced(Layer::LandlockFiles).then(|| {
        if is_enforced(Layer::MountNamespace) {
            rules_for_new_root(profile, facts, job, is_enforced(Layer::Proc))
        } else {
            rules_for_host_root(profile, facts, job)
        }
    });
    let op = ConfineOp::Landlock {
        abi: facts.landlock_abi,
        files,
        refuse_tcp: is_enforced(Layer::LandlockNetwork),
        tcp_ports: job
            .listening_ports
            .as_ref()
            .map(ListeningPorts::tcp)
            .unwrap_or_default(),
        scope: is_enforced(Layer::LandlockScope),
    };
    steps.push_with_profile_need(&layers, op);
}

fn rule(path: &str, rights: FileRights) -> LandlockRule {
    LandlockRule {
        path: path.to_owned(),
        rights,
    }
}

/// The rules for a run with a mount namespace.
fn rules_for_new_root(profile: &Profile, facts: &HostFacts, job: &Job, has_proc: bool) -> Vec<LandlockRule> {
    let mut rules = vec![rule("/", FileRights::List)];
    // In the new root, /etc contains only what the profile puts there, so one rule covers it.
    let is_below_etc = |path: &str| path.starts_with("/etc/");
    rules.extend(
        existing_visible_paths(profile, facts)
            .filter(|path| !is_below_etc(path))
            .map(|path| rule(path, FileRights::ReadExecute)),
    );
    rules.push(rule("/etc", FileRights::Read));
    let files = profile.filesystem.files.iter().filter(|file| !is_below_etc(&file.path));
    rules.extend(files.map(|file| rule(&file.path, FileRights::Read)));
    rules.push(rule("/dev", FileRights::Devices));
    rules.push(rule("/dev/shm", FileRights::Everything));
    if has_proc {
        rules.push(rule("/proc", FileRights::Read));
    }
    push_job_rules(&mut rules, job);
    rules
}

/// The rules for a run in the mount namespace of the host.
fn rules_for_host_root(profile: &Profile, facts: &HostFacts, job: &Job) -> Vec<LandlockRule> {
    let mut rules: Vec<LandlockRule> = existing_visible_paths(profile, facts)
        .map(|path| rule(path, FileRights::ReadExecute))
        .collect();
    // Here these are the terminals of the host, which a script must not open.
    let is_terminal = |name: &str| matches!(name, "tty" | "pts");
    let devices = profile.filesystem.devices.iter();
    let devices = devices.filter(|device| !is_terminal(&device.name));
    rules.extend(devices.map(|device| rule(&format!("/dev/{}", device.name), FileRights::Devices)));
    push_job_rules(&mut rules, job);
    rules
}

fn existing_visible_paths<'a>(profile: &'a Profile, facts: &'a HostFacts) -> impl Iterator<Item = &'a str> {
    profile
        .filesystem
        .visible
        .iter()
        .map(|visible| visible.path.as_str())
        .filter(|path| matches!(facts.paths.get(*path), Some(PathType::Directory | PathType::File)))
}

fn push_job_rules(rules: &mut Vec<LandlockRule>, job: &Job) {
    for bind in binds_outside_workspace(job) {
        let rights = match bind.access {
            BindAccess::ReadOnly => FileRights::ReadExecute,
            BindAccess::ReadWrite => FileRights::Everything,
        };
        rules.push(rule(&bind.target, rights));
    }
    rules.push(rule(&job.workspace_target, FileRights::Everything));
}
