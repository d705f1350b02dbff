//! What launches draw on: facts, namespaces and control groups, found or made when the spawner begins.

use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};
use rustix::thread::{CapabilitiesSecureBits, set_capabilities_secure_bits};

use super::beside::Processors;
use super::known_steps::KnownSteps;
use super::network::Network;
use super::owner_maps::OwnerMaps;
use super::slots::Slots;
use super::stage::{Place, Stage};
use super::template::Templates;
use super::{SpawnerKind, SpawnerOptions};
use crate::cgroup::{Groups, Layout};
use crate::host::{Availability, CgroupFacts, HostFacts, MountApi};

/// The belongings of a spawner.
pub(super) struct Spawning {
    pub facts: HostFacts,
    /// The spawner itself, as its children see whether it still lives. A child cannot open it: it has another pid, and
    /// mostly another pid namespace.
    pub own_pidfd: Option<OwnedFd>,
    pub stage: Option<Stage>,
    pub templates: Templates,
    pub network: Option<Network>,
    pub groups: Option<Groups>,
    pub owner_maps: OwnerMaps,
    pub slots: Slots,
    pub known_steps: KnownSteps,
    /// What children may use again, where the spawner was sent away from its parent's processor.
    pub processors: Option<Processors>,
    /// Whether nothing is made ahead any more, since there will be no other run.
    is_done: bool,
    one_shot: bool,
}

impl Spawning {
    /// Makes what can be made; what cannot is a fact for the planner.
    pub fn set_up(options: &SpawnerOptions) -> Self {
        let own_pidfd = pidfd_open(getpid(), PidfdFlags::empty()).ok();
        if options.kind == SpawnerKind::Plain {
            let (reason, fix) = ("this spawner is for unconfined runs", "use a confining spawner");
            let mut facts = HostFacts::gather_with(options, CgroupFacts::none(reason, fix));
            facts.namespaces = Availability::missing(reason, fix);
            let templates = Templates::default();
            return Self {
                facts,
                own_pidfd,
                stage: None,
                templates,
                network: None,
                groups: None,
                owner_maps: OwnerMaps::default(),
                slots: Slots::default(),
                known_steps: KnownSteps::default(),
                processors: None,
                is_done: false,
                one_shot: true,
            };
        }
        let (groups, cgroup) = groups();
        let mut facts = HostFacts::gather_with(options, cgroup);
        if facts.privileged {
            // The ids change around each clone, and the capabilities stay.
            let _ = set_capabilities_secure_bits(CapabilitiesSecureBits::NO_SETUID_FIXUP);
            let _ = rustix::thread::set_thread_groups(&[]);
        }
        let network = Network::new().ok();
        let stage = stage(&mut facts, options);
        Self {
            facts,
            own_pidfd,
            stage,
            templates: Templates::default(),
            network,
            groups,
            owner_maps: OwnerMaps::default(),
            slots: Slots::new(usize::from(options.slots)),
            known_steps: KnownSteps::default(),
            processors: None,
            is_done: false,
            one_shot: options.one_shot,
        }
    }

    /// Whether something can be made ahead for the next run.
    pub fn has_preparations(&self) -> bool {
        !self.is_done
            && (self.slots.needs_preparation()
                || self.network.as_ref().is_some_and(Network::needs_preparation)
                || self.groups.as_ref().is_some_and(Groups::needs_preparation))
    }

    /// Makes one thing ahead. A failure comes up again, and is told, when the thing is needed.
    pub fn prepare_next(&mut self) {
        if self.slots.needs_preparation() {
            self.park_one();
        } else if let Some(network) = self.network.as_mut().filter(|network| network.needs_preparation()) {
            let _ = network.prepare();
        } else if let Some(groups) = self.groups.as_mut() {
            groups.prepare();
        }
    }

    /// Makes what nearly every run needs, while the server still reads what the one run is to be.
    pub fn make_ahead(&mut self) {
        if let Some(network) = self.network.as_mut().filter(|_| self.one_shot) {
            // A failure comes up again, and is told, when it is needed.
            let _ = network.prepare();
        }
    }

    /// Whether there will be one run.
    pub fn is_for_one(&self) -> bool {
        self.one_shot
    }

    /// Notes that a run was launched.
    pub fn launched(&mut self) {
        self.is_done = self.one_shot;
    }
}

fn groups() -> (Option<Groups>, CgroupFacts) {
    let family = [getpid(), rustix::process::getppid().unwrap_or(Pid::INIT)];
    let layout = Layout::discover(&family.map(|pid| pid.as_raw_nonzero().get()));
    let facts = Layout::facts(&layout);
    let Ok(layout) = layout else { return (None, facts) };
    match Groups::open(&layout) {
        Ok(groups) => (Some(groups), facts),
        Err(error) => {
            let reason = format!("control groups cannot be made: {error}");
            let facts = CgroupFacts::none(&reason, "run `skillbox doctor` for the cause");
            (None, facts)
        }
    }
}

fn stage(facts: &mut HostFacts, options: &SpawnerOptions) -> Option<Stage> {
    if !facts.namespaces.is_available() {
        return None;
    }
    if facts.mount_api == MountApi::Paths {
        facts.namespaces = Availability::missing(
            "the kernel, or a filter in front of it, lacks open_tree, fsopen or move_mount",
            "use Linux 5.2 or later, or let the filter pass these calls",
        );
        return None;
    }
    let place = if options.one_shot { Place::Copy } else { Place::Empty };
    match Stage::set_up(facts, place) {
        Ok(stage) => Some(stage),
        Err(error) => {
            let reason = format!("namespaces and mounts cannot be made: {error}");
            facts.namespaces = Availability::missing(reason, "run `skillbox doctor` for the cause");
            None
        }
    }
}
