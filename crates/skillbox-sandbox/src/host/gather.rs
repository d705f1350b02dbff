//! Reading the facts: a few small files and harmless system calls.
#![expect(
    unsafe_code,
    reason = "some questions to the kernel are system calls that fail on purpose"
)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use rustix::thread::CapabilitySet;

use super::facts::{Availability, CgroupFacts, HostFacts, MountApi, PathFact};
use crate::cgroup::Layout;
use crate::kernel::made_up;
use crate::plan::{Ids, Resource};
use crate::profile::Profile;
use crate::spawner::SpawnerOptions;

impl HostFacts {
    /// Reads the facts about this process on this host.
    pub fn gather(options: &SpawnerOptions) -> Self {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        Self::gather_with(options, Layout::facts(&Layout::discover(&[pid])))
    }

    /// The same, where it is known what can be had of control groups.
    pub(crate) fn gather_with(options: &SpawnerOptions, cgroup: CgroupFacts) -> Self {
        let privileged = is_privileged();
        let own = Ids {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        };
        let script = if privileged { mapped(options.script) } else { own };
        Self {
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            privileged,
            script,
            namespaces: namespaces(privileged),
            proc: fresh_proc(privileged),
            mount_api: mount_api(),
            landlock_abi: landlock_abi(),
            seccomp: seccomp(),
            cgroup,
            hard_limits: hard_limits(),
            paths: BTreeMap::new(),
        }
    }

    /// The same facts with the paths that these profiles name.
    pub fn with_paths_of<'a>(mut self, profiles: impl IntoIterator<Item = &'a Profile>) -> Self {
        for profile in profiles {
            for visible in &profile.filesystem.visible {
                // Profiles that extend one another name the same paths.
                if self.paths.contains_key(&visible.path) {
                    continue;
                }
                if let Some(fact) = path_fact(&visible.path) {
                    self.paths.insert(visible.path.clone(), fact);
                }
            }
        }
        self
    }
}

fn path_fact(path: &str) -> Option<PathFact> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    if metadata.is_dir() {
        Some(PathFact::Directory)
    } else if metadata.is_symlink() {
        let target = std::fs::read_link(path).ok()?;
        Some(PathFact::Link(target.to_str()?.to_owned()))
    } else {
        metadata.is_file().then_some(PathFact::File)
    }
}

/// Root with the capabilities that the direct way needs, over the mounts too. Root of a container often lacks them, and
/// root of a user namespace alone has them over nothing that was there before.
fn is_privileged() -> bool {
    let needed = CapabilitySet::SYS_ADMIN
        | CapabilitySet::SETUID
        | CapabilitySet::SETGID
        | CapabilitySet::CHOWN
        | CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::KILL
        | CapabilitySet::SYS_CHROOT;
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(needed)) && owns_mounts()
}

/// Whether the mount namespace belongs to the user namespace that our capabilities are of.
fn owns_mounts() -> bool {
    /// `NS_GET_USERNS`: the user namespace that owns a namespace; refused when that is beyond our own.
    const GET_USER_NAMESPACE: libc::c_ulong = 0xb701;
    let (Ok(mounts), Ok(own)) = (File::open("/proc/self/ns/mnt"), rustix::fs::stat("/proc/self/ns/user")) else {
        return false;
    };
    // SAFETY: the request takes no argument and returns a new descriptor or an error.
    let owner = unsafe { libc::ioctl(mounts.as_raw_fd(), GET_USER_NAMESPACE) };
    if owner < 0 {
        // A kernel too old to say has no such namespaces worth the question.
        return io::Error::last_os_error().raw_os_error() == Some(libc::ENOTTY);
    }
    // SAFETY: the kernel just made this descriptor for us.
    let owner = unsafe { OwnedFd::from_raw_fd(owner) };
    rustix::fs::fstat(&owner).is_ok_and(|owner| (owner.st_dev, owner.st_ino) == (own.st_dev, own.st_ino))
}

/// The ids as asked for, or the highest ones that this process's own user namespace knows.
fn mapped(wanted: Ids) -> Ids {
    let within = |file: &str, id: u32| {
        let text = made_up::read(file).unwrap_or_default();
        let ranges: Vec<(u32, u32)> = text
            .lines()
            .filter_map(|line| {
                let mut numbers = line.split_whitespace().map(|number| number.parse::<u32>().ok());
                let (first, _, count) = (numbers.next()??, numbers.next()??, numbers.next()??);
                Some((first, first.saturating_add(count.saturating_sub(1))))
            })
            .collect();
        if ranges.is_empty() || ranges.iter().any(|(first, last)| (*first..=*last).contains(&id)) {
            return id;
        }
        ranges.iter().map(|(_, last)| *last).max().unwrap_or(id)
    };
    Ids {
        uid: within("/proc/self/uid_map", wanted.uid),
        gid: within("/proc/self/gid_map", wanted.gid),
    }
}

