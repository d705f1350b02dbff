//! The state of the spawner.

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};
use rustix::thread::{CapabilitiesSecureBits, set_capabilities_secure_bits, set_thread_groups};

use super::cpu_affinity::CpuAffinity;
use super::mount_namespaces::{IdleMounts, MountNamespaces};
use super::network::NetworkNamespace;
use super::owner_idmaps::OwnerIdmaps;
use super::parked_sandboxes::ParkedSandboxes;
use super::step_cache::DecodedStepCache;
use super::template::Templates;
use crate::cgroup::{CgroupFactory, CgroupLayout};
use crate::child::ChildFds;
use crate::host::{Availability, CgroupFacts, HostFacts, MountApi, cgroup_facts};
use crate::protocol::StepFailure;
use crate::spawner_options::{SpawnerKind, SpawnerOptions};

/// The state of the spawner.
pub(super) struct SpawnerState {
    pub facts: HostFacts,
    /// A pidfd of the spawner, for its children, which cannot open it from their own pid namespace. None where the
    /// kernel lacks pidfd_open(2), or a filter refuses it.
    own_pidfd: Option<OwnedFd>,
    /// None if no mount namespace can be created.
    pub mount_namespaces: Option<MountNamespaces>,
    pub templates: Templates,
    /// An error if the network namespace cannot be opened; a launch that needs it reports this error.
    pub network: io::Result<NetworkNamespace>,
    pub cgroups: Option<CgroupFactory>,
    pub owner_idmaps: OwnerIdmaps,
    pub parked_sandboxes: ParkedSandboxes,
    pub step_cache: DecodedStepCache,
    /// The processors for the children, if the spawner itself is limited to fewer.
    pub affinity: Option<CpuAffinity>,
    /// Why a sandbox could not be parked. It is reported to the server together with the next launch.
    pub parking_failure: Option<StepFailure>,
    pub is_single_run: bool,
    /// Whether there has been a launch.
    pub has_launched: bool,
}

impl SpawnerState {
    /// Creates the namespaces and control groups that this host allows. The facts record what it does not allow, for
    /// the planner.
    pub fn create(options: &SpawnerOptions, affinity: Option<CpuAffinity>) -> Result<Self, StepFailure> {
        let failed = |what: &'static str| move |error: io::Error| StepFailure::outside_steps(what, &error);
        let own_pidfd = open_own_pidfd().map_err(failed("open the pidfd of the spawner"))?;
        if options.kind == SpawnerKind::Unconfined {
            let (reason, fix) = ("this spawner is for unconfined runs", "use a confining spawner");
            let mut facts = HostFacts::probe_with_cgroup(options.script_ids, CgroupFacts::unavailable(reason, fix));
            facts.namespaces = Availability::missing(reason, fix);
            return Ok(Self {
                facts,
                own_pidfd,
                mount_namespaces: None,
                templates: Templates::default(),
                network: Err(io::Error::from_raw_os_error(libc::EPERM)),
                cgroups: None,
                owner_idmaps: OwnerIdmaps::default(),
                parked_sandboxes: ParkedSandboxes::new(0),
                step_cache: DecodedStepCache::default(),
                affinity,
                parking_failure: None,
                is_single_run: true,
                has_launched: false,
            });
        }
        let (cgroups, cgroup_facts) = create_cgroup_factory();
        let mut facts = HostFacts::probe_with_cgroup(options.script_ids, cgroup_facts);
        if facts.privileged {
            // The effective ids change around each clone, and the capabilities must stay.
            set_capabilities_secure_bits(CapabilitiesSecureBits::NO_SETUID_FIXUP)
                .map_err(|errno| failed("set the securebits")(errno.into()))?;
            drop_supplementary_groups().map_err(failed("drop the supplementary groups"))?;
        }
        let network = NetworkNamespace::open();
        let mount_namespaces = create_mount_namespaces(&mut facts, options);
        Ok(Self {
            facts,
            own_pidfd,
            mount_namespaces,
            templates: Templates::default(),
            network,
            cgroups,
            owner_idmaps: OwnerIdmaps::default(),
            parked_sandboxes: ParkedSandboxes::new(usize::from(options.max_parked)),
            step_cache: DecodedStepCache::default(),
            affinity,
            parking_failure: None,
            is_single_run: options.is_single_run,
            has_launched: false,
        })
    }

    /// Copies the descriptors that every new child needs. The child calls this after the clone.
    pub fn child_fds(&self, tasks_fds: Vec<OwnedFd>) -> io::Result<ChildFds> {
        let mounts = self.mount_namespaces.as_ref();
        Ok(ChildFds {
            mount_cloner: mounts.map(|mounts| mounts.mount_cloner),
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

/// Without this a script would keep the supplementary groups of root: the child changes only its user and group id.
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
    if facts.mount_api == MountApi::MountByPath {
        facts.namespaces = Availability::missing(
            "the kernel, or a filter in front of it, lacks open_tree, fsopen or move_mount",
            "use Linux 5.2 or later, or let the filter pass these calls",
        );
        return None;
    }
    let idle_mounts = if options.is_single_run {
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
