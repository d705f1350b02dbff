//! The state of the spawner: facts, namespaces and control groups, found or created at its start.

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};
use rustix::thread::{CapabilitiesSecureBits, set_capabilities_secure_bits, set_thread_groups};

use super::cpu_affinity::CpuAffinity;
use super::mount_namespaces::{IdleMounts, MountNamespaces};
use super::network::Network;
use super::owner_maps::OwnerMaps;
use super::slots::Slots;
use super::step_cache::StepCache;
use super::template::Templates;
use crate::cgroup::{CgroupFactory, CgroupLayout};
use crate::child::ChildFds;
use crate::host::{Availability, CgroupFacts, HostFacts, MountApi, cgroup_facts};
use crate::protocol::StepFailure;
use crate::spawner_options::{SpawnerKind, SpawnerOptions};

/// The state of the spawner.
pub(super) struct SpawnerState {
    pub facts: HostFacts,
    /// A pidfd of the spawner, for its children. They cannot open it themselves in their pid namespace. None where the
    /// kernel or a filter refuses pidfd_open(2).
    own_pidfd: Option<OwnedFd>,
    /// None where no mount namespace can be created.
    pub mounts: Option<MountNamespaces>,
    pub templates: Templates,
    /// The error where the spawner cannot change its network namespace.
    pub network: io::Result<Network>,
    pub cgroups: Option<CgroupFactory>,
    pub owner_maps: OwnerMaps,
    pub slots: Slots,
    pub step_cache: StepCache,
    /// The processors of the children, where the spawner itself was moved away from the processor of its parent.
    pub affinity: Option<CpuAffinity>,
    /// Why a sandbox could not be parked. The next launch reports it to the server.
    pub parking_failure: Option<StepFailure>,
    pub is_one_shot: bool,
    /// Whether there has been a launch.
    pub has_launched: bool,
}

impl SpawnerState {
    /// Creates what this host allows, and records the rest in the facts for the planner.
    pub fn create(options: &SpawnerOptions, affinity: Option<CpuAffinity>) -> Result<Self, StepFailure> {
        let failed = |what: &'static str| move |error: io::Error| StepFailure::outside_steps(what, &error);
        let own_pidfd = open_own_pidfd().map_err(failed("open the pidfd of the spawner"))?;
        if options.kind == SpawnerKind::Plain {
            let (reason, fix) = ("this spawner is for unconfined runs", "use a confining spawner");
            let mut facts = HostFacts::probe_with_cgroup(options.script, CgroupFacts::unavailable(reason, fix));
            facts.namespaces = Availability::missing(reason, fix);
            return Ok(Self {
                facts,
                own_pidfd,
                mounts: None,
                templates: Templates::default(),
                network: Err(io::Error::from_raw_os_error(libc::EPERM)),
                cgroups: None,
                owner_maps: OwnerMaps::default(),
                slots: Slots::new(0),
                step_cache: StepCache::default(),
                affinity,
                parking_failure: None,
                is_one_shot: true,
                has_launched: false,
            });
        }
        let (cgroups, cgroup_facts) = create_cgroup_factory();
        let mut facts = HostFacts::probe_with_cgroup(options.script, cgroup_facts);
        if facts.privileged {
            // The ids change around each clone, and the capabilities must stay.
            set_capabilities_secure_bits(CapabilitiesSecureBits::NO_SETUID_FIXUP)
                .map_err(|errno| failed("set the securebits")(errno.into()))?;
            drop_supplementary_groups().map_err(failed("drop the supplementary groups"))?;
        }
        let network = Network::new();
        let mounts = create_mount_namespaces(&mut facts, options);
        Ok(Self {
            facts,
            own_pidfd,
            mounts,
            templates: Templates::default(),
            network,
            cgroups,
            owner_maps: OwnerMaps::default(),
            slots: Slots::new(usize::from(options.slots)),
            step_cache: StepCache::default(),
            affinity,
            parking_failure: None,
            is_one_shot: options.one_shot,
            has_launched: false,
        })
    }

    /// The descriptors of a new child, whatever it will run. The child calls this.
    pub fn child_fds(&self, tasks_fds: Vec<OwnedFd>) -> io::Result<ChildFds> {
        let mounts = self.mounts.as_ref();
        Ok(ChildFds {
            tree_cloner: mounts.map(|mounts| mounts.tree_cloner),
            proc: mounts.map(|mounts| mounts.proc.try_clone()).transpose()?,
            spawner: self.own_pidfd.as_ref().map(OwnedFd::try_clone).transpose()?,
            tasks_fds,
        })
    }
}

fn open_own_pidfd() -> io::Result<Option<OwnedFd>> {
    match pidfd_open(getpid(), PidfdFlags::empty()) {
        // Linux before 5.3, or a container engine whose filter is older.
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => Ok(None),
        pidfd => Ok(Some(pidfd?)),
    }
}

/// A script that only changes its ids would keep the groups.
fn drop_supplementary_groups() -> io::Result<()> {
    if !rustix::process::getgroups()?.is_empty() {
        set_thread_groups(&[])?;
    }
    Ok(())
}

fn create_cgroup_factory() -> (Option<CgroupFactory>, CgroupFacts) {
    let family = [getpid(), rustix::process::getppid().unwrap_or(Pid::INIT)];
    let layout = CgroupLayout::discover(&family.map(|pid| pid.as_raw_nonzero().get()));
    let facts = cgroup_facts(&layout);
    let Ok(layout) = layout else { return (None, facts) };
    match CgroupFactory::open(&layout) {
        Ok(cgroups) => (Some(cgroups), facts),
        Err(error) => {
            let reason = format!("control groups cannot be created: {error}");
            let facts = CgroupFacts::unavailable(&reason, "run `skillbox doctor` for the cause");
            (None, facts)
        }
    }
}

fn create_mount_namespaces(facts: &mut HostFacts, options: &SpawnerOptions) -> Option<MountNamespaces> {
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
    let idle_mounts = if options.one_shot {
        IdleMounts::HostCopy
    } else {
        IdleMounts::Minimal
    };
    match MountNamespaces::create(facts, idle_mounts) {
        Ok(mounts) => Some(mounts),
        Err(error) => {
            let reason = format!("namespaces and mounts cannot be created: {error}");
            facts.namespaces = Availability::missing(reason, "run `skillbox doctor` for the cause");
            None
        }
    }
}