fn read_number(path: &str) -> Option<u64> {
    made_up::read(path).ok()?.trim().parse().ok()
}

/// What is known to keep a process from making namespaces. Whether it really works is for the spawner to find out.
fn namespaces(privileged: bool) -> Availability {
    if !Path::new("/proc/self/ns/user").exists() {
        return Availability::missing("the kernel has no user namespaces", "use a kernel with CONFIG_USER_NS");
    }
    if read_number("/proc/sys/user/max_user_namespaces") == Some(0) {
        return Availability::missing("user.max_user_namespaces is 0", "sysctl user.max_user_namespaces=10000");
    }
    if privileged {
        return Availability::Available;
    }
    if read_number("/proc/sys/kernel/unprivileged_userns_clone") == Some(0) {
        return Availability::missing(
            "kernel.unprivileged_userns_clone is 0",
            "sysctl kernel.unprivileged_userns_clone=1, or run as root",
        );
    }
    if read_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == Some(1) {
        return Availability::missing(
            "AppArmor takes the capabilities from user namespaces of ordinary users",
            "give skillbox an AppArmor profile with `userns,`, or sysctl kernel.apparmor_restrict_unprivileged_userns=0",
        );
    }
    Availability::Available
}

/// The kernel mounts a fresh /proc in a user namespace only where the old one is wholly visible.
fn fresh_proc(privileged: bool) -> Availability {
    if privileged {
        return Availability::Available;
    }
    let mounts = made_up::read("/proc/self/mountinfo").unwrap_or_default();
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    // Mounts on directories that are empty by nature hide nothing.
    let harmless = ["/proc/sys/fs/binfmt_misc", "/proc/fs/nfsd"];
    let mut covering = points.filter(|point| point.starts_with("/proc/") && !harmless.contains(point));
    match covering.next() {
        None => Availability::Available,
        Some(point) => Availability::missing(
            format!("{point} is covered, so the kernel refuses a fresh /proc"),
            "start the container with an unmasked /proc (`--security-opt systempaths=unconfined`)",
        ),
    }
}

fn mount_api() -> MountApi {
    // SAFETY: the calls fail on purpose: no such descriptor, and a structure of no size. They read no memory.
    let (tree, attributes) = unsafe {
        let tree = libc::syscall(
            libc::SYS_move_mount,
            -1,
            c"".as_ptr(),
            -1,
            c"".as_ptr(),
            libc::MOVE_MOUNT_F_EMPTY_PATH,
        );
        let tree = errno_of(tree);
        let attributes = libc::syscall(libc::SYS_mount_setattr, -1, c"".as_ptr(), libc::AT_EMPTY_PATH, 0, 0);
        (tree, errno_of(attributes))
    };
    let exists = |errno: Option<i32>| errno != Some(libc::ENOSYS);
    match (exists(tree), exists(attributes)) {
        (true, true) => MountApi::Descriptors,
        (true, false) => MountApi::Remounts,
        (false, _) => MountApi::Paths,
    }
}

fn errno_of(result: libc::c_long) -> Option<i32> {
    if result < 0 {
        io::Error::last_os_error().raw_os_error()
    } else {
        None
    }
}

pub(crate) fn landlock_abi() -> u8 {
    /// `LANDLOCK_CREATE_RULESET_VERSION`.
    const VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the call reads no memory and only returns a number.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0, VERSION) };
    u8::try_from(version).unwrap_or(0)
}

fn seccomp() -> Availability {
    let action: u32 = 0x0005_0000;
    // SAFETY: the call reads one number and answers whether the kernel knows the action.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) };
    match errno_of(result) {
        None => Availability::Available,
        Some(errno) => Availability::missing(
            format!("the kernel takes no filters: {}", io::Error::from_raw_os_error(errno)),
            "use a kernel with CONFIG_SECCOMP_FILTER, 4.14 or later",
        ),
    }
}

fn hard_limits() -> BTreeMap<Resource, u64> {
    use Resource::{
        Core, Cpu, FileSize, LockedMemory, MessageQueue, Nice, OpenFiles, PendingSignals, Processes, RealTimePriority,
    };
    [
        Core,
        Cpu,
        FileSize,
        LockedMemory,
        MessageQueue,
        Nice,
        OpenFiles,
        Processes,
        RealTimePriority,
        PendingSignals,
    ]
    .into_iter()
    .filter_map(|resource| Some((resource, rustix::process::getrlimit(resource.kernel()).maximum?)))
    .collect()
}
